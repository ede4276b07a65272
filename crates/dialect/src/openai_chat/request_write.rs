//! Writes a request for a host.

use serde::Serialize;
use serde_json::{Number, Value};
use toolgate_model::pairing;
use toolgate_model::{
    Delivery, Fields, JsonText, Losses, OutputFormat, Parallel, ReasoningRequest, Retention, SchemaFormat,
    Tool, TurnError, TurnRequest, UsageReport,
};

use super::extras::{take_object, write_nested};
use super::request_read_tools::TOOL_CHOICE;
use super::request_write_messages::{self, MessageOut};
use super::request_write_tools::{self, ChoiceOut, FunctionOut, ToolOut};
use super::{ID, Origin, marks};
use crate::host::{CallIds, HostProfile, LimitField, ReasoningSwitch};
use crate::names::{accepted_ids, host_names};
use crate::openai_shared::OpenAiFields;
use crate::{RequestForm, WrittenRequest};

#[derive(Serialize)]
struct RequestOut<'a> {
    model: &'a str,
    messages: Vec<MessageOut<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolOut<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    functions: Vec<FunctionOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ChoiceOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<ChoiceOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<StopOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<FormatOut<'a>>,
    #[serde(flatten)]
    reasoning: ReasoningOut<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Fields::is_empty")]
    stream_options: Fields,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verbosity: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<bool>,
    #[serde(flatten)]
    shared: OpenAiFields<'a>,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Serialize)]
#[serde(untagged)]
enum StopOut<'a> {
    One(&'a str),
    Many(&'a [String]),
}

#[derive(Serialize)]
struct FormatOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    json_schema: Option<SchemaOut<'a>>,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Serialize)]
struct SchemaOut<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    schema: &'a JsonText,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
    #[serde(flatten)]
    extra: Fields,
}

/// Hosts have different fields for the same settings.
#[derive(Default, Serialize)]
struct ReasoningOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enable_thinking: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u64>,
}

#[derive(Serialize)]
struct ReasoningObject<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enabled: Option<bool>,
}

#[derive(Serialize)]
struct ThinkingObject<'a> {
    r#type: &'a str,
}

/// Writes a request body.
pub(super) fn write(request: &TurnRequest, form: RequestForm<'_>) -> Result<WrittenRequest, TurnError> {
    let own = HostProfile::of_dialect(ID);
    let (profile, origin) = match form {
        RequestForm::AsRead => (&own, Origin::Native),
        // Hosts of this dialect differ so much that even a request of this dialect is written anew.
        RequestForm::Refitted(profile) | RequestForm::Fitted(profile) => (profile, Origin::Foreign),
    };
    let mut losses = Losses::default();
    let request = &*pairing::repaired(request, &mut losses); // T25
    let names = host_names(request, profile);
    let id_rule = if origin == Origin::Native { CallIds::Any } else { profile.call_ids };
    let ids = pairing::host_ids(&request.messages, accepted_ids(id_rule));
    let is_legacy = request.extras.is_marked(ID, marks::LEGACY) && all_functions(&request.tools);
    let mut extra = request.extras.write(ID, "", &mut losses);
    let messages = request_write_messages::write(request, &ids, &names, form, &mut losses);
    let (stream, stream_options) =
        write_delivery(request.delivery, origin, profile, take_object(&mut extra, "stream_options"));
    let (max_tokens, max_completion_tokens) = write_limit(request, origin, profile);
    let sampling = &request.sampling;
    let mut out = RequestOut {
        model: request.model.as_str(),
        messages,
        tools: Vec::new(),
        functions: Vec::new(),
        tool_choice: None,
        function_call: None,
        parallel_tool_calls: None,
        max_tokens,
        max_completion_tokens,
        temperature: sampling.temperature.as_ref(),
        top_p: sampling.top_p.as_ref(),
        top_k: sampling.top_k.as_ref(),
        frequency_penalty: sampling.frequency_penalty.as_ref(),
        presence_penalty: sampling.presence_penalty.as_ref(),
        seed: sampling.seed.as_ref(),
        stop: write_stop(request),
        response_format: write_format(request, take_object(&mut extra, "response_format"), &mut losses),
        reasoning: write_reasoning(request, origin, profile, &mut extra, &mut losses),
        stream,
        stream_options,
        n: request.samples,
        user: request.user.as_deref(),
        // In other dialects it concerns the gateway's store; hosts of this dialect store only on request.
        store: request
            .retention
            .filter(|_| origin == Origin::Native)
            .map(|retention| retention == Retention::Keep),
        verbosity: request.openai.verbosity.as_deref(),
        logprobs: request.openai.logprobs,
        shared: OpenAiFields::of(&request.openai),
        extra,
    };
    if request.previous.is_some() {
        losses.unknown_to(ID, "previous_response_id");
    }
    for tool in &request.tools {
        match tool {
            Tool::Function(tool) if is_legacy => {
                out.functions.push(request_write_tools::write_function(tool, &names, &mut losses).0);
            }
            tool @ (Tool::Function(_) | Tool::Custom(_) | Tool::Provider(_)) => {
                out.tools.extend(request_write_tools::write(tool, &names, &mut losses));
            }
        }
    }
    let has_tools = !out.tools.is_empty() || !out.functions.is_empty();
    // Hosts reject a choice without tools.
    if has_tools || origin == Origin::Native {
        let choice = request.tool_choice.choice.as_ref();
        if is_legacy {
            out.function_call = choice
                .and_then(|choice| request_write_tools::write_legacy_choice(choice, &names, &mut losses));
        } else if request.tool_choice.extras.field(ID, TOOL_CHOICE).is_none() {
            out.tool_choice = request_write_tools::write_allowed(&request.tool_choice, &names, &mut losses)
                .or_else(|| request_write_tools::write_choice(choice?, &names, &mut losses));
        }
        out.parallel_tool_calls = request.tool_choice.parallel.map(|parallel| parallel == Parallel::Allowed);
        // With the choice, if it came in an unusual form.
        out.extra.extend(request.tool_choice.extras.write(ID, "tool_choice", &mut losses));
    }
    let body = serde_json::to_vec(&out)
        .map_err(|error| TurnError::invalid("serializing the request failed").caused_by(error))?;
    Ok(WrittenRequest { body, losses, names })
}

