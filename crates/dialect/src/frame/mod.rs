//! Where one message ends and the next begins: server-sent events and JSON lines.
//!
//! Decoders are fed bytes as they come from the wire, in any split, and hand out frames as slices of their own
//! buffer. Feed with `push`, take frames until there are none, and say `end` when the bytes are over.

mod jsonl;
mod sse;
mod window;

pub use jsonl::LineDecoder;
pub use sse::{SseDecoder, SseFrame, write_comment, write_data, write_event};

/// The largest frame a decoder should accept when nothing smaller is known to be enough.
///
/// Images travel as base64 inside one frame, and a few of them make some tens of megabytes. Past that, a peer that
/// never ends its line would take the gateway's memory.
pub const MAX_FRAME_BYTES: usize = 64 * 1024 * 1024;

/// Why a stream cannot be cut into frames any further. A decoder that failed stays failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The peer sent more bytes without ending the frame than we keep.
    #[error("a frame of the stream is larger than {limit} bytes; raise the limit or ask for smaller replies")]
    TooLarge {
        /// The bound the decoder was made with.
        limit: usize,
    },
    /// The frame's text is not UTF-8, as both formats demand.
    #[error("a frame of the stream is not valid UTF-8; the peer must send UTF-8")]
    NotUtf8,
    /// The stream stopped inside a frame.
    #[error(
        "the stream ended in the middle of a frame; the connection was probably cut, so send the request again"
    )]
    Truncated,
}
