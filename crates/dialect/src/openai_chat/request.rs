//! Reads a request.

use std::collections::HashSet;

use serde_json::Value;
use toolgate_model::{
    AssistantMessage, Block, CallId, CallKind, Delivery, Fields, Losses, Message, OutputFormat,
    ReasoningRequest, Retention, Sampling, SchemaFormat, SystemMessage, ToolOutcome, ToolResult, ToolResults,
    Translated, TurnError, TurnRequest, UsageReport, UserMessage,
};

use super::either::TextOr;
use super::fields::{extras, marked_extras, nested_extras};
use super::wire::{
    FormatIn, FunctionResultIn, MessageIn, PlainIn, RequestIn, SchemaIn, StreamOptionsIn, ToolResultIn,
};
use super::{ID, assistant, content, marks, tools};
use crate::json::{self, Unreadable};

/// Reads a request body; an error names the field at fault.
pub(super) fn read(body: &[u8]) -> Result<Translated<TurnRequest>, TurnError> {
    let wire: RequestIn = json::read(body).map_err(unreadable)?;
    if wire.messages.is_empty() {
        return Err(TurnError::invalid_param("messages", "messages: give at least one message"));
    }
    translate(wire)
}

/// The error for a body that cannot be parsed.
pub(super) fn unreadable(Unreadable { place, cause }: Unreadable) -> TurnError {
    if cause.is_syntax() || cause.is_eof() {
        return TurnError::invalid(format!("the request body is not valid JSON: {cause}")).caused_by(cause);
    }
    match place {
        None => TurnError::invalid(format!("the request body cannot be read: {cause}")).caused_by(cause),
        Some(place) => TurnError::invalid_param(place.clone(), format!("{place}: {cause}")).caused_by(cause),
    }
}

fn translate(wire: RequestIn) -> Result<Translated<TurnRequest>, TurnError> {
    let RequestIn {
        model,
        messages,
        tools,
        functions,
        tool_choice,
        function_call,
        parallel_tool_calls,
        max_tokens,
        max_completion_tokens,
        temperature,
        top_p,
        top_k,
        frequency_penalty,
        presence_penalty,
        seed,
        stop,
        response_format,
        reasoning_effort,
        stream,
        stream_options,
        n,
        user,
        safety_identifier,
        store,
        mut extra,
    } = wire;
    let mut kept = Vec::from([marks::NATIVE]);
    let is_legacy = functions.is_some() || function_call.is_some();
    kept.extend(is_legacy.then_some(marks::LEGACY));
    let max_output = match (max_completion_tokens, max_tokens) {
        (Some(limit), also) => {
            extra.extend(also.map(|also| ("max_tokens".to_owned(), Value::from(also))));
            Some(limit)
        }
        (None, limit) => {
            kept.extend(limit.map(|_| marks::MAX_TOKENS));
            limit
        }
    };
    let stop = match stop {
        Some(TextOr::Text(text)) => {
            kept.push(marks::STOP_STRING);
            vec![text]
        }
        Some(TextOr::List(texts)) => texts,
        None => Vec::new(),
    };
    let user = match (user, safety_identifier) {
        (Some(user), also) => {
            extra.extend(also.map(|also| ("safety_identifier".to_owned(), Value::from(also))));
            Some(user)
        }
        (None, user) => {
            kept.extend(user.as_ref().map(|_| marks::SAFETY_IDENTIFIER));
            user
        }
    };
    let output = read_format(response_format, &mut extra, &mut kept);
    let delivery = read_delivery(stream, stream_options, &mut extra);
    let mut request = TurnRequest::new(model, read_conversation(messages));
    request.tool_choice = tools::read_choice(tool_choice, function_call, parallel_tool_calls)?;
    request.tools = tools::read(tools, functions);
    request.max_output = max_output;
    request.sampling =
        Sampling { temperature, top_p, top_k, frequency_penalty, presence_penalty, seed, stop };
    request.reasoning =
        reasoning_effort.map(|effort| ReasoningRequest { effort: Some(effort), ..Default::default() });
    request.output = output;
    request.delivery = delivery;
    request.samples = n;
    request.user = user;
    request.retention = store.map(|keep| if keep { Retention::Keep } else { Retention::Discard });
    request.extras = marked_extras(extra, kept);
    Ok(Translated { value: request, losses: Losses::default() })
}

