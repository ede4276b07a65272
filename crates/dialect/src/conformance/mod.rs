//! What every dialect must hold, as a battery over recorded exchanges: people run it on their own traffic with
//! `cargo xtask corpus PATH`.
//!
//! ```text
//!  request ─read─▶ TurnRequest ─write─▶ the same JSON in its own dialect; accepted by the other dialects' readers
//!  reply   ─read─▶ events the grammar accepts ─fold─▶ a reply ─write─▶ says the same, in every dialect
//!  error   ─read─▶ kind, status and message survive every dialect
//! ```
//!
//! Everything goes through the model alone; the original text is never carried along. Equal means equal up to
//! [`equivalence`]; across dialects, what differs must have been reported as a loss at that very place.

mod crossing;
pub mod equivalence;
pub mod essence;
mod exchange;
pub mod explain;
pub mod streams;

pub use exchange::{Exchange, Verdict, examine};

use std::sync::Arc;

use toolgate_model::{TurnRequest, estimate};

use crate::ReplyContext;

/// A context for writing a reply to this request.
pub fn context(request: &Arc<TurnRequest>) -> ReplyContext {
    ReplyContext {
        request: Arc::clone(request),
        now: 1_700_000_000,
        fallback_id: "resp_conformance".to_owned(),
        estimated_input: estimate::input_tokens(request),
    }
}
