//! Reads a request (D1, D2).

use serde_json::Value;
use toolgate_model::{
    AssistantMessage, CallKind, Choice, Delivery, Extras, Fields, FunctionTool, JsonText, Losses, Message,
    Opaque, OutputFormat, Parallel, Part, ReasoningRequest, Sampling, SchemaFormat, SystemMessage,
    SystemRole, Tool, ToolChoice, ToolOutcome, ToolResult, ToolResults, Translated, TurnError, TurnRequest,
    UsageReport, UserMessage, pairing,
};

use super::ID;
use super::content_read::{read_input_block, read_output_block};
use super::wire::{
    BlockIn, ContentIn, MessageIn, RequestIn, RoleIn, ThinkingIn, ToolChoiceFields, ToolChoiceIn, ToolIn,
    ToolResultIn, extras,
};
use super::wire_output::OutputFormatIn;
use crate::json::{self, Unreadable};

/// The line that Claude Code puts before its system prompt. It differs in every request and is meant for Anthropic only;
/// sent to another host, it would defeat the prompt cache (T29).
const BILLING_HEADER: &str = "x-anthropic-billing-header";

/// The older field for the output format, and the mark of a format that came in it.
pub(super) const OUTPUT_FORMAT: &str = "output_format";

/// Reads a request to `/messages`. Does not match results with calls.
pub(super) fn read(body: &[u8]) -> Result<Translated<TurnRequest>, TurnError> {
    let request = parse(body)?;
    if request.max_tokens.is_none() {
        return Err(TurnError::invalid_param(
            "max_tokens",
            "max_tokens: field required: set the maximum number of output tokens, for example 1024",
        ));
    }
    convert(request)
}

/// Reads a request to `/messages/count_tokens`, which has no `max_tokens`.
pub(super) fn read_to_count(body: &[u8]) -> Result<Translated<TurnRequest>, TurnError> {
    let read = convert(parse(body)?)?;
    pairing::check(&read.value.messages)?; // D2
    Ok(read)
}

fn parse(body: &[u8]) -> Result<RequestIn, TurnError> {
    json::read(body).map_err(unreadable)
}

/// The error for a body that cannot be parsed.
pub(super) fn unreadable(Unreadable { path, cause }: Unreadable) -> TurnError {
    match path {
        None => TurnError::invalid(format!("reading the request body: {cause}; send one JSON object"))
            .caused_by(cause),
        Some(path) => TurnError::invalid_param(path.clone(), format!("{path}: {cause}")).caused_by(cause),
    }
}

fn convert(request: RequestIn) -> Result<Translated<TurnRequest>, TurnError> {
    let RequestIn {
        model,
        messages,
        max_tokens,
        system,
        tools,
        tool_choice,
        stop_sequences,
        stream,
        temperature,
        top_p,
        top_k,
        thinking,
        output_config,
        output_format,
        metadata,
        mut extra,
    } = request;
    let mut losses = Losses::default();
    let mut turns = Vec::with_capacity(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
        read_message(index, message, &mut turns, &mut losses)?;
    }

    let mut effort = None;
    let mut output = OutputFormat::Text;
    match output_format {
        Some(OutputFormatIn::JsonSchema { schema, extra }) => {
            output = schema_output(schema, extra, Some(OUTPUT_FORMAT));
        }
        Some(OutputFormatIn::Other(format)) => {
            extra.insert(OUTPUT_FORMAT.to_owned(), Value::Object(format.fields));
        }
        None => {}
    }
    if let Some(config) = output_config {
        let mut rest = config.extra;
        effort = config.effort;
        match config.format {
            Some(OutputFormatIn::JsonSchema { schema, extra }) => output = schema_output(schema, extra, None),
            Some(OutputFormatIn::Other(format)) => {
                rest.insert("format".to_owned(), Value::Object(format.fields));
            }
            None => {}
        }
        keep_rest("output_config", rest, &mut extra);
    }
    let mut user = None;
    if let Some(metadata) = metadata {
        user = metadata.user_id;
        keep_rest("metadata", metadata.extra, &mut extra);
    }
    let system = system.map_or_else(|| Ok(Vec::new()), |content| read_parts(content, "system"))?;

    let mut turn = TurnRequest::new(model, turns);
    turn.system = system.into_iter().map(mark_billing_header).collect();
    turn.tools = tools.unwrap_or_default().into_iter().map(read_tool).collect();
    turn.tool_choice = tool_choice.map_or_else(ToolChoice::default, read_tool_choice);
    turn.max_output = max_tokens;
    turn.sampling = Sampling {
        temperature,
        top_p,
        top_k,
        stop: stop_sequences.unwrap_or_default(),
        ..Sampling::default()
    };
    turn.reasoning = read_reasoning(thinking, effort);
    turn.output = output;
    if stream == Some(true) {
        turn.delivery = Delivery::Stream(UsageReport::Default);
    }
    turn.user = user;
    // The default of every host.
    let has_default_tier = extra.get("service_tier").is_some_and(|tier| tier == "auto");
    turn.extras = extras(extra).envelope_fields(if has_default_tier { &["service_tier"] } else { &[] });
    Ok(Translated { value: turn, losses })
}

