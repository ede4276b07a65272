//! What a stream's reader keeps in mind between chunks.

/// Identifies a block of the stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum BlockKey {
    Text,
    Refusal,
    Reasoning,
    Opaque,
    /// The signature of a call.
    Signature(usize),
    Call(usize),
}

/// How far the reply is.
#[derive(PartialEq)]
pub(super) enum Stage {
    Empty,
    HasContent,
    /// `Finished` has been emitted; later frames are dropped (T22).
    Done,
}

/// Where the reasoning text is read from.
#[derive(PartialEq)]
pub(super) enum ReasoningSource {
    /// From `reasoning_details`, as long as no other field has carried a text.
    Details,
    /// From a field of its own. `reasoning_details` may repeat it.
    Field,
}

/// Whether the stream must end with `[DONE]`. Some hosts omit it. A host that sends `"usage": null` announces a usage
/// chunk after the last choice and follows the specification.
pub(super) enum DoneMarker {
    Optional,
    Required,
}
