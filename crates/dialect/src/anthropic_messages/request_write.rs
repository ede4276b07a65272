//! Writes a request for a host.

use serde::Serialize;
use serde_json::{Number, Value};
use toolgate_model::pairing;
use toolgate_model::{
    CallKind, Choice, CustomTool, Delivery, Fields, FunctionTool, JsonText, Losses, OutputFormat, Parallel,
    Sampling, SchemaFormat, Tool, ToolChoice, TurnError, TurnRequest,
};

use super::ID;
use super::request_read::OUTPUT_FORMAT;
use super::request_write_messages::{self, Conversation, MessageOut};
use super::request_write_thinking::{self, ThinkingOut};
use super::wire::BlockOut;
use crate::host::HostProfile;
use crate::host::fit::DEFAULT_MAX_OUTPUT;
use crate::names::host_names;
use crate::{NameMap, RequestForm, WrittenRequest};

/// How many blocks may carry a cache mark (T36).
const MAX_CACHE_MARKS: usize = 4;
/// The field that marks a block for caching.
const CACHE_MARK: &str = "cache_control";

#[derive(Serialize)]
struct RequestOut<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<BlockOut<'a>>,
    messages: Vec<MessageOut<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Fields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfigOut<'a>>,
    #[serde(flatten)]
    sampling: SamplingOut<'a>,
    #[serde(skip_serializing_if = "Fields::is_empty")]
    metadata: Fields,
    stream: bool,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Default, Serialize)]
struct SamplingOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<&'a Number>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
}

#[derive(Serialize)]
struct OutputConfigOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<FormatOut<'a>>,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "json_schema")]
struct FormatOut<'a> {
    schema: &'a JsonText,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ToolOut<'a> {
    Function {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        input_schema: JsonText,
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
        #[serde(flatten)]
        extra: Fields,
    },
    Provider(Fields),
}

/// Writes the body of a request to `/messages`.
pub(super) fn write(request: &TurnRequest, form: RequestForm<'_>) -> Result<WrittenRequest, TurnError> {
    let own = HostProfile::of_dialect(ID);
    let profile = match form {
        RequestForm::AsRead => &own,
        RequestForm::Refitted(profile) | RequestForm::Fitted(profile) => profile,
    };
    let mut losses = Losses::default();
    let request = &*pairing::repaired(request, &mut losses);
    let names = host_names(request, profile);
    let ids = request_write_messages::call_ids(request);
    let Conversation { system, messages } = request_write_messages::write(request, &ids, &names, &mut losses);
    let plan = request_write_thinking::plan(request, &mut losses);
    let mut extra = request.extras.write(ID, "", &mut losses);
    let tools: Vec<_> =
        request.tools.iter().filter_map(|tool| write_tool(tool, &names, &mut losses)).collect();
    let tool_choice = write_choice(request, &names, &mut losses);
    let sampling = write_sampling(&request.sampling, &mut losses);
    report_unsupported(request, &mut losses);
    let output_config = write_output_config(request, plan.effort, &mut extra, &mut losses);
    let mut metadata = take_object(&mut extra, "metadata");
    if let Some(user) = &request.user {
        metadata.insert("user_id".to_owned(), Value::from(user.as_str()));
    }
    let mut out = RequestOut {
        model: request.model.as_str(),
        max_tokens: request.max_output.unwrap_or(DEFAULT_MAX_OUTPUT),
        system,
        messages,
        tools,
        tool_choice,
        thinking: plan.thinking,
        output_config,
        sampling,
        metadata,
        stream: matches!(request.delivery, Delivery::Stream(_)),
        extra,
    };
    limit_cache_marks(&mut out, &mut losses);
    let body = serde_json::to_vec(&out).map_err(|error| {
        TurnError::new(toolgate_model::ErrorKind::Internal, "writing the request for the host failed")
            .caused_by(error)
    })?;
    Ok(WrittenRequest { body, losses, names })
}

/// Reports request fields that this dialect does not support.
fn report_unsupported(request: &TurnRequest, losses: &mut Losses) {
    if request.samples.is_some_and(|samples| samples > 1) {
        losses.unknown_to(ID, "n");
    }
    if request.previous.is_some() {
        losses.unknown_to(ID, "previous_response_id");
    }
    if request.openai.logprobs == Some(true) {
        losses.unknown_to(ID, "logprobs");
    }
    // `retention` concerns the gateway's store: hosts of this dialect store no replies.
}

fn write_tool<'a>(tool: &'a Tool, names: &'a NameMap, losses: &mut Losses) -> Option<ToolOut<'a>> {
    match tool {
        Tool::Function(FunctionTool { name, description, schema, strict, extras }) => {
            Some(ToolOut::Function {
                name: names.to_host(name.as_str()),
                description: description.as_deref(),
                input_schema: schema.clone().unwrap_or_else(JsonText::empty_object),
                strict: *strict,
                extra: extras.write(ID, "tools[]", losses),
            })
        }
        Tool::Custom(CustomTool { name, .. }) => {
            losses.unknown_to(ID, format!("tools[{name}]"));
            None
        }
        Tool::Provider(opaque) => {
            opaque.write(ID, "tools", losses).map(|fields| ToolOut::Provider(fields.clone()))
        }
    }
}

