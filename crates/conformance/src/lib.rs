//! Checks that every dialect must pass, run over recorded exchanges with `cargo xtask corpus PATH`. For tests only: no
//! production crate depends on this one.
//!
//! ```text
//!  request ─read─▶ TurnRequest ─write─▶ the same JSON in its own dialect; accepted by every other dialect's reader
//!  reply   ─read─▶ events the grammar accepts ─fold─▶ a reply ─write─▶ the same content in every dialect
//!  error   ─read─▶ kind, status and message survive every dialect
//! ```
//!
//! Everything passes through the model; the original text is not kept. Within one dialect, bodies must be equal up to
//! [`equivalence`]; across dialects, every difference must be a documented [`adaptation`] or reported as a loss at its
//! place.

pub mod adaptation;
mod crossing;
pub mod equivalence;
pub mod essence;
mod exchange;
pub mod explain;
pub mod streams;

pub use exchange::{Exchange, Verdict, examine};

use std::sync::Arc;

use toolgate_model::{TurnRequest, estimate};

use toolgate_dialect::ReplyContext;

/// A context for writing a reply to the request.
pub fn context(request: &Arc<TurnRequest>) -> ReplyContext {
    ReplyContext {
        request: Arc::clone(request),
        now: 1_700_000_000,
        fallback_id: "resp_conformance".to_owned(),
        estimated_input: estimate::input_tokens(request),
    }
}
