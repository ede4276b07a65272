//! Splits byte streams into frames: server-sent events and JSON lines.
//!
//! A decoder accepts bytes in any split and returns frames as slices of its buffer. Call `push` with bytes, take frames
//! until there are none, and call `end` after the last byte.

mod jsonl;
mod sse;
mod window;

pub use jsonl::LineDecoder;
pub use sse::{SseDecoder, SseFrame, write_comment, write_data, write_event};

/// The default limit for the size of a frame.
///
/// Images travel as base64 inside one frame, and a few of them make some tens of megabytes. Past that, a peer that
/// never ends its line would take the gateway's memory.
pub const MAX_FRAME_BYTES: usize = 64 * 1024 * 1024;

/// Why a stream cannot be split further. A decoder that failed stays failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The frame exceeds the limit.
    #[error("a frame of the stream is larger than {limit} bytes; raise the limit or request smaller replies")]
    TooLarge {
        /// The decoder's limit in bytes.
        limit: usize,
    },
    /// The frame is not UTF-8, which both formats require.
    #[error("a frame of the stream is not valid UTF-8; the peer must send UTF-8")]
    NotUtf8,
    /// The stream stopped inside a frame.
    #[error(
        "the stream ended in the middle of a frame; the connection was probably cut, so send the request again"
    )]
    Truncated,
}
