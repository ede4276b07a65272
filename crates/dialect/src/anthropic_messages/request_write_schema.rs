//! Tool schemas as hosts of this dialect accept them.

use serde_json::json;
use toolgate_model::{JsonText, Losses};

use super::content_write_input::CUSTOM_INPUT;
use crate::tool_schema;

/// Keywords that the API rejects in strict tools; other tools may use them.
const REJECTED_IN_STRICT: [&str; 9] = [
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "maxItems",
    "uniqueItems",
];

/// The schema for the host, from a client of another dialect (T24).
pub(super) fn host_schema(
    tool: &str,
    schema: Option<&JsonText>,
    strict: Option<bool>,
    losses: &mut Losses,
) -> JsonText {
    let schema = tool_schema::for_host(tool, schema, losses);
    if strict != Some(true) {
        return schema;
    }
    tool_schema::without(&REJECTED_IN_STRICT, tool, schema, losses)
}

/// The schema of a custom tool, written as a function: this dialect has no custom tools.
pub(super) fn text_schema() -> JsonText {
    JsonText::from_value(&json!({
        "type": "object",
        "properties": { CUSTOM_INPUT: { "type": "string" } },
        "required": [CUSTOM_INPUT],
    }))
}
