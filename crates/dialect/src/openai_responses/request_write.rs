//! Writes a request.

use serde::Serialize;
use serde_json::{Value, json};
use toolgate_model::pairing::{AcceptedId, host_ids, shortened};
use toolgate_model::{
    Delivery, Fields, JsonText, Losses, OutputFormat, Parallel, Part, ReasoningRequest, Retention, Sampling,
    TurnError, TurnRequest,
};

use super::ID;
use super::client_tools;
use super::content_write::{self, Recipient};
use super::request_read::INCLUDE_LOGPROBS;
use super::request_write_tools::{ToolBody, choice, tools};
use crate::host::{HostProfile, Reasons};
use crate::names::host_names;
use crate::openai_shared::OpenAiFields;
use crate::{RequestForm, WrittenRequest};

/// The call ids that the API accepts (T23).
pub(super) const CALL_IDS: AcceptedId = |id| shortened(id, 64, |_| true);
/// Makes the host send the seal of each reasoning item.
pub(super) const INCLUDE_SEAL: &str = "reasoning.encrypted_content";

/// Whether a request was read in this dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It was: absent fields stay absent.
    Native,
    /// It was not: defaults of other dialects must be written out.
    Foreign,
}

impl Origin {
    /// The origin of the request.
    pub(super) fn of(request: &TurnRequest) -> Self {
        if request.extras.known_to(ID).is_some() { Self::Native } else { Self::Foreign }
    }
}

/// Writes a request body.
pub(super) fn write(request: &TurnRequest, form: RequestForm<'_>) -> Result<WrittenRequest, TurnError> {
    let mut losses = Losses::default();
    let own = HostProfile::of_dialect(ID);
    let (profile, origin) = match form {
        RequestForm::AsRead => (&own, Origin::Native),
        RequestForm::Refitted(profile) => (profile, Origin::Native),
        RequestForm::Fitted(profile) => (profile, Origin::Foreign),
    };
    let names = host_names(request, profile);
    let ids = host_ids(&request.messages, CALL_IDS);
    let mut extra = request.extras.write(ID, "", &mut losses);
    let mut input = client_tools::take_additional(&mut extra);
    input.extend(content_write::input(&request.messages, &names, &ids, Recipient::Host(origin), &mut losses));
    if !profile.item_status {
        input.iter_mut().for_each(remove_status);
    }
    let (temperature, top_p) = sampling(&request.sampling, &mut losses);
    if request.samples.is_some_and(|samples| samples > 1) {
        losses.unknown_to(ID, "n");
    }
    let body = RequestBody {
        model: request.model.as_str(),
        instructions: instructions(&request.system, &mut losses),
        input,
        tools: tools(&request.tools, &names, origin, &mut losses),
        tool_choice: choice(&request.tool_choice, &names, &mut losses),
        parallel_tool_calls: request.tool_choice.parallel.map(|parallel| parallel == Parallel::Allowed),
        max_output_tokens: request.max_output,
        temperature,
        top_p,
        reasoning: request.reasoning.as_ref().and_then(|asked| reasoning(asked, origin, &mut losses)),
        text: text(request, extra.shift_remove("text"), &mut losses),
        stream: matches!(request.delivery, Delivery::Stream(_)).then_some(true),
        user: request.user.as_deref(),
        previous_response_id: request.previous.as_ref().map(toolgate_model::ReplyId::as_str),
        store: match (request.retention, origin) {
            (Some(Retention::Keep), _) => Some(true),
            (Some(Retention::Discard), _) | (None, Origin::Foreign) => Some(false),
            (None, Origin::Native) => None,
        },
        include: include(request, origin, profile, extra.shift_remove("include")),
        shared: OpenAiFields::of(&request.openai),
        extra,
    };
    let body = serde_json::to_vec(&body).map_err(|error| {
        TurnError::invalid("serializing the request failed: send valid JSON values").caused_by(error)
    })?;
    Ok(WrittenRequest { body, losses, names })
}

/// Removes the status of a call, a result or reasoning. A message needs its own.
fn remove_status(item: &mut Value) {
    let Some(fields) = item.as_object_mut() else { return };
    if fields.get("type").is_some_and(|kind| kind != "message") {
        fields.shift_remove("status");
    }
}

#[derive(Serialize)]
struct RequestBody<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    input: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<&'a serde_json::Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<&'a serde_json::Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Fields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_response_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<Value>,
    #[serde(flatten)]
    shared: OpenAiFields<'a>,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Serialize)]
struct TextBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<FormatBody<'a>>,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Serialize)]
struct FormatBody<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'a JsonText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
    #[serde(flatten)]
    extra: Fields,
}

