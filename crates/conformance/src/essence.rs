//! The dialect-independent content of a request or reply: texts, reasoning, calls, results and settings.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use toolgate_model::tool::AllowedTool;
use toolgate_model::{
    Block, CallKind, Document, JsonText, Message, Part, Reasoning, Reply, SealToken, Source, StopReason,
    Tool, ToolCall, ToolOutcome, TurnRequest, references,
};

mod call_numbers;
mod settings;

use call_numbers::CallNumbers;
use settings::settings;
use toolgate_dialect::NameMap;

/// One piece of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The speaker, or what the statement describes.
    pub speaker: Speaker,
    /// What it says.
    pub content: Content,
}

/// Who produces a statement, or what it describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// A system or developer message.
    System,
    /// The user.
    User,
    /// A tool, in a result.
    ToolResult,
    /// The model.
    Assistant,
    /// The model, refusing.
    Refusal,
    /// The model, reasoning.
    Reasoning,
    /// A tool call.
    ToolCall,
    /// A tool that the request offers.
    OfferedTool,
    /// A sampling, format or tool-choice setting.
    Setting,
    /// Why a reply ended.
    StopReason,
    /// The token counts of a reply.
    Usage,
}

/// What a statement says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text without white space: dialects join texts differently.
    Text(String),
    /// Anything else, such as an image, a call or a setting: its kind, and a detail that identifies it.
    NonText(String, String),
}

impl Statement {
    fn non_text(speaker: Speaker, kind: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { speaker, content: Content::NonText(kind.into(), detail.into()) }
    }

    fn text(speaker: Speaker, text: &str) -> Option<Self> {
        let squeezed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        (!squeezed.is_empty()).then_some(Self { speaker, content: Content::Text(squeezed) })
    }
}

/// Joins adjacent texts of one speaker: dialects split them differently.
pub fn joined(statements: impl IntoIterator<Item = Statement>) -> Vec<Statement> {
    let mut all: Vec<Statement> = Vec::new();
    for next in statements {
        match (all.last_mut(), &next.content) {
            (Some(Statement { speaker, content: Content::Text(text) }), Content::Text(more))
                if *speaker == next.speaker =>
            {
                text.push_str(more);
            }
            _ => all.push(next),
        }
    }
    all
}

/// The content of a request.
pub fn of_request(request: &TurnRequest) -> Vec<Statement> {
    of_conversation(request, CallNumbers::of(&request.messages))
}

fn of_conversation<'a>(request: &'a TurnRequest, mut calls: CallNumbers<'a>) -> Vec<Statement> {
    let mut statements = Vec::new();
    // Opaque parts of the system prompt are telemetry of the client (T29).
    let said = request.system.iter().filter(|part| !matches!(part, Part::Opaque(_)));
    parts(Speaker::System, said, &mut statements);
    for message in &request.messages {
        match message {
            Message::System(message) => parts(Speaker::System, &message.content, &mut statements),
            Message::User(message) => parts(Speaker::User, &message.content, &mut statements),
            Message::Assistant(message) => {
                for content in &message.content {
                    block(content, |call| calls.call(call), &mut statements);
                }
                seals(&message.content, &mut statements);
            }
            Message::ToolResults(results) => {
                let mut results: Vec<_> =
                    results.results.iter().map(|result| (calls.result(result), result)).collect();
                // The order of results has no meaning: they name their calls.
                results.sort_by_key(|(number, _)| *number);
                for (number, result) in results {
                    let pairing =
                        number.map_or_else(|| "no call".to_owned(), |number| format!("call {number}"));
                    statements.push(Statement::non_text(Speaker::ToolResult, "result", pairing));
                    if result.outcome == ToolOutcome::Error {
                        statements.push(Statement::non_text(Speaker::ToolResult, "error", ""));
                    }
                    parts(Speaker::ToolResult, &result.content, &mut statements);
                }
            }
        }
    }
    statements.extend(request.tools.iter().filter(|tool| is_allowed(tool, request)).map(tool));
    settings(request, &mut statements);
    joined(statements)
}

/// The content of a request written for a host, with the client's tool names restored. Ids that the host would not
/// accept may differ from those of the original.
pub fn of_written(original: &TurnRequest, written: &TurnRequest, names: &NameMap) -> Vec<Statement> {
    let mut statements = of_conversation(written, CallNumbers::of(&original.messages));
    let own = |name: &str| names.to_client(name.into()).as_str().to_owned();
    for Statement { speaker, content } in &mut statements {
        let Content::NonText(kind, detail) = content else { continue };
        match speaker {
            Speaker::ToolCall | Speaker::OfferedTool => *kind = own(kind),
            Speaker::Setting if kind == "tool_choice" => *detail = own(detail),
            Speaker::System
            | Speaker::User
            | Speaker::ToolResult
            | Speaker::Assistant
            | Speaker::Refusal
            | Speaker::Reasoning
            | Speaker::Setting
            | Speaker::StopReason
            | Speaker::Usage => {}
        }
    }
    statements
}

