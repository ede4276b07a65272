//! Calls of the history, with any values, are parsed back from their rendered text.
//! The first byte selects the tool, the second is the chunk size. The rest is values, separated by byte 2.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use toolgate_model::{
    AssistantMessage, Block, CallId, CallKind, Extras, Message, Part, StopReason, ToolCall, UserMessage,
};
use toolgate_prompted::{PromptedOptions, Repair, Secret, prepare};
use toolgate_prompted_fuzz::{calls, read, request};

fuzz_target!(|input: &[u8]| {
    let [choice, size, text @ ..] = input else { return };
    let text = String::from_utf8_lossy(text);
    let made = made(*choice, &mut text.split('\u{2}'));
    let mut request = request();
    let content = vec![Block::ToolCall(made.clone())];
    request.messages.push(Message::Assistant(AssistantMessage { content, extras: Extras::NONE }));
    let content = vec![Part::text("next")];
    request.messages.push(Message::User(UserMessage { content, extras: Extras::NONE }));
    let options = PromptedOptions { repair: Repair::Off, continuations: 0, ..PromptedOptions::default() };
    let prepared = prepare(&request, &options, &Secret([7; 32])).value;
    let Message::Assistant(rendered) = &prepared.request.messages[1] else { panic!("an answer stays one") };
    let [Block::Text(text)] = rendered.content.as_slice() else { panic!("one text: {rendered:?}") };

    let outcome = read(&prepared, &[&text.text], &StopReason::EndTurn, usize::from(*size));
    assert!(outcome.recoveries.is_empty(), "{outcome:?} of {text:?}");
    let read: Vec<&ToolCall> = calls(&outcome).collect();
    let [call] = read.as_slice() else { panic!("one call: {outcome:?} of {text:?}") };
    assert_eq!((&call.name, call.kind), (&made.name, made.kind));
    match made.kind {
        CallKind::Custom => assert_eq!(call.arguments, made.arguments),
        CallKind::Function => assert_eq!(json(&call.arguments), json(&made.arguments), "{text:?}"),
    }
});

/// A call with the given texts as values: raw for strings, parsed for other types if they are JSON.
fn made<'t>(choice: u8, values: &mut impl Iterator<Item = &'t str>) -> ToolCall {
    let (name, parameters): (_, &[&str]) = match choice & 3 {
        0 => ("Write", &["file_path", "content", "meta"]),
        1 => ("Search", &["query", "note", "any", "limit", "filters", "tags", "unknown"]),
        2 => ("Ping", &[]),
        _ => ("Patch", &["input"]),
    };
    let mut members = Map::new();
    for (parameter, value) in parameters.iter().zip(values) {
        let parsed = serde_json::from_str::<Value>(value).ok();
        let value = match *parameter {
            "filters" => parsed.filter(Value::is_object),
            "tags" => parsed.filter(Value::is_array),
            "note" if value == "null" => parsed,
            "any" | "unknown" => Some(parsed.unwrap_or_else(|| Value::from(value))),
            "limit" => Some(parsed.filter(Value::is_i64).unwrap_or_else(|| Value::from(value))),
            _ => Some(Value::from(value)),
        };
        if let Some(value) = value {
            members.insert((*parameter).to_owned(), value);
        }
    }
    let (kind, arguments) = match name {
        "Patch" => {
            let input = members.remove("input").and_then(|input| input.as_str().map(str::to_owned));
            (CallKind::Custom, input.unwrap_or_default())
        }
        _ => (CallKind::Function, Value::Object(members).to_string()),
    };
    ToolCall { id: CallId::new("c"), name: name.into(), kind, arguments, extras: Extras::NONE }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("arguments are JSON")
}
