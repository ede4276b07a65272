//! The dialect-independent content of a request or reply: texts, reasoning, calls, results and settings.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use toolgate_model::tool::AllowedTool;
use toolgate_model::{
    Block, Document, Message, Part, Reasoning, Reply, SealToken, Source, StopReason, Tool, ToolCall,
    ToolOutcome, TurnRequest,
};

mod call_numbers;
mod settings;
mod tools;

use call_numbers::CallNumbers;
use settings::settings;
use toolgate_dialect::NameMap;
pub(crate) use tools::parsed;

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
                    block(content, |call| (calls.call(call), tools::arguments(call)), &mut statements);
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
    for tool in request.tools.iter().filter(|tool| is_allowed(tool, request)) {
        tools::tool(tool, &mut statements);
    }
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
        let call = |call: &ToolCall| (call.id.as_str().to_owned(), tools::unwrapped_arguments(call));
        block(content, call, &mut statements);
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
                let detail = image.detail.as_deref().filter(|detail| *detail != "auto");
                statements.extend(detail.map(|detail| Statement::non_text(speaker, "image.detail", detail)));
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

/// The statements of a block. `call` gives what identifies a call, and its arguments.
fn block<'a>(
    block: &'a Block,
    call: impl FnOnce(&'a ToolCall) -> (String, String),
    statements: &mut Vec<Statement>,
) {
    match block {
        Block::Text(text) => statements.extend(Statement::text(Speaker::Assistant, &text.text)),
        Block::Refusal(text) => statements.extend(Statement::text(Speaker::Refusal, &text.text)),
        Block::Reasoning(reasoning) => {
            statements.extend(Statement::text(Speaker::Reasoning, &reasoning.text()));
        }
        Block::ToolCall(made) => {
            let (id, arguments) = call(made);
            let name = made.name.as_str();
            statements.push(Statement::non_text(Speaker::ToolCall, name, format!("call {id}")));
            statements.push(Statement::non_text(Speaker::ToolCall, name, arguments));
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
