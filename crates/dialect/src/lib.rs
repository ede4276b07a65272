//! How it is said: each dialect turns bytes into the vocabulary of `toolgate-model` and back, purely.
//!
//! ```text
//!  client bytes ─ClientDialect::read_request─▶ TurnRequest ─UpstreamDialect::write_request─▶ host bytes
//!  host bytes ─frame::sse─▶ ReplyReader ─▶ TurnEvent* ─▶ ReplyWriter ─▶ client bytes
//! ```
//!
//! A new dialect is one folder (`wire.rs`, `request.rs`, `reply.rs`, `stream.rs`, `error.rs`), its fixtures and one
//! line in [`registry`]. No dialect names another dialect.

pub mod anthropic_messages;
pub mod claude_stream_json;
mod cost;
mod error_rest;
pub mod frame;
mod json;
pub mod names;
pub mod openai_chat;
pub mod openai_responses;
mod peek;
pub mod registry;
mod tool_schema;
mod traits;

pub use peek::Peek;
pub use traits::{
    ClientDialect, Meter, MeterReading, NameMap, ReplyContext, ReplyReader, ReplyWriter, UpstreamDialect,
    WrittenRequest,
};
