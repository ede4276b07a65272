//! The schema of a tool's input where hosts of this dialect want something of their own.

use serde_json::json;
use toolgate_model::{JsonText, Losses};

use super::content_write_input::CUSTOM_INPUT;
use crate::tool_schema;

/// Keywords the API refuses in a tool whose arguments must follow the schema exactly; other tools may have them.
const REFUSED_IN_STRICT: [&str; 9] = [
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

/// The schema as the host takes it from a client of another dialect. // T24
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
    tool_schema::without(&REFUSED_IN_STRICT, tool, schema, losses)
}

/// The schema for a tool that takes text, which this dialect does not know.
pub(super) fn text_schema() -> JsonText {
    JsonText::from_value(&json!({
        "type": "object",
        "properties": { CUSTOM_INPUT: { "type": "string" } },
        "required": [CUSTOM_INPUT],
    }))
}
