//! A call's input: this dialect wants a JSON object, models and other dialects give text.

use serde_json::{Value, json};
use toolgate_model::{CallKind, JsonText, Losses};

/// The property that carries the text of a custom tool, which this dialect does not know.
pub(super) const CUSTOM_INPUT: &str = "input";

/// The object to write for a call's input. // T9
pub(super) fn input_object(kind: CallKind, arguments: &str, losses: &mut Losses) -> JsonText {
    match kind {
        CallKind::Custom => JsonText::from_value(&json!({ CUSTOM_INPUT: arguments })),
        CallKind::Function => function_input(arguments, losses),
    }
}

/// A quoted JSON text without its quotes, so that a custom tool's text can be sent piece by piece.
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
            losses.add("tool_use.input", "the arguments are no JSON object: sent as text in `_raw`");
            JsonText::from_value(&json!({ "_raw": arguments }))
        }
    }
}