/// The content of a reply.
pub fn of_reply(reply: &Reply) -> Vec<Statement> {
    let mut statements = Vec::new();
    for content in &reply.blocks {
        block(content, |call| call.id.as_str().to_owned(), &mut statements);
    }
    seals(&reply.blocks, &mut statements);
    let called = reply.blocks.iter().any(|block| matches!(block, Block::ToolCall(_)));
    statements.push(Statement::non_text(
        Speaker::StopReason,
        "stop",
        format!("{:?}", stop(&reply.finish.stop, called)),
    ));
    if let Some(usage) = &reply.finish.usage {
        statements.push(Statement::non_text(
            Speaker::Usage,
            "tokens",
            format!("{} {} {}", usage.total_input(), usage.cache_read, usage.output),
        ));
    }
    joined(statements)
}

/// Maps stop reasons to those that every dialect distinguishes. A call decides first, as in translation.
fn stop(stop: &StopReason, called: bool) -> StopReason {
    match stop {
        StopReason::MaxTokens | StopReason::ContextWindow => StopReason::MaxTokens,
        StopReason::Refusal | StopReason::ContentFilter => StopReason::Refusal,
        _ if called => StopReason::ToolUse,
        StopReason::EndTurn
        | StopReason::ToolUse
        | StopReason::StopSequence
        | StopReason::PauseTurn
        | StopReason::Other(_) => StopReason::EndTurn,
    }
}

fn parts<'p>(speaker: Speaker, parts: impl IntoIterator<Item = &'p Part>, statements: &mut Vec<Statement>) {
    for part in parts {
        match part {
            Part::Text(text) => statements.extend(Statement::text(speaker, &text.text)),
            Part::Image(image) => {
                statements.push(Statement::non_text(speaker, "image", source(&image.source)));
            }
            Part::Document(Document { source: Source::Text(text), name, .. }) => {
                // Dialects that write a text document as plain text put its name on the first line.
                statements.extend(name.as_deref().and_then(|name| Statement::text(speaker, name)));
                statements.extend(Statement::text(speaker, text));
            }
            Part::Document(Document { source: Source::Base64 { media_type, data }, name, .. })
                if media_type == "text/plain" =>
            {
                let text = BASE64_STANDARD.decode(data).unwrap_or_default();
                statements.extend(name.as_deref().and_then(|name| Statement::text(speaker, name)));
                statements.extend(Statement::text(speaker, &String::from_utf8_lossy(&text)));
            }
            Part::Document(document) => {
                statements.push(Statement::non_text(speaker, "document", source(&document.source)));
            }
            Part::Audio(audio) => statements.push(Statement::non_text(speaker, "audio", &audio.data)),
            // Identifies the client's account and is not part of the prompt.
            Part::Opaque(opaque) if opaque.kind == "x-anthropic-billing-header" => {}
            Part::Opaque(opaque) => statements.push(Statement::non_text(speaker, &opaque.kind, "")),
        }
    }
}

/// What identifies the bytes of an attachment.
fn source(source: &Source) -> String {
    match source {
        Source::Base64 { media_type, data } => format!("{media_type} {data}"),
        Source::Text(text) => text.clone(),
        Source::Url(url) => url.clone(),
        Source::File { provider, id } => format!("{provider} {id}"),
    }
}

/// The statements of a block. `id` identifies a call.
fn block<'a>(block: &'a Block, id: impl FnOnce(&'a ToolCall) -> String, statements: &mut Vec<Statement>) {
    match block {
        Block::Text(text) => statements.extend(Statement::text(Speaker::Assistant, &text.text)),
        Block::Refusal(text) => statements.extend(Statement::text(Speaker::Refusal, &text.text)),
        Block::Reasoning(reasoning) => {
            statements.extend(Statement::text(Speaker::Reasoning, &reasoning.text()));
        }
        Block::ToolCall(call) => {
            let detail = format!("{} {}", id(call), arguments(call));
            statements.push(Statement::non_text(Speaker::ToolCall, call.name.as_str(), detail));
        }
        Block::Opaque(opaque) => {
            statements.push(Statement::non_text(Speaker::Assistant, &opaque.kind, ""));
        }
    }
}

/// The data of a seal, also of one that travels as a token in a list of details.
fn sealed_data(piece: &str) -> String {
    let token = |detail: Value| SealToken::parse(detail.get("data")?.as_str()?);
    let token = serde_json::from_str(piece).ok().and_then(token);
    token.map_or_else(|| piece.to_owned(), |token| token.seal.data)
}