/// The format, marked if it came in the older field.
fn schema_output(schema: JsonText, extra: Fields, mark: Option<&'static str>) -> OutputFormat {
    let mut extras = extras(extra);
    if let Some(mark) = mark {
        extras.mark(ID, mark);
    }
    let (name, description, strict) = (None, None, None);
    OutputFormat::JsonSchema(SchemaFormat { name, description, schema, strict, extras })
}

/// Stores the unknown fields of a nested object among the request's unknown fields.
fn keep_rest(name: &str, mut rest: Fields, extra: &mut Fields) {
    rest.retain(|_, value| !value.is_null());
    if !rest.is_empty() {
        extra.insert(name.to_owned(), Value::Object(rest));
    }
}

fn read_message(
    index: usize,
    message: MessageIn,
    turns: &mut Vec<Message>,
    losses: &mut Losses,
) -> Result<(), TurnError> {
    let MessageIn { role, content, extra } = message;
    match role {
        RoleIn::System => turns.push(Message::System(SystemMessage {
            role: SystemRole::System,
            content: read_parts(content, &format!("messages[{index}].content"))?,
            extras: extras(extra),
        })),
        RoleIn::Assistant => {
            let mut blocks = Vec::new();
            for (at, block) in content.into_blocks().into_iter().enumerate() {
                blocks.push(read_output_block(block).map_err(|kind| {
                    misplaced(
                        &format!("messages[{index}].content[{at}]"),
                        &format!("a {kind} belongs in a user message, not in an assistant message"),
                    )
                })?);
            }
            turns.push(Message::Assistant(AssistantMessage { content: blocks, extras: extras(extra) }));
        }
        RoleIn::User => read_user(index, content, extras(extra), turns, losses)?,
    }
    Ok(())
}

/// Splits a user message into runs of results and runs of other content, in order (T25).
fn read_user(
    index: usize,
    content: ContentIn,
    extras: Extras,
    turns: &mut Vec<Message>,
    losses: &mut Losses,
) -> Result<(), TurnError> {
    let first = turns.len();
    for (at, block) in content.into_blocks().into_iter().enumerate() {
        let path = format!("messages[{index}].content[{at}]");
        if let BlockIn::ToolResult(result) = block {
            let result = read_result(result, &path)?;
            match turns.get_mut(first..).and_then(<[Message]>::last_mut) {
                Some(Message::ToolResults(run)) => run.results.push(result),
                _ => turns.push(Message::ToolResults(ToolResults { results: vec![result] })),
            }
            continue;
        }
        let part = read_input_block(block).map_err(|kind| {
            misplaced(&path, &format!("a {kind} belongs in an assistant message, not in a user message"))
        })?;
        match turns.get_mut(first..).and_then(<[Message]>::last_mut) {
            Some(Message::User(run)) => run.content.push(part),
            _ => turns.push(Message::User(UserMessage { content: vec![part], extras: Extras::NONE })),
        }
    }
    if turns.len() == first {
        turns.push(Message::User(UserMessage { content: Vec::new(), extras }));
        return Ok(());
    }
    let text = turns[first..].iter_mut().find_map(|message| match message {
        Message::User(user) => Some(user),
        Message::System(_) | Message::Assistant(_) | Message::ToolResults(_) => None,
    });
    match text {
        Some(user) => user.extras = extras,
        None if extras.is_empty() => {}
        None => {
            losses
                .add(format!("messages[{index}]"), "unknown fields of a message that contains only results");
        }
    }
    Ok(())
}

