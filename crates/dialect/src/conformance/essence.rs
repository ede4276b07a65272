//! What a request or reply says in any dialect: the texts, thoughts, calls, results and wishes, without the wrapping.

use serde_json::Value;
use toolgate_model::{
    Block, Choice, Document, Message, OutputFormat, Part, Reply, Sampling, Source, StopReason, Tool,
    ToolCall, ToolOutcome, TurnRequest,
};

use crate::NameMap;

/// One thing that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Who said it, or what it is about.
    pub who: Who,
    /// What it is.
    pub what: What,
}

/// Who says something, or what is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Whoever instructs the model.
    System,
    /// The user.
    User,
    /// A tool, in a result.
    Result,
    /// The model.
    Assistant,
    /// The model, saying no.
    Refusal,
    /// The model, to itself.
    Thought,
    /// A call.
    Call,
    /// A tool on offer.
    Tool,
    /// How the answer is to be made.
    Wish,
    /// Why a reply ended.
    Stop,
    /// What a reply cost.
    Tokens,
}

/// What was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Words, without the spaces between them: dialects join texts differently.
    Text(String),
    /// A picture, a file, a block of one dialect: its kind, and what tells it from others.
    Thing(String, String),
}

impl Said {
    fn thing(who: Who, kind: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { who, what: What::Thing(kind.into(), detail.into()) }
    }

    fn text(who: Who, text: &str) -> Option<Self> {
        let squeezed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        (!squeezed.is_empty()).then_some(Self { who, what: What::Text(squeezed) })
    }
}

/// Joins adjacent texts of one speaker: dialects cut them differently.
pub fn joined(said: impl IntoIterator<Item = Said>) -> Vec<Said> {
    let mut all: Vec<Said> = Vec::new();
    for next in said {
        match (all.last_mut(), &next.what) {
            (Some(Said { who, what: What::Text(text) }), What::Text(more)) if *who == next.who => {
                text.push_str(more);
            }
            _ => all.push(next),
        }
    }
    all
}

/// What a conversation says.
pub fn of_request(request: &TurnRequest) -> Vec<Said> {
    let mut said = Vec::new();
    parts(Who::System, &request.system, &mut said);
    for message in &request.messages {
        match message {
            Message::System(message) => parts(Who::System, &message.content, &mut said),
            Message::User(message) => parts(Who::User, &message.content, &mut said),
            Message::Assistant(message) => said.extend(message.content.iter().filter_map(block)),
            Message::ToolResults(results) => {
                for result in &results.results {
                    if result.outcome == ToolOutcome::Error {
                        said.push(Said::thing(Who::Result, "error", ""));
                    }
                    parts(Who::Result, &result.content, &mut said);
                }
            }
        }
    }
    said.extend(request.tools.iter().map(tool));
    wishes(request, &mut said);
    joined(said)
}

/// What a conversation that was written for a host says, with the names its client knows.
pub fn of_written(request: &TurnRequest, names: &NameMap) -> Vec<Said> {
    let mut said = of_request(request);
    let own = |name: &str| names.to_client(name.into()).as_str().to_owned();
    for Said { who, what } in &mut said {
        let What::Thing(kind, detail) = what else { continue };
        match who {
            Who::Call | Who::Tool => *kind = own(kind),
            Who::Wish if kind == "tool_choice" => *detail = own(detail),
            Who::System
            | Who::User
            | Who::Result
            | Who::Assistant
            | Who::Refusal
            | Who::Thought
            | Who::Wish
            | Who::Stop
            | Who::Tokens => {}
        }
    }
    said
}

/// What a reply says.
pub fn of_reply(reply: &Reply) -> Vec<Said> {
    let mut said: Vec<Said> = reply.blocks.iter().filter_map(block).collect();
    let called = reply.blocks.iter().any(|block| matches!(block, Block::ToolCall(_)));
    said.push(Said::thing(Who::Stop, "stop", format!("{:?}", stop(&reply.finish.stop, called))));
    if let Some(usage) = &reply.finish.usage {
        said.push(Said::thing(Who::Tokens, "tokens", format!("{} {}", usage.total_input(), usage.output)));
    }
    joined(said)
}

/// Dialects tell different endings apart; calls decide first, as they do when a reply crosses dialects.
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

fn parts(who: Who, parts: &[Part], said: &mut Vec<Said>) {
    for part in parts {
        match part {
            Part::Text(text) => said.extend(Said::text(who, &text.text)),
            Part::Image(_) => said.push(Said::thing(who, "image", "")),
            Part::Document(Document { source: Source::Text(text), name, .. }) => {
                // Where a document is text, its name is the first line of it.
                said.extend(name.as_deref().and_then(|name| Said::text(who, name)));
                said.extend(Said::text(who, text));
            }
            Part::Document(Document { source: Source::Url(url), .. }) => {
                said.push(Said::thing(who, "document", url));
            }
            Part::Document(_) => said.push(Said::thing(who, "document", "")),
            Part::Audio(_) => said.push(Said::thing(who, "audio", "")),
            Part::Opaque(opaque) => said.push(Said::thing(who, &opaque.kind, "")),
        }
    }
}

fn block(block: &Block) -> Option<Said> {
    match block {
        Block::Text(text) => Said::text(Who::Assistant, &text.text),
        Block::Refusal(text) => Said::text(Who::Refusal, &text.text),
        Block::Reasoning(reasoning) => Said::text(Who::Thought, &reasoning.text()),
        Block::ToolCall(call) => {
            Some(Said::thing(Who::Call, call.name.as_str(), arguments(call).to_string()))
        }
        Block::Opaque(opaque) => Some(Said::thing(Who::Assistant, &opaque.kind, "")),
    }
}

fn tool(tool: &Tool) -> Said {
    match tool {
        Tool::Function(_) | Tool::Custom(_) => {
            Said::thing(Who::Tool, tool.name().unwrap_or_default(), "offered")
        }
        Tool::Provider(opaque) => Said::thing(Who::Tool, &opaque.kind, "of its provider"),
    }
}

/// What was asked for beside the conversation, under the names that losses have.
fn wishes(request: &TurnRequest, said: &mut Vec<Said>) {
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
        said.extend(number.map(|number| Said::thing(Who::Wish, name, number.to_string())));
    }
    said.extend(stop.iter().map(|text| Said::thing(Who::Wish, "stop", text)));
    let several = request.samples.filter(|samples| *samples > 1);
    said.extend(several.map(|samples| Said::thing(Who::Wish, "n", samples.to_string())));
    // Among no tools a choice means nothing.
    if let Some(choice) = request.tool_choice.choice.as_ref().filter(|_| !request.tools.is_empty()) {
        said.extend(choice_of(choice));
    }
    match &request.output {
        OutputFormat::Text => {}
        OutputFormat::JsonObject => said.push(Said::thing(Who::Wish, "response_format", "JSON")),
        OutputFormat::JsonSchema(format) => {
            said.push(Said::thing(Who::Wish, "response_format", format.schema.to_value().to_string()));
        }
    }
}

fn choice_of(choice: &Choice) -> Option<Said> {
    let wish = |detail: String| Some(Said::thing(Who::Wish, "tool_choice", detail));
    match choice {
        // What a model does where nothing is said.
        Choice::Auto => None,
        Choice::Any => wish("any".to_owned()),
        Choice::None => wish("none".to_owned()),
        Choice::Named(name, _) => wish(name.as_str().to_owned()),
        Choice::Provider(opaque) => Some(Said::thing(Who::Wish, &opaque.kind, "")),
    }
}

/// A dialect without custom tools wraps their text as the only field `input`.
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