/// The seals of one message. A seal may be a list, and dialects with one list per message join them.
fn seals(blocks: &[Block], statements: &mut Vec<Statement>) {
    for block in blocks {
        let Block::Reasoning(Reasoning { seal: Some(seal), .. }) = block else { continue };
        // Without data it records only where the reasoning came from.
        if seal.data.is_empty() {
            continue;
        }
        let pieces = match serde_json::from_str(&seal.data) {
            Ok(Value::Array(pieces)) => pieces.iter().map(Value::to_string).collect(),
            Ok(_) | Err(_) => vec![seal.data.clone()],
        };
        let pieces =
            pieces.iter().map(|piece| Statement::non_text(Speaker::Reasoning, "seal", sealed_data(piece)));
        statements.extend(pieces);
    }
}

/// Hosts that cannot restrict the tools of a turn are offered only the allowed ones.
fn is_allowed(tool: &Tool, request: &TurnRequest) -> bool {
    let Some(allowed) = &request.tool_choice.allowed else { return true };
    tool.name().is_none_or(|name| {
        allowed
            .iter()
            .any(|allowed| matches!(allowed, AllowedTool::Named(allowed, _) if allowed.as_str() == name))
    })
}

fn tool(tool: &Tool) -> Statement {
    match tool {
        Tool::Function(function) => {
            let schema = function.schema.as_ref().map(JsonText::to_value);
            let description = function.description.as_deref().unwrap_or_default();
            let detail = format!("{description} {}", plain_schema(schema));
            Statement::non_text(Speaker::OfferedTool, function.name.as_str(), detail)
        }
        // Dialects without custom tools offer a function with the only parameter `input`.
        Tool::Custom(custom) => {
            let description = custom.description.as_deref().unwrap_or_default();
            let schema = json!({ "type": "object", "properties": { "input": {} } });
            let detail = format!("{description} {schema}");
            Statement::non_text(Speaker::OfferedTool, custom.name.as_str(), detail)
        }
        Tool::Provider(opaque) => Statement::non_text(Speaker::OfferedTool, &opaque.kind, "of its provider"),
    }
}

/// What a schema describes, without references: the properties, their types and allowed values. Writers move limits and
/// other rules that a host does not support into descriptions.
fn plain_schema(schema: Option<Value>) -> Value {
    let mut schema = schema.unwrap_or_else(|| json!({}));
    if let Some(flat) = references::inlined(&schema) {
        schema = flat.schema;
    }
    let mut plain = structure(&schema);
    let Some(fields) = plain.as_object_mut() else { return plain };
    fields.entry("type").or_insert_with(|| Value::from("object"));
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    // The parameter of a wrapped custom tool has no type.
    if properties.as_object().is_some_and(|all| all.len() == 1 && all.contains_key(CUSTOM_INPUT)) {
        return json!({ "type": "object", "properties": { CUSTOM_INPUT: {} } });
    }
    fields.sort_keys();
    plain
}

fn structure(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else { return schema.clone() };
    let mut plain = serde_json::Map::new();
    for (name, value) in fields {
        let value = match (name.as_str(), value) {
            ("type", Value::Array(types)) => {
                let types: Vec<&Value> = types.iter().filter(|kind| **kind != "null").collect();
                if let [only] = types.as_slice() { (*only).clone() } else { json!(types) }
            }
            ("type" | "enum", value) => value.clone(),
            ("properties", Value::Object(properties)) => {
                let mut all: serde_json::Map<String, Value> =
                    properties.iter().map(|(name, schema)| (name.clone(), structure(schema))).collect();
                all.sort_keys();
                Value::Object(all)
            }
            ("items", value) => structure(value),
            ("anyOf" | "oneOf" | "allOf", Value::Array(variants)) => variants.iter().map(structure).collect(),
            (_, _) => continue,
        };
        plain.insert(name.clone(), value);
    }
    plain.sort_keys();
    Value::Object(plain)
}

/// The only parameter of a wrapped custom tool.
const CUSTOM_INPUT: &str = "input";

/// Dialects without custom tools write a custom tool's text as the only field `input`.
fn arguments(call: &ToolCall) -> Value {
    if call.kind == CallKind::Custom {
        return Value::from(call.arguments.as_str());
    }
    match serde_json::from_str::<Value>(&call.arguments) {
        Ok(Value::Object(fields))
            if fields.len() == 1 && fields.get(CUSTOM_INPUT).is_some_and(Value::is_string) =>
        {
            fields[CUSTOM_INPUT].clone()
        }
        Ok(Value::Null) => json!({}),
        Err(_) if call.arguments.trim().is_empty() => json!({}),
        Ok(value) => value,
        Err(_) => Value::from(call.arguments.as_str()),
    }
}
