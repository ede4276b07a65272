//! The turn that a process works on.

use std::sync::Arc;

use toolgate_model::lineage::Lineage;
use toolgate_model::reply::Fold;
use toolgate_model::{GrammarError, TurnEvent};

use super::joined_reply::JoinedReply;
use super::records::{self, AgentRecord, ReplyDelivery};
use super::reply_channel::ReplySender;
use super::transcript::SessionTranscript;
use super::turn_job::{CallerRecord, CoreEvent, RecordInputs};
use super::turn_steps::{BuiltinUse, TurnSteps};
use crate::turn::Batch;

/// The turn that a process works on.
pub(super) struct ActiveTurn {
    pub(super) transcript: SessionTranscript,
    pub(super) reply: JoinedReply,
    pub(super) fold: Fold,
    pub(super) lineage: Lineage,
    pub(super) record_inputs: RecordInputs,
    pub(super) steps: TurnSteps,
    pub(super) reply_sender: ReplySender,
}

impl ActiveTurn {
    /// Adds events to the reply so far.
    pub(super) fn fold_batch(&mut self, batch: &Batch) -> Result<(), GrammarError> {
        batch.events.iter().try_for_each(|event: &TurnEvent| self.fold.event(event.clone()))
    }

    /// The record to save after a message of the program.
    pub(super) fn progress(&self, builtin_use: BuiltinUse) -> Vec<CoreEvent> {
        let record = match builtin_use {
            BuiltinUse::Found => self.unfinished_record(),
            BuiltinUse::None => None,
        };
        record.map(CoreEvent::Progress).into_iter().collect()
    }

    /// The record of the turn as if it ended now.
    pub(super) fn unfinished_record(&self) -> Option<CallerRecord> {
        let steps = self.steps.if_hidden_from_client();
        if steps.is_empty() {
            return None;
        }
        let record = AgentRecord {
            run: self.record_inputs.run,
            key: self.record_inputs.key,
            after: None,
            part: None,
            session: self.transcript.session.clone(),
            steps: records::write_steps(steps),
            reply: None,
            delivery: ReplyDelivery::Incomplete,
        };
        Some(CallerRecord { caller: Arc::clone(&self.record_inputs.caller), record })
    }
}