fn read_result(result: ToolResultIn, path: &str) -> Result<ToolResult, TurnError> {
    let ToolResultIn { tool_use_id, content, is_error, extra } = result;
    let content =
        content.map_or_else(|| Ok(Vec::new()), |content| read_parts(content, &format!("{path}.content")))?;
    Ok(ToolResult {
        call: tool_use_id.into(),
        kind: CallKind::Function,
        content,
        outcome: if is_error == Some(true) { ToolOutcome::Error } else { ToolOutcome::Success },
        extras: extras(extra),
    })
}

fn read_parts(content: ContentIn, path: &str) -> Result<Vec<Part>, TurnError> {
    let blocks = content.into_blocks().into_iter().enumerate();
    blocks
        .map(|(at, block)| {
            read_input_block(block)
                .map_err(|kind| misplaced(&format!("{path}[{at}]"), &format!("a {kind} is not allowed here")))
        })
        .collect()
}

fn misplaced(path: &str, why: &str) -> TurnError {
    TurnError::invalid_param(path, format!("{path}: {why}"))
}

fn mark_billing_header(part: Part) -> Part {
    let Part::Text(text) = part else { return part };
    if !text.text.starts_with(BILLING_HEADER) || text.text.trim_end().contains('\n') {
        return Part::Text(text);
    }
    let mut fields = Fields::new();
    fields.insert("type".to_owned(), Value::from("text"));
    fields.insert("text".to_owned(), Value::from(text.text));
    fields.extend(text.extras.known_to(ID).cloned().unwrap_or_default());
    Part::Opaque(Opaque { dialect: ID, kind: BILLING_HEADER.to_owned(), fields })
}

/// Reads `thinking` and `output_config.effort`.
fn read_reasoning(thinking: Option<ThinkingIn>, effort: Option<String>) -> Option<ReasoningRequest> {
    match (thinking, effort) {
        (None, None) => None,
        (None, effort) => Some(ReasoningRequest { effort, ..ReasoningRequest::default() }),
        (Some(thinking), effort) => Some(ReasoningRequest {
            effort,
            budget: thinking.budget_tokens,
            mode: Some(thinking.mode),
            summary: None,
            extras: extras(thinking.extra),
        }),
    }
}

fn read_tool(tool: ToolIn) -> Tool {
    match tool {
        ToolIn::Function(tool) => Tool::Function(FunctionTool {
            name: tool.name.into(),
            description: tool.description,
            schema: tool.input_schema,
            strict: tool.strict,
            // Marked even without fields: a schema of this dialect is written back unchanged.
            extras: Extras::marked(
                ID,
                tool.extra.into_iter().filter(|(_, value)| !value.is_null()).collect(),
            )
            .envelope_fields(&["defer_loading"]),
        }),
        ToolIn::Provider(opaque) => Tool::Provider(opaque),
    }
}

fn read_tool_choice(choice: ToolChoiceIn) -> ToolChoice {
    let (choice, rest) = match choice {
        ToolChoiceIn::Auto(rest) => (Choice::Auto, rest),
        ToolChoiceIn::Any(rest) => (Choice::Any, rest),
        ToolChoiceIn::None(rest) => (Choice::None, rest),
        ToolChoiceIn::Tool(named) => (Choice::Named(named.name.into(), CallKind::Function), named.rest),
        ToolChoiceIn::Other(opaque) => {
            let disabled = opaque.fields.get("disable_parallel_tool_use").and_then(Value::as_bool);
            return ToolChoice {
                choice: Some(Choice::Provider(opaque)),
                parallel: disabled.map(read_parallel),
                ..ToolChoice::default()
            };
        }
    };
    let ToolChoiceFields { disable_parallel_tool_use, extra } = rest;
    let parallel = disable_parallel_tool_use.map(read_parallel);
    ToolChoice { choice: Some(choice), parallel, extras: extras(extra), ..ToolChoice::default() }
}

fn read_parallel(is_disabled: bool) -> Parallel {
    if is_disabled { Parallel::Forbidden } else { Parallel::Allowed }
}
