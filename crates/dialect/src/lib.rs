//! Wire formats: each dialect converts bytes to the types of `toolgate-model` and back, without I/O.
//!
//! ```text
//!  client bytes ─ClientDialect::read_request─▶ TurnRequest ─UpstreamDialect::write_request─▶ host bytes
//!  host bytes ─frame::sse─▶ ReplyReader ─▶ TurnEvent* ─▶ ReplyWriter ─▶ client bytes
//! ```
//!
//! A dialect is one folder, its fixtures and one line in [`registry`]. No dialect uses another dialect. Every folder has
//! the same files:
//!
//! | file | role |
//! |---|---|
//! | `mod.rs` | the dialect's `ID`, `DIALECT` and trait implementations |
//! | `wire.rs`, `wire_stream.rs` | private serde types: bodies, and frames of a stream |
//! | `request_read.rs`, `request_write.rs` | requests from clients, requests to hosts |
//! | `content_read.rs`, `content_write.rs` | content that requests and replies share |
//! | `reply_read.rs`, `reply_write.rs` | whole replies from hosts, whole replies to clients |
//! | `stream_read.rs`, `stream_write.rs` | the same as streams |
//! | `usage.rs`, `error.rs` | token counts and errors, in both directions |
//! | `meter.rs` | usage and completeness of relayed replies |
//!
//! A role that needs more than one file adds a noun: `request_write_tools.rs`, `stream_read_calls.rs`. A file without a
//! role prefix is specific to its dialect: `count.rs`, `marks.rs`, `stored.rs`.

pub mod anthropic_messages;
pub mod claude_stream_json;
mod cost;
mod error_extras;
mod error_shape;
pub mod frame;
pub mod host;
mod json;
mod lenient;
pub mod names;
pub mod openai_chat;
pub mod openai_responses;
mod openai_shared;
mod peek;
mod peek_input;
mod peek_opening;
pub mod registry;
mod think_tags;
mod tool_schema;
mod traits;
mod translation;

pub use peek::Peek;
pub use peek_opening::peek_opening;
pub use traits::{
    ClientDialect, Meter, MeterReading, NameMap, ReplyContext, ReplyReader, ReplyWriter, RequestForm,
    UpstreamDialect, WrittenRequest,
};
pub use translation::{Change, HostRequest, Translation};