fn all_functions(tools: &[Tool]) -> bool {
    tools.iter().all(|tool| matches!(tool, Tool::Function(_)))
}

fn write_delivery(
    delivery: Delivery,
    origin: Origin,
    profile: &HostProfile,
    mut options: Fields,
) -> (Option<bool>, Fields) {
    let Delivery::Stream(report) = delivery else { return (None, options) };
    let include_usage = match (report, origin) {
        (_, Origin::Foreign) if !profile.stream_options => None,
        // Streams of the other dialects always end with token counts.
        (UsageReport::Included, _) | (UsageReport::Default, Origin::Foreign) => Some(true),
        (UsageReport::Omitted, _) => Some(false),
        (UsageReport::Default, Origin::Native) => None,
    };
    options.extend(include_usage.map(|include| ("include_usage".to_owned(), Value::from(include))));
    (Some(true), options)
}

/// `max_tokens` and `max_completion_tokens`.
fn write_limit(request: &TurnRequest, origin: Origin, profile: &HostProfile) -> (Option<u64>, Option<u64>) {
    let is_new_field = match origin {
        Origin::Native => !request.extras.is_marked(ID, marks::MAX_TOKENS),
        Origin::Foreign => profile.limit_field == LimitField::MaxCompletionTokens,
    };
    if is_new_field { (None, request.max_output) } else { (request.max_output, None) }
}

fn write_stop(request: &TurnRequest) -> Option<StopOut<'_>> {
    match request.sampling.stop.as_slice() {
        [] => None,
        [one] if request.extras.is_marked(ID, marks::STOP_STRING) => Some(StopOut::One(one)),
        many => Some(StopOut::Many(many)),
    }
}

fn write_format<'a>(request: &'a TurnRequest, extra: Fields, losses: &mut Losses) -> Option<FormatOut<'a>> {
    match &request.output {
        // A format of the host's own, its type included.
        OutputFormat::Text if extra.contains_key("type") => {
            Some(FormatOut { r#type: None, json_schema: None, extra })
        }
        OutputFormat::Text if !request.extras.is_marked(ID, marks::TEXT_FORMAT) => None,
        OutputFormat::Text => Some(FormatOut { r#type: Some("text"), json_schema: None, extra }),
        OutputFormat::JsonObject => Some(FormatOut { r#type: Some("json_object"), json_schema: None, extra }),
        OutputFormat::JsonSchema(SchemaFormat { name, description, schema, strict, extras }) => {
            let (extra, inner) = write_nested(extras, "json_schema", "response_format", losses);
            let json_schema = SchemaOut {
                // Required in this dialect only.
                name: name.as_deref().unwrap_or("answer"),
                description: description.as_deref(),
                schema,
                strict: *strict,
                extra: inner,
            };
            Some(FormatOut { r#type: Some("json_schema"), json_schema: Some(json_schema), extra })
        }
    }
}

/// Writes the reasoning settings in the host's fields. The switches that a client of this dialect sent are written back.
fn write_reasoning<'a>(
    request: &'a TurnRequest,
    origin: Origin,
    profile: &HostProfile,
    extra: &mut Fields,
    losses: &mut Losses,
) -> ReasoningOut<'a> {
    let Some(ReasoningRequest { effort, budget, mode, summary: _, extras }) = &request.reasoning else {
        return ReasoningOut::default();
    };
    let own = extras.write(ID, "reasoning", losses);
    if !own.is_empty() {
        extra.extend(own);
        return ReasoningOut::default();
    }
    let effort = effort.as_deref();
    let is_on = mode.as_deref().map(|mode| mode != "disabled");
    let switch = if origin == Origin::Native { ReasoningSwitch::Effort } else { profile.reasoning_switch };
    match switch {
        ReasoningSwitch::None | ReasoningSwitch::Claude => ReasoningOut::default(),
        ReasoningSwitch::Effort => ReasoningOut { reasoning_effort: effort, ..ReasoningOut::default() },
        ReasoningSwitch::ReasoningEffort => ReasoningOut {
            reasoning: effort.map(|effort| ReasoningObject { effort: Some(effort), enabled: None }),
            ..ReasoningOut::default()
        },
        ReasoningSwitch::ReasoningEnabled => ReasoningOut {
            reasoning: is_on.map(|enabled| ReasoningObject { effort: None, enabled: Some(enabled) }),
            ..ReasoningOut::default()
        },
        ReasoningSwitch::ThinkingType => ReasoningOut {
            reasoning_effort: effort,
            thinking: mode.as_deref().map(|mode| ThinkingObject { r#type: mode }),
            ..ReasoningOut::default()
        },
        ReasoningSwitch::ThinkingAdaptive => {
            let word = |is_on| if is_on { "adaptive" } else { "disabled" };
            let thinking = is_on.map(|is_on| ThinkingObject { r#type: word(is_on) });
            ReasoningOut { thinking, ..ReasoningOut::default() }
        }
        ReasoningSwitch::EnableThinking => ReasoningOut {
            enable_thinking: is_on,
            thinking_budget: budget.filter(|_| is_on == Some(true)),
            ..ReasoningOut::default()
        },
    }
}
