//! HTTP/1.1 without I/O: heads, body framing and the state of an exchange.
//!
//! ```text
//!  server: bytes ─▶ RequestHead::parse ─▶ RequestBody     reply ─▶ write::*  ─▶ bytes
//!  client: bytes ◀─ write::*                              bytes ─▶ Exchange  ─▶ ResponseHead, body
//! ```
//!
//! Everything here is strict: a message that two programs could read differently is an error, because a proxy in
//! front of us may read it the other way. The differential tests hold this crate against hyper: whatever is accepted
//! here means the same there.

mod body;
mod exchange;
mod facts;
mod fields;
mod request;
mod response;
mod syntax;
pub mod write;

pub use body::{BodyDecoder, BodyError, Decoded};
pub use exchange::{Exchange, ExchangeError};
pub use fields::{Field, FieldIter, Fields};
pub use request::{RequestBody, RequestHead};
pub use response::ResponseHead;
pub use syntax::{HeadError, MAX_FIELDS, MAX_HEAD_BYTES, Version};
