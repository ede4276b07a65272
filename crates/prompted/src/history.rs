//! Renders the calls and results of the history as text, in the format the model is asked to write (D4).
//! Parsing a rendered answer gives back the same calls and arguments.

use std::fmt::Write as _;
use std::sync::Arc;

use toolgate_model::{
    AssistantMessage, Block, CallKind, Extras, Message, Part, Text, ToolCall, ToolOutcome, ToolResult,
    UserMessage,
};

use crate::parse::json_members;
use crate::schema::{Notation, Parameter, RAW_PARAMETER, ToolSpec, Types};
use crate::trigger::Markers;
use crate::value::{coerce, escape::attribute};

/// Markup that makes a raw value ambiguous; a value that contains any is wrapped in CDATA.
const MARKUP: [&str; 9] = [
    "<![CDATA[",
    "</parameter",
    "<parameter",
    "</invoke",
    "<invoke",
    "</function",
    "<function",
    "<<CALL_",
    "DSML",
];

/// The conversation with calls and results rendered as text.
pub(crate) fn render(messages: &[Message], tools: &[Arc<ToolSpec>], markers: &Markers) -> Vec<Message> {
    let mut rendered: Vec<Message> = Vec::with_capacity(messages.len());
    let mut after_results = false;
    for (index, message) in messages.iter().enumerate() {
        let mut was_results = false;
        match message {
            Message::Assistant(answer) => {
                rendered.push(Message::Assistant(assistant(answer, tools, markers)));
            }
            Message::ToolResults(results) => {
                let before = &messages[..index];
                let parts = results.results.iter().flat_map(|result| result_parts(result, before, markers));
                let mut content = Vec::new();
                parts.for_each(|part| append_part(part, &mut content));
                rendered.push(Message::User(UserMessage { content, extras: Extras::NONE }));
                was_results = true;
            }
            // A user message after results is merged with them: many chat templates require alternating roles.
            Message::User(user) => match rendered.last_mut() {
                Some(Message::User(results)) if after_results => {
                    user.content.iter().cloned().for_each(|part| append_part(part, &mut results.content));
                }
                _ => rendered.push(message.clone()),
            },
            Message::System(_) => rendered.push(message.clone()),
        }
        after_results = was_results;
    }
    rendered
}

fn assistant(answer: &AssistantMessage, tools: &[Arc<ToolSpec>], markers: &Markers) -> AssistantMessage {
    let mut content: Vec<Block> = Vec::new();
    let mut last = Last::Other;
    for block in &answer.content {
        match block {
            Block::Text(text) if last == Last::Call => {
                append(&mut content, &format!("\n{}", text.text));
                last = Last::Text;
            }
            Block::Text(text) => {
                content.push(Block::Text(text.clone()));
                last = Last::Text;
            }
            Block::ToolCall(call) => {
                let text = call_text(call, tools);
                match last {
                    Last::Call => append(&mut content, &format!("\n{text}")),
                    Last::Text => append(&mut content, &format!("\n{}\n{text}", markers.trigger)),
                    Last::Other => {
                        content.push(Block::Text(Text::new(format!("{}\n{text}", markers.trigger))));
                    }
                }
                last = Last::Call;
            }
            Block::Refusal(_) | Block::Reasoning(_) | Block::Opaque(_) => {
                content.push(block.clone());
                last = Last::Other;
            }
        }
    }
    AssistantMessage { content, extras: answer.extras.clone() }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Text,
    Call,
    Other,
}

fn append(content: &mut [Block], more: &str) {
    if let Some(Block::Text(text)) = content.last_mut() {
        text.text.push_str(more);
    }
}

/// A call in the format the model is asked to write.
pub(crate) fn call_text(call: &ToolCall, tools: &[Arc<ToolSpec>]) -> String {
    let tool = tools.iter().find(|tool| tool.name == call.name.as_str());
    let mut out = format!("<invoke name=\"{}\">\n", attribute(call.name.as_str()));
    let members = match call.kind {
        CallKind::Function if call.arguments.trim().is_empty() => Some(Vec::new()),
        CallKind::Function => json_members(&call.arguments),
        CallKind::Custom => None,
    };
    match members {
        Some(members) => {
            for (name, json) in members {
                let known = tool.and_then(|tool| tool.parameters.iter().find(|known| known.name == name));
                let value = known.map_or_else(
                    || value_text(&json, &Parameter::unknown(name.clone())),
                    |parameter| value_text(&json, parameter),
                );
                parameter_text(&name, &value, &mut out);
            }
        }
        // The input of a custom tool, or arguments that are not a JSON object: both are written raw.
        None => parameter_text(RAW_PARAMETER, &raw(&call.arguments, RAW_PARAMETER), &mut out),
    }
    out.push_str("</invoke>");
    out
}