fn read_format(format: Option<FormatIn>, extra: &mut Fields, kept: &mut Vec<&'static str>) -> OutputFormat {
    let (format, beside) = match format {
        None => return OutputFormat::Text,
        Some(FormatIn::Text(beside)) => {
            kept.push(marks::TEXT_FORMAT);
            (OutputFormat::Text, beside)
        }
        Some(FormatIn::JsonObject(beside)) => (OutputFormat::JsonObject, beside),
        Some(FormatIn::JsonSchema { json_schema, extra: beside }) => {
            let SchemaIn { name, description, schema, strict, extra: inner } = json_schema;
            let schema = schema.unwrap_or_else(toolgate_model::JsonText::empty_object);
            let extras = nested_extras(beside, "json_schema", inner);
            return OutputFormat::JsonSchema(SchemaFormat { name, description, schema, strict, extras });
        }
    };
    if !beside.is_empty() {
        extra.insert("response_format".to_owned(), Value::Object(beside));
    }
    format
}

fn read_delivery(stream: Option<bool>, options: Option<StreamOptionsIn>, extra: &mut Fields) -> Delivery {
    let StreamOptionsIn { include_usage, extra: beside } =
        options.unwrap_or(StreamOptionsIn { include_usage: None, extra: Fields::new() });
    if !beside.is_empty() {
        extra.insert("stream_options".to_owned(), Value::Object(beside));
    }
    if stream != Some(true) {
        return Delivery::Whole;
    }
    Delivery::Stream(match include_usage {
        None => UsageReport::Default,
        Some(true) => UsageReport::Included,
        Some(false) => UsageReport::Omitted,
    })
}

fn read_conversation(messages: Vec<MessageIn>) -> Vec<Message> {
    let mut conversation = Conversation::default();
    for message in messages {
        conversation.push(message);
    }
    conversation.messages
}

#[derive(Default)]
struct Conversation {
    messages: Vec<Message>,
    /// Results do not say what kind of call they answer.
    custom_calls: HashSet<String>,
    /// Legacy calls have no id: the tool's name and the id it was given here.
    legacy_calls: Vec<(String, CallId)>,
}

impl Conversation {
    fn push(&mut self, message: MessageIn) {
        match message {
            // T29: in place, wherever it stands.
            MessageIn::System(role, PlainIn { content, extra }) => {
                let message = SystemMessage { role, content: content::read(content), extras: extras(extra) };
                self.messages.push(Message::System(message));
            }
            MessageIn::User(PlainIn { content, extra }) => {
                let message = UserMessage { content: content::read(content), extras: extras(extra) };
                self.messages.push(Message::User(message));
            }
            MessageIn::Assistant(message) => {
                let at = self.messages.len();
                let said = assistant::read(*message, |call| format!("call_{at}_{call}"));
                self.note_calls(&said.blocks);
                let message = AssistantMessage { content: said.blocks, extras: said.extras };
                self.messages.push(Message::Assistant(message));
            }
            MessageIn::Tool(ToolResultIn { tool_call_id, content, extra }) => {
                let kind = if self.custom_calls.contains(&tool_call_id) {
                    CallKind::Custom
                } else {
                    CallKind::Function
                };
                let call = self.named(tool_call_id);
                self.result(ToolResult {
                    call,
                    kind,
                    content: content::read(content),
                    outcome: ToolOutcome::Success,
                    extras: extras(extra),
                });
            }
            MessageIn::Function(FunctionResultIn { name, content, extra }) => {
                let call = self.legacy_call(&name);
                let mut extras = extras(extra);
                extras.mark(ID, marks::LEGACY);
                self.result(ToolResult {
                    call,
                    kind: CallKind::Function,
                    content: content::read(content),
                    outcome: ToolOutcome::Success,
                    extras,
                });
            }
        }
    }

    fn note_calls(&mut self, blocks: &[Block]) {
        for block in blocks {
            let Block::ToolCall(call) = block else { continue };
            if call.kind == CallKind::Custom {
                self.custom_calls.insert(call.id.as_str().to_owned());
            }
            if call.extras.is_marked(ID, marks::LEGACY) || call.extras.is_marked(ID, marks::NO_ID) {
                self.legacy_calls.push((call.name.as_str().to_owned(), call.id.clone()));
            }
        }
    }

    /// Results that follow one another came together.
    fn result(&mut self, result: ToolResult) {
        match self.messages.last_mut() {
            Some(Message::ToolResults(results)) => results.results.push(result),
            _ => self.messages.push(Message::ToolResults(ToolResults { results: vec![result] })),
        }
    }

    /// T23: a result without an id answers the oldest call without one.
    fn named(&mut self, id: String) -> CallId {
        if id.is_empty() && !self.legacy_calls.is_empty() {
            return self.legacy_calls.remove(0).1;
        }
        CallId::from(id)
    }

    fn legacy_call(&mut self, name: &str) -> CallId {
        match self.legacy_calls.iter().position(|(called, _)| called == name) {
            Some(at) => self.legacy_calls.remove(at).1,
            None => CallId::from(name),
        }
    }
}
