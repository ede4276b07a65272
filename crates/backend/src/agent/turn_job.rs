//! The input of a process for one turn, and the events that come out of it.

use std::sync::Arc;

use serde_json::Value;
use toolgate_dialect::claude_stream_json::write::AgentOpening;
use toolgate_dialect::claude_stream_json::{AgentTools, HistoryScript, PermissionRequest, RequestId};
use toolgate_model::lineage::{Lineage, PrefixHash};
use toolgate_model::{TurnError, TurnRequest};
use uuid::Uuid;

use super::handoff::CallResult;
use super::joined_reply::JoinedReply;
use super::observer::TurnWatch;
use super::records::AgentRecord;
use super::reply_channel::ReplySender;
use super::retry::RunGuards;
use super::transcript::SessionTranscript;
use crate::turn::Batch;

/// One turn for a process.
pub(super) struct TurnJob {
    pub(super) turn: Uuid,
    pub(super) transcript: SessionTranscript,
    pub(super) work: TurnWork,
    pub(super) reply: JoinedReply,
    pub(super) watch: TurnWatch,
    pub(super) lineage: Lineage,
    pub(super) record_inputs: RecordInputs,
    pub(super) reply_sender: ReplySender,
}

/// Whose turn it is. An approval request may come after the client has got its reply.
#[derive(Clone, Default)]
pub(super) struct LastTurn {
    pub(super) turn: Uuid,
    pub(super) session: String,
    pub(super) caller: Arc<str>,
}

/// What a turn's record contains beside the reply.
pub(super) struct RecordInputs {
    pub(super) caller: Arc<str>,
    pub(super) run: Uuid,
    pub(super) key: PrefixHash,
    pub(super) request: Arc<TurnRequest>,
    /// The steps of an earlier, interrupted run of this turn.
    pub(super) earlier_steps: Vec<Value>,
    /// Blocks other runs of this request until the reply is on record.
    pub(super) run_guards: RunGuards,
}

/// What the process has to do.
pub(super) enum TurnWork {
    /// It has no conversation yet: open it and send the whole history.
    Fresh(Box<Beginning>),
    /// Its last turn is over: send the new messages.
    Continue { script: HistoryScript },
    /// It waits for the client: pass on the results (A7).
    Results(Vec<(String, CallResult)>),
}

/// The opening and history for a process without a conversation.
pub(super) struct Beginning {
    pub(super) opening: AgentOpening,
    pub(super) tools: AgentTools,
    pub(super) script: HistoryScript,
}

/// What the actor must react to.
pub(super) enum CoreEvent {
    /// The model has started to answer.
    FirstEvent,
    /// The reply is complete. The actor sends the end of it after it has updated the pool and saved the record.
    Settled {
        settled: Settled,
        last: Batch,
        reply_sender: ReplySender,
        record: CallerRecord,
        run_guards: RunGuards,
    },
    /// The program did something that must not be repeated.
    Progress(CallerRecord),
    /// The process is unusable and its turn has failed.
    Failed(TurnError),
    /// A tool needs approval.
    ApprovalNeeded { id: RequestId, request: PermissionRequest },
    /// The approval is no longer needed.
    ApprovalWithdrawn(RequestId),
}

/// A record and its caller.
#[derive(Clone)]
pub(super) struct CallerRecord {
    pub(super) caller: Arc<str>,
    pub(super) record: AgentRecord,
}

/// The state of a process between two requests.
#[derive(Clone, Debug)]
pub(super) struct Settled {
    /// The conversation so far, the reply included.
    pub(super) after: PrefixHash,
    /// The calls it waits for; empty if the turn is over.
    pub(super) calls: Vec<String>,
}
