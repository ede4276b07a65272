//! The dialect-independent types for requests, replies and streams.
//!
//! ```text
//!  TurnRequest ──▶ back end ──▶ TurnEvent* ──fold──▶ Reply
//!      │                            │
//!   Message: System | User |       Started (BlockStarted BlockDelta* BlockFinished | Usage)* Finished
//!   Assistant | ToolResults        one block open at a time, checked by `Grammar`
//! ```
//!
//! A **Session** is a sequence of **Turns**; a turn is a request and a stream of events that open, fill and close
//! **Blocks**. A whole reply is the fold of its stream, so the two always agree.
//!
//! This crate does no I/O, starts no tasks and reads no clock.

pub mod approval;
pub mod error;
pub mod estimate;
pub mod event;
pub mod extras;
pub mod grammar;
pub mod ids;
pub mod json;
pub mod lineage;
pub mod loss;
pub mod message;
pub mod notes;
pub mod observed;
pub mod pairing;
pub mod references;
pub mod reply;
pub mod request;
pub mod seal;
pub mod sequencer;
pub mod stop_reason;
pub mod tool;
pub mod usage;

pub use error::{ErrorKind, TurnError};
pub use event::{BlockEnd, BlockStart, Delta, Finish, ReplyHead, StopReason, TurnEvent};
pub use extras::{DialectId, Extras, Fields, Opaque};
pub use grammar::{Grammar, GrammarError};
pub use ids::{CallId, ModelName, ReplyId, ToolName};
pub use json::JsonText;
pub use lineage::{Lineage, PrefixHash};
pub use loss::{Loss, Losses, Translated};
pub use message::{
    AssistantMessage, Audio, Block, Document, Image, Message, Part, Reasoning, ReasoningKind, ReasoningPart,
    Source, SystemMessage, SystemRole, Text, ToolCall, ToolOutcome, ToolResult, ToolResults, UserMessage,
};
pub use notes::{Citation, Notes};
pub use reply::Reply;
pub use request::{
    Delivery, OpenAiOptions, OutputFormat, ReasoningRequest, Retention, Sampling, SchemaFormat, TurnRequest,
    UsageReport,
};
pub use seal::{Seal, SealToken};
pub use tool::{AllowedTool, CallKind, Choice, CustomTool, FunctionTool, Parallel, Tool, ToolChoice};
pub use usage::Usage;
