//! The dialect-independent content of a request or reply: texts, reasoning, calls, results and settings.

use serde_json::Value;
use toolgate_model::{
    Block, Choice, Document, Message, OutputFormat, Part, Reply, Sampling, Source, StopReason, Tool,
    ToolCall, ToolOutcome, TurnRequest,
};

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
    let mut statements = Vec::new();
    // Opaque parts of the system prompt are telemetry of the client (T29).
    let said = request.system.iter().filter(|part| !matches!(part, Part::Opaque(_)));
    parts(Speaker::System, said, &mut statements);
    for message in &request.messages {
        match message {
            Message::System(message) => parts(Speaker::System, &message.content, &mut statements),
            Message::User(message) => parts(Speaker::User, &message.content, &mut statements),
            Message::Assistant(message) => statements.extend(message.content.iter().filter_map(block)),
            Message::ToolResults(results) => {
                for result in &results.results {
                    if result.outcome == ToolOutcome::Error {
                        statements.push(Statement::non_text(Speaker::ToolResult, "error", ""));
                    }
                    parts(Speaker::ToolResult, &result.content, &mut statements);
                }
            }
        }
    }
    statements.extend(request.tools.iter().map(tool));
    settings(request, &mut statements);
    joined(statements)
}

/// The content of a request written for a host, with the client's tool names restored.
pub fn of_written(request: &TurnRequest, names: &NameMap) -> Vec<Statement> {
    let mut statements = of_request(request);
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
    let mut statements: Vec<Statement> = reply.blocks.iter().filter_map(block).collect();
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
            format!("{} {}", usage.total_input(), usage.output),
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
            Part::Image(_) => statements.push(Statement::non_text(speaker, "image", "")),
            Part::Document(Document { source: Source::Text(text), name, .. }) => {
                // Dialects that write a text document as plain text put its name on the first line.
                statements.extend(name.as_deref().and_then(|name| Statement::text(speaker, name)));
                statements.extend(Statement::text(speaker, text));
            }
            Part::Document(Document { source: Source::Url(url), .. }) => {
                statements.push(Statement::non_text(speaker, "document", url));
            }
            Part::Document(_) => statements.push(Statement::non_text(speaker, "document", "")),
            Part::Audio(_) => statements.push(Statement::non_text(speaker, "audio", "")),
            Part::Opaque(opaque) => statements.push(Statement::non_text(speaker, &opaque.kind, "")),
        }
    }
}

fn block(block: &Block) -> Option<Statement> {
    match block {
        Block::Text(text) => Statement::text(Speaker::Assistant, &text.text),
        Block::Refusal(text) => Statement::text(Speaker::Refusal, &text.text),
        Block::Reasoning(reasoning) => Statement::text(Speaker::Reasoning, &reasoning.text()),
        Block::ToolCall(call) => {
            Some(Statement::non_text(Speaker::ToolCall, call.name.as_str(), arguments(call).to_string()))
        }
        Block::Opaque(opaque) => Some(Statement::non_text(Speaker::Assistant, &opaque.kind, "")),
    }
}

fn tool(tool: &Tool) -> Statement {
    match tool {
        Tool::Function(_) | Tool::Custom(_) => {
            Statement::non_text(Speaker::OfferedTool, tool.name().unwrap_or_default(), "offered")
        }
        Tool::Provider(opaque) => Statement::non_text(Speaker::OfferedTool, &opaque.kind, "of its provider"),
    }
}

/// The request's settings, under the names that loss reports use.
fn settings(request: &TurnRequest, statements: &mut Vec<Statement>) {
    let Sampling { temperature, top_p, top_k, frequency_penalty, presence_penalty, seed, stop } =
        &request.sampling;
    let numbers = [
        ("temperature", temperature),
        ("top_p", top_p),
        ("top_k", top_k),
        ("frequency_penalty", frequency_penalty),
        ("presence_penalty", presence_penalty),
        ("seed", seed),
    ];
    for (name, number) in numbers {
        let number = number.as_ref().and_then(serde_json::Number::as_f64);
        statements
            .extend(number.map(|number| Statement::non_text(Speaker::Setting, name, number.to_string())));
    }
    statements.extend(stop.iter().map(|text| Statement::non_text(Speaker::Setting, "stop", text)));
    let several = request.samples.filter(|samples| *samples > 1);
    statements.extend(several.map(|samples| Statement::non_text(Speaker::Setting, "n", samples.to_string())));
    // Without tools a choice has no effect.
    if let Some(choice) = request.tool_choice.choice.as_ref().filter(|_| !request.tools.is_empty()) {
        statements.extend(choice_of(choice));
    }
    match &request.output {
        OutputFormat::Text => {}
        OutputFormat::JsonObject => {
            statements.push(Statement::non_text(Speaker::Setting, "response_format", "JSON"));
        }
        OutputFormat::JsonSchema(format) => {
            statements.push(Statement::non_text(
                Speaker::Setting,
                "response_format",
                format.schema.to_value().to_string(),
            ));
        }
    }
}

fn choice_of(choice: &Choice) -> Option<Statement> {
    let setting = |detail: String| Some(Statement::non_text(Speaker::Setting, "tool_choice", detail));
    match choice {
        // The default.
        Choice::Auto => None,
        Choice::Any => setting("any".to_owned()),
        Choice::None => setting("none".to_owned()),
        Choice::Named(name, _) => setting(name.as_str().to_owned()),
        Choice::Provider(opaque) => Some(Statement::non_text(Speaker::Setting, &opaque.kind, "")),
    }
}

/// Dialects without custom tools write a custom tool's text as the only field `input`.
fn arguments(call: &ToolCall) -> Value {
    match serde_json::from_str::<Value>(&call.arguments) {
        Ok(Value::Object(fields))
            if fields.len() == 1 && fields.get("input").is_some_and(Value::is_string) =>
        {
            fields["input"].clone()
        }
        Ok(Value::Null) | Err(_) if call.arguments.trim().is_empty() => Value::Object(serde_json::Map::new()),
        Ok(value) => value,
        Err(_) => Value::from(call.arguments.as_str()),
    }
}
