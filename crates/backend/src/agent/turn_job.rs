//! What a process is given to do, and what comes of it.

use std::sync::Arc;

use serde_json::Value;
use toolgate_dialect::claude_stream_json::write::Opening;
use toolgate_dialect::claude_stream_json::{AgentTools, PermissionRequest, RequestId, Script};
use toolgate_model::lineage::{Lineage, PrefixHash};
use toolgate_model::{TurnError, TurnRequest};
use uuid::Uuid;

use super::handoff::CallResult;
use super::joined_reply::JoinedReply;
use super::records::AgentRecord;
use super::reply_channel::ReplySender;
use super::run_lock::RunGuard;
use super::transcript::SessionTranscript;
use crate::turn::Batch;

/// One turn for a process.
pub(super) struct TurnJob {
    pub(super) turn: Uuid,
    pub(super) transcript: SessionTranscript,
    pub(super) work: Work,
    pub(super) reply: JoinedReply,
    pub(super) lineage: Lineage,
    pub(super) record_inputs: RecordInputs,
    pub(super) reply_sender: ReplySender,
}

/// What a turn's record needs beside the reply.
pub(super) struct RecordInputs {
    pub(super) caller: Arc<str>,
    pub(super) key: PrefixHash,
    pub(super) request: Arc<TurnRequest>,
    /// What was done of this turn before it was cut short.
    pub(super) earlier_steps: Vec<Value>,
    /// Until all of it is on record, nobody else may run this request.
    pub(super) run_guard: RunGuard,
}

/// What there is to do.
pub(super) enum Work {
    /// Nothing is known yet: everything is told.
    Fresh(Box<Beginning>),
    /// The turn before is over: what is new is told.
    Continue { script: Script },
    /// The turn goes on with the client's results (A7).
    Results(Vec<(String, CallResult)>),
}

/// Everything a fresh process is told.
pub(super) struct Beginning {
    pub(super) opening: Opening,
    pub(super) tools: AgentTools,
    pub(super) script: Script,
}

/// What the outside must know.
pub(super) enum CoreEvent {
    /// The model answers.
    FirstEvent,
    /// The reply is complete; to be told to the client after it is noted where the process stands.
    Settled {
        settled: Settled,
        last: Batch,
        reply_sender: ReplySender,
        record: OwnedRecord,
        transcript: Vec<OwnedRecord>,
        run_guard: RunGuard,
    },
    /// The program has done something that must not be done again.
    Progress(OwnedRecord),
    /// The process is of no use any more; its turn has failed with this.
    Failed(TurnError),
    /// Somebody must decide.
    ApprovalNeeded { id: RequestId, request: PermissionRequest },
    /// The decision is no longer wanted.
    ApprovalWithdrawn(RequestId),
}

/// A record, and whose it is.
#[derive(Clone)]
pub(super) struct OwnedRecord {
    pub(super) caller: Arc<str>,
    pub(super) record: AgentRecord,
}

/// Where a process stands between two requests.
#[derive(Clone, Debug)]
pub(super) struct Settled {
    /// What was said so far, the reply included.
    pub(super) after: PrefixHash,
    /// The calls it waits for; none where the turn is over.
    pub(super) calls: Vec<String>,
}
