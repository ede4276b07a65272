//! How something was said that this dialect can say in two ways. Marks are never written to the wire.

/// Read from this dialect: on a request, and on a reply's head.
pub(super) const NATIVE: &str = "native";
/// The request offers `functions`, and its client expects `function_call`; on a call or result, its legacy form.
pub(super) const LEGACY: &str = "legacy";
/// The output limit stood in `max_tokens`.
pub(super) const MAX_TOKENS: &str = "max_tokens";
/// The request said `"response_format": {"type": "text"}`.
pub(super) const TEXT_FORMAT: &str = "text_format";
/// The request's only stop text stood alone, not in an array.
pub(super) const STOP_STRING: &str = "stop_string";
/// The end user stood in `safety_identifier`.
pub(super) const SAFETY_IDENTIFIER: &str = "safety_identifier";
/// An assistant's `content` was `""`, not `null`.
pub(super) const EMPTY_CONTENT: &str = "empty_content";
/// A refusal stood among the content parts.
pub(super) const REFUSAL_PART: &str = "refusal_part";
/// Reasoning stood in `reasoning`.
pub(super) const REASONING: &str = "reasoning";
/// Reasoning stood in `reasoning` and in `reasoning_content`.
pub(super) const REASONING_BOTH: &str = "reasoning_both";
/// Reasoning stood in a `thinking` content part.
pub(super) const REASONING_PART: &str = "reasoning_part";
/// The host gave the call no id.
pub(super) const NO_ID: &str = "no_id";
/// The host left out the `type` of a call.
pub(super) const NO_TYPE: &str = "no_type";
/// The host gave no `cached_tokens`.
pub(super) const NO_CACHE_FIGURE: &str = "no_cache_figure";