fn parameter_text(name: &str, value: &str, out: &mut String) {
    // Writing to a string cannot fail.
    writeln!(out, "<parameter name=\"{}\">{value}</parameter>", attribute(name)).unwrap_or_default();
}

/// A value in a form that its schema parses back to the same JSON.
fn value_text(json: &str, parameter: &Parameter) -> String {
    let Ok(text) = serde_json::from_str::<String>(json) else { return raw(json, &parameter.name) };
    let types = parameter.types;
    if !types.has(Types::STRING) || parameter.notation == Notation::Json {
        return raw(json, &parameter.name);
    }
    if types == Types::STRING && parameter.enum_values.is_empty() {
        return raw(&text, &parameter.name);
    }
    if types == Types::STRING.or(Types::NULL) && parameter.enum_values.is_empty() {
        return if text == "null" { cdata(&text) } else { raw(&text, &parameter.name) };
    }
    // A string that could be parsed as another type is written as JSON.
    let same = coerce::read(&text, parameter)
        .is_some_and(|reading| serde_json::from_str(&reading.json).ok() == Some(text.clone()));
    let undecided = parameter.enum_values.is_empty()
        && (text.trim_start().starts_with(['{', '[', '"']) || text.trim() != text);
    if same && !undecided { raw(&text, &parameter.name) } else { raw(json, &parameter.name) }
}

/// Raw text between tags: inline, on lines of its own if it has line breaks, or as CDATA if it contains markup.
fn raw(text: &str, name: &str) -> String {
    let own_close = format!("</{name}>");
    if MARKUP.iter().any(|markup| text.contains(markup)) || text.contains(&own_close) {
        return cdata(text);
    }
    if text.contains(['\n', '\r']) { format!("\n{text}\n") } else { text.to_owned() }
}

fn cdata(text: &str) -> String {
    format!("<![CDATA[{}]]>", text.replace("]]>", "]]]]><![CDATA[>"))
}

fn result_parts(result: &ToolResult, before: &[Message], markers: &Markers) -> Vec<Part> {
    let name = called_name(result, before).map(|name| format!(" name=\"{}\"", attribute(name)));
    let status = match result.outcome {
        ToolOutcome::Success => "",
        ToolOutcome::Error => " error=\"true\"",
    };
    let id = attribute(result.call.as_str());
    let open = format!("<tool_result_{}{} id=\"{id}\"{status}>\n", markers.nonce, name.unwrap_or_default());
    let mut parts = vec![Part::text(open)];
    parts.extend(result.content.iter().cloned());
    parts.push(Part::text(format!("\n</tool_result_{}>\n", markers.nonce)));
    parts
}

/// The name of the tool that a result belongs to: that of the nearest earlier call with the same id.
fn called_name<'m>(result: &ToolResult, before: &'m [Message]) -> Option<&'m str> {
    before.iter().rev().find_map(|message| match message {
        Message::Assistant(answer) => answer.content.iter().find_map(|block| match block {
            Block::ToolCall(call) if call.id == result.call => Some(call.name.as_str()),
            Block::ToolCall(_)
            | Block::Text(_)
            | Block::Refusal(_)
            | Block::Reasoning(_)
            | Block::Opaque(_) => None,
        }),
        Message::System(_) | Message::User(_) | Message::ToolResults(_) => None,
    })
}

/// Appends a part. Adjacent texts without extras become one part: a message with one text is written as a string, and
/// some text-only hosts accept nothing else.
pub(crate) fn append_part(part: Part, content: &mut Vec<Part>) {
    match (content.last_mut(), part) {
        (Some(Part::Text(last)), Part::Text(next)) if last.extras.is_empty() && next.extras.is_empty() => {
            last.text.push_str(&next.text);
        }
        (_, part) => content.push(part),
    }
}
