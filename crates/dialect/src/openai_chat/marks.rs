//! Marks that record which of two spellings the dialect used. Marks are never written to the wire.

/// Read in this dialect; on a request, a document and a reply's head.
pub(super) const NATIVE: &str = "native";
/// The request uses `functions`, and its client expects `function_call`; on a call or result, its legacy form.
pub(super) const LEGACY: &str = "legacy";
/// The output limit was in `max_tokens`.
pub(super) const MAX_TOKENS: &str = "max_tokens";
/// The request had `"response_format": {"type": "text"}`.
pub(super) const TEXT_FORMAT: &str = "text_format";
/// `stop` was a string, not an array.
pub(super) const STOP_STRING: &str = "stop_string";
/// An assistant's `content` was `""`, not `null`.
pub(super) const EMPTY_CONTENT: &str = "empty_content";
/// The refusal was a content part.
pub(super) const REFUSAL_PART: &str = "refusal_part";
/// Reasoning was in `reasoning`.
pub(super) const REASONING: &str = "reasoning";
/// Reasoning was in `reasoning` and in `reasoning_content`.
pub(super) const REASONING_BOTH: &str = "reasoning_both";
/// Reasoning was in `reasoning_text`.
pub(super) const REASONING_TEXT: &str = "reasoning_text";
/// Reasoning was in `reasoning_details` only.
pub(super) const REASONING_DETAILS: &str = "reasoning_details";
/// Reasoning was a `thinking` content part.
pub(super) const REASONING_PART: &str = "reasoning_part";
/// The call or result had no id.
pub(super) const NO_ID: &str = "no_id";
/// `image_url` was a string.
pub(super) const URL_STRING: &str = "url_string";
/// The call had no `type`.
pub(super) const NO_TYPE: &str = "no_type";
/// The usage had no `cached_tokens`.
pub(super) const NO_CACHED_TOKENS: &str = "no_cached_tokens";