/// Writes `tool_choice`. Absent parts stay absent; a parallel flag alone implies `auto` (T31).
fn write_choice(request: &TurnRequest, names: &NameMap, losses: &mut Losses) -> Option<Fields> {
    let ToolChoice { choice, allowed: _, parallel, extras } = &request.tool_choice;
    let extra = extras.write(ID, "tool_choice", losses);
    if choice.is_none() && parallel.is_none() {
        return None;
    }
    // The host rejects a choice without tools. A choice that forces no call can be dropped.
    if request.tools.is_empty() && matches!(choice, None | Some(Choice::Auto | Choice::None)) {
        return None;
    }
    let mut fields = Fields::new();
    let kind = match choice {
        None | Some(Choice::Auto) => "auto",
        Some(Choice::Any) => "any",
        Some(Choice::None) => "none",
        Some(Choice::Named(name, CallKind::Function | CallKind::Custom)) => {
            fields.insert("name".to_owned(), Value::from(names.to_host(name.as_str())));
            "tool"
        }
        Some(Choice::Provider(opaque)) => return opaque.write(ID, "tool_choice", losses).cloned(),
    };
    fields.insert("type".to_owned(), Value::from(kind));
    let disabled = match parallel {
        None => None,
        // `none` does not accept the flag.
        Some(_) if kind == "none" => None,
        Some(Parallel::Forbidden) => Some(true),
        Some(Parallel::Allowed) => Some(false),
    };
    if let Some(disabled) = disabled {
        fields.insert("disable_parallel_tool_use".to_owned(), Value::from(disabled));
    }
    fields.extend(extra);
    Some(fields)
}

fn write_sampling<'a>(sampling: &'a Sampling, losses: &mut Losses) -> SamplingOut<'a> {
    let Sampling { temperature, top_p, top_k, frequency_penalty, presence_penalty, seed, stop } = sampling;
    let unknown =
        [("frequency_penalty", frequency_penalty), ("presence_penalty", presence_penalty), ("seed", seed)];
    for (name, value) in unknown {
        if value.is_some() {
            losses.unknown_to(ID, name);
        }
    }
    let (temperature, top_p, top_k) = (temperature.as_ref(), top_p.as_ref(), top_k.as_ref());
    SamplingOut { temperature, top_p, top_k, stop_sequences: stop }
}

fn write_output_config<'a>(
    request: &'a TurnRequest,
    effort: Option<String>,
    extra: &mut Fields,
    losses: &mut Losses,
) -> Option<OutputConfigOut<'a>> {
    let rest = take_object(extra, "output_config");
    let format = match &request.output {
        OutputFormat::Text => None,
        OutputFormat::JsonObject => {
            losses.add("response_format", "the Messages API requires a JSON schema");
            None
        }
        // The API has no name for a schema and always follows it.
        OutputFormat::JsonSchema(SchemaFormat { name: _, description, schema, strict: _, extras }) => {
            if description.is_some() {
                losses.unknown_to(ID, "response_format.description");
            }
            let format = FormatOut { schema, extra: extras.write(ID, "response_format", losses) };
            if extras.is_marked(ID, OUTPUT_FORMAT) {
                let format = serde_json::to_value(format).unwrap_or_default();
                extra.insert(OUTPUT_FORMAT.to_owned(), format);
                None
            } else {
                Some(format)
            }
        }
    };
    if effort.is_none() && format.is_none() && rest.is_empty() {
        return None;
    }
    Some(OutputConfigOut { effort, format, extra: rest })
}

fn take_object(extra: &mut Fields, name: &str) -> Fields {
    match extra.shift_remove(name) {
        Some(Value::Object(fields)) => fields,
        Some(other) => {
            extra.insert(name.to_owned(), other);
            Fields::new()
        }
        None => Fields::new(),
    }
}

/// Removes cache marks beyond the limit (T36), the earliest in the conversation first: later marks cover more, and
/// marks on tools and system prompt serve every conversation.
fn limit_cache_marks(out: &mut RequestOut<'_>, losses: &mut Losses) {
    let is_marked = |fields: &&mut Fields| fields.contains_key(CACHE_MARK);
    let fixed = out.tools.iter_mut().map(tool_fields).filter(is_marked).count()
        + out.system.iter_mut().map(block_fields).filter(is_marked).count()
        + usize::from(out.extra.contains_key(CACHE_MARK));
    let marked: Vec<&mut Fields> = out
        .messages
        .iter_mut()
        .flat_map(|message| &mut message.content)
        .flat_map(marked_fields)
        .filter(is_marked)
        .collect();
    let too_many = (fixed + marked.len()).saturating_sub(MAX_CACHE_MARKS);
    if too_many == 0 {
        return;
    }
    losses.add(CACHE_MARK, format!("the host accepts {MAX_CACHE_MARKS} marks: the first ones were removed"));
    for fields in marked.into_iter().take(too_many) {
        fields.shift_remove(CACHE_MARK);
    }
}

fn tool_fields<'t>(tool: &'t mut ToolOut<'_>) -> &'t mut Fields {
    match tool {
        ToolOut::Function { extra, .. } | ToolOut::Provider(extra) => extra,
    }
}

/// The fields of a block, and of the blocks inside a result.
fn marked_fields<'b>(block: &'b mut BlockOut<'_>) -> Vec<&'b mut Fields> {
    if let BlockOut::ToolResult { content, extra, .. } = block {
        return content.iter_mut().map(block_fields).chain([extra]).collect();
    }
    vec![block_fields(block)]
}

fn block_fields<'b>(block: &'b mut BlockOut<'_>) -> &'b mut Fields {
    match block {
        BlockOut::Text { extra, .. }
        | BlockOut::Image { extra, .. }
        | BlockOut::Document { extra, .. }
        | BlockOut::ToolUse { extra, .. }
        | BlockOut::ToolResult { extra, .. }
        | BlockOut::Thinking { extra, .. }
        | BlockOut::RedactedThinking { extra, .. }
        | BlockOut::Opaque(extra) => extra,
    }
}
