//! A call's input: this dialect requires a JSON object, the model has text.

use serde_json::{Value, json};
use toolgate_model::{CallKind, JsonText, Losses};

/// The property for the text of a custom tool: this dialect has no custom tools.
pub(super) const CUSTOM_INPUT: &str = "input";

/// The `input` of a call (T9).
pub(super) fn input_object(kind: CallKind, arguments: &str, losses: &mut Losses) -> JsonText {
    match kind {
        CallKind::Custom => JsonText::from_value(&json!({ CUSTOM_INPUT: arguments })),
        CallKind::Function => function_input(arguments, losses),
    }
}

/// The text as a JSON string without its quotes, so that a custom tool's text can be streamed.
pub(super) fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

fn function_input(arguments: &str, losses: &mut Losses) -> JsonText {
    if matches!(arguments.trim(), "" | "null") {
        return JsonText::empty_object();
    }
    match JsonText::parse(arguments) {
        Ok(input) if input.is_object() => input,
        Ok(_) | Err(_) => {
            losses.add("tool_use.input", "the arguments are not a JSON object: sent as text in `_raw`");
            JsonText::from_value(&json!({ "_raw": arguments }))
        }
    }
}