fn sampling<'a>(
    sampling: &'a Sampling,
    losses: &mut Losses,
) -> (Option<&'a serde_json::Number>, Option<&'a serde_json::Number>) {
    let Sampling { temperature, top_p, top_k, frequency_penalty, presence_penalty, seed, stop } = sampling;
    let unknown = [
        ("top_k", top_k.is_some()),
        ("frequency_penalty", frequency_penalty.is_some()),
        ("presence_penalty", presence_penalty.is_some()),
        ("seed", seed.is_some()),
        ("stop", !stop.is_empty()),
    ];
    for (name, _) in unknown.iter().filter(|(_, given)| *given) {
        losses.unknown_to(ID, *name);
    }
    (temperature.as_ref(), top_p.as_ref())
}

/// The system prompt as one text.
pub(super) fn instructions(system: &[Part], losses: &mut Losses) -> Option<String> {
    let mut texts = Vec::new();
    for part in system {
        match part {
            Part::Text(text) => {
                text.extras.write(ID, "system[]", losses);
                texts.push(text.text.as_str());
            }
            // Telemetry of another API's client (T29).
            Part::Opaque(_) => {}
            Part::Image(_) | Part::Document(_) | Part::Audio(_) => {
                losses.add("system[]", "instructions are text only");
            }
        }
    }
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Writes `reasoning`.
pub(super) fn reasoning(asked: &ReasoningRequest, origin: Origin, losses: &mut Losses) -> Option<Fields> {
    let ReasoningRequest { effort, budget: _, mode: _, summary, extras } = asked;
    let mut fields = Fields::new();
    fields.extend(effort.as_deref().map(|effort| ("effort".to_owned(), Value::from(effort))));
    fields.extend(summary.as_deref().map(|summary| ("summary".to_owned(), Value::from(summary))));
    fields.extend(extras.write(ID, "reasoning", losses));
    (!fields.is_empty() || origin == Origin::Native).then_some(fields)
}

/// Writes `text`.
fn text<'a>(request: &'a TurnRequest, own: Option<Value>, losses: &mut Losses) -> Option<TextBody<'a>> {
    let mut extra = match own {
        Some(Value::Object(fields)) => fields,
        _ => Fields::new(),
    };
    let verbosity = request.openai.verbosity.as_deref();
    extra.extend(verbosity.map(|verbosity| ("verbosity".to_owned(), Value::from(verbosity))));
    let empty = |kind| FormatBody {
        r#type: kind,
        name: None,
        description: None,
        schema: None,
        strict: None,
        extra: Fields::new(),
    };
    let format = match &request.output {
        OutputFormat::Text => None,
        OutputFormat::JsonObject => Some(empty("json_object")),
        OutputFormat::JsonSchema(format) => Some(FormatBody {
            // The API requires a name.
            name: Some(format.name.as_deref().unwrap_or("answer")),
            description: format.description.as_deref(),
            schema: Some(&format.schema),
            strict: format.strict,
            extra: format.extras.write(ID, "text.format", losses),
            ..empty("json_schema")
        }),
    };
    (format.is_some() || !extra.is_empty()).then_some(TextBody { format, extra })
}

/// `text` as it is repeated in responses.
pub(super) fn text_echo(request: &TurnRequest, own: Option<Value>) -> Value {
    let body = text(request, own, &mut Losses::default());
    let mut fields = match body.map(serde_json::to_value) {
        Some(Ok(Value::Object(fields))) => fields,
        Some(_) | None => Fields::new(),
    };
    fields.entry("format").or_insert_with(|| json!({ "type": "text" }));
    Value::Object(fields)
}

/// What to include in the reply. Translated requests ask for seals: the host stores nothing, so reasoning must be sent
/// back with its seal.
fn include(request: &TurnRequest, origin: Origin, profile: &HostProfile, own: Option<Value>) -> Vec<Value> {
    let is_off = request.reasoning.as_ref().is_some_and(|asked| asked.effort.as_deref() == Some("none"));
    let reasons = match profile.reasons {
        Reasons::Never => false,
        Reasons::IfAsked => request.reasoning.is_some() && !is_off,
        Reasons::ByDefault | Reasons::Always => !is_off,
    };
    let mut include = match own {
        Some(Value::Array(own)) => own,
        Some(_) | None => Vec::new(),
    };
    if profile.reasons == Reasons::Never {
        include.retain(|what| what != INCLUDE_SEAL);
    } else if origin == Origin::Foreign && reasons {
        include.push(Value::from(INCLUDE_SEAL));
    }
    if request.openai.logprobs == Some(true) {
        include.push(Value::from(INCLUDE_LOGPROBS));
    }
    include
}
