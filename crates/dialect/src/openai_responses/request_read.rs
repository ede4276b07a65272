//! Reads a request.

use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};
use toolgate_model::json::{Tagged, read_tagged};
use toolgate_model::{
    Block, CallKind, Choice, Delivery, Extras, Fields, JsonText, Losses, Message, Opaque, OpenAiOptions,
    OutputFormat, Parallel, Part, ReasoningRequest, Retention, SchemaFormat, ToolChoice, Translated,
    TurnError, TurnRequest, UsageReport, UserMessage,
};

use super::ID;
use super::client_tools::{self, ADDITIONAL_TOOLS, NAMESPACE};
use super::content_read::{self, Conversation};
use super::request_read_tools::{self, ToolBody};
use super::request_write::INCLUDE_SEAL;
use super::wire::{self, Input};
use crate::openai_shared::{ALLOWED_TOOLS, read_allowed_tools};

/// Requests logprobs, in `include`.
pub(super) const INCLUDE_LOGPROBS: &str = "message.output_text.logprobs";

/// What Codex tells OpenAI about itself.
const CLIENT_METADATA: &str = "client_metadata";

/// Reads a request body.
pub(super) fn read(body: &[u8]) -> Result<Translated<TurnRequest>, TurnError> {
    let body: RequestBody = wire::read(body)?;
    let mut extra = body.extra;
    let conversation = match body.input {
        Some(Input::Text(text)) => Conversation {
            messages: vec![Message::User(UserMessage {
                content: vec![Part::text(text)],
                extras: Extras::NONE,
            })],
            ..Conversation::default()
        },
        Some(Input::Items(list)) => content_read::conversation(list),
        None => Conversation::default(),
    };
    let mut request = TurnRequest::new(body.model, conversation.messages);
    request.system = body.instructions.map(Part::text).into_iter().collect();
    request.tools = request_read_tools::read(body.tools.unwrap_or_default());
    client_tools::offer(&mut request.tools, conversation.loaded_tools);
    if !conversation.additional_tools.is_empty() {
        extra.insert(ADDITIONAL_TOOLS.to_owned(), Value::Array(conversation.additional_tools));
    }
    request.tool_choice = body.tool_choice.map_or_else(|| Ok(ToolChoice::default()), choice)?;
    request.tool_choice.parallel =
        body.parallel_tool_calls.map(|allowed| if allowed { Parallel::Allowed } else { Parallel::Forbidden });
    request.max_output = body.max_output_tokens;
    request.sampling.temperature = body.temperature;
    request.sampling.top_p = body.top_p;
    request.reasoning = body.reasoning.map(|asked| ReasoningRequest {
        effort: asked.effort,
        summary: asked.summary,
        // Which turns' reasoning OpenAI takes from its own memory; other hosts get all that the client sends.
        extras: Extras::of(ID, asked.extra).envelope_fields(&["context"]),
        ..ReasoningRequest::default()
    });
    request.openai = OpenAiOptions {
        verbosity: None,
        prompt_cache_key: body.prompt_cache_key,
        prompt_cache_retention: body.prompt_cache_retention,
        service_tier: body.service_tier,
        metadata: body.metadata.unwrap_or_default(),
        safety_identifier: body.safety_identifier,
        logprobs: takes_logprobs(&mut extra),
        top_logprobs: body.top_logprobs,
    };
    if let Some(mut text) = body.text {
        request.openai.verbosity = text.verbosity.take();
        request.output = output_format(text, &mut extra);
    }
    if body.stream == Some(true) {
        request.delivery = Delivery::Stream(UsageReport::Default);
    }
    request.user = body.user;
    request.previous = body.previous_response_id.map(Into::into);
    request.retention = body.store.map(|store| if store { Retention::Keep } else { Retention::Discard });

    // Marked even without fields: an absent `store` or `strict` has a different default in other dialects.
    let envelope: &'static [&'static str] = if only_seals(&extra) {
        &[ADDITIONAL_TOOLS, CLIENT_METADATA, "include"]
    } else {
        &[ADDITIONAL_TOOLS, CLIENT_METADATA]
    };
    request.extras = Extras::marked(ID, extra).envelope_fields(envelope);
    Ok(Translated { value: request, losses: Losses::default() })
}

/// True if `include` asks only for seals, which every reply to such a request has.
fn only_seals(extra: &Fields) -> bool {
    let include = extra.get("include").and_then(Value::as_array);
    include.is_some_and(|values| values.iter().all(|value| value == INCLUDE_SEAL))
}

/// True if every call is in the request itself, not in a stored or compacted conversation.
pub(super) fn is_self_contained(request: &TurnRequest) -> bool {
    let refers = |block: &Block| match block {
        Block::Opaque(opaque) => ["item_reference", "compaction", "program"].contains(&opaque.kind.as_str()),
        Block::Text(_) | Block::Refusal(_) | Block::Reasoning(_) | Block::ToolCall(_) => false,
    };
    let elsewhere = request.messages.iter().any(|message| match message {
        Message::Assistant(message) => message.content.iter().any(refers),
        Message::System(_) | Message::User(_) | Message::ToolResults(_) => false,
    });
    !elsewhere
        && request.previous.is_none()
        && request.extras.field(ID, "conversation").is_none()
        && request.extras.field(ID, "prompt").is_none()
}

#[derive(Deserialize)]
#[serde(expecting = "a JSON object")]
struct RequestBody {
    model: String,
    input: Option<Input>,
    instructions: Option<String>,
    tools: Option<Vec<ToolBody>>,
    tool_choice: Option<ChoiceBody>,
    parallel_tool_calls: Option<bool>,
    max_output_tokens: Option<u64>,
    temperature: Option<Number>,
    top_p: Option<Number>,
    reasoning: Option<ReasoningBody>,
    text: Option<TextBody>,
    stream: Option<bool>,
    user: Option<String>,
    previous_response_id: Option<String>,
    store: Option<bool>,
    prompt_cache_key: Option<String>,
    prompt_cache_retention: Option<String>,
    service_tier: Option<String>,
    metadata: Option<Fields>,
    safety_identifier: Option<String>,
    top_logprobs: Option<u64>,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Deserialize)]
struct ReasoningBody {
    effort: Option<String>,
    summary: Option<String>,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Deserialize)]
struct TextBody {
    format: Option<FormatBody>,
    verbosity: Option<String>,
    #[serde(flatten)]
    extra: Fields,
}

enum FormatBody {
    Schema(SchemaBody),
    JsonObject,
    Other(Fields),
}

#[derive(Deserialize)]
struct SchemaBody {
    name: Option<String>,
    description: Option<String>,
    schema: Option<JsonText>,
    strict: Option<bool>,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ChoiceBody {
    Word(String),
    Object(Fields),
}

impl<'de> Deserialize<'de> for FormatBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_tagged(deserializer)
    }
}

impl<'de> Tagged<'de> for FormatBody {
    fn read<D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Self, D::Error> {
        Ok(match tag {
            "json_schema" => Self::Schema(Deserialize::deserialize(fields)?),
            "json_object" => {
                Fields::deserialize(fields)?;
                Self::JsonObject
            }
            other => {
                let mut all = Fields::new();
                all.insert("type".to_owned(), Value::from(other));
                all.extend(Fields::deserialize(fields)?);
                Self::Other(all)
            }
        })
    }
}

/// Removes the request for logprobs from `include`; `None` if it is not there.
fn takes_logprobs(extra: &mut Fields) -> Option<bool> {
    let include = extra.get_mut("include")?.as_array_mut()?;
    let before = include.len();
    include.retain(|what| what != INCLUDE_LOGPROBS);
    let found = include.len() < before;
    if include.is_empty() {
        extra.shift_remove("include");
    }
    found.then_some(true)
}

fn choice(body: ChoiceBody) -> Result<ToolChoice, TurnError> {
    let choice = match body {
        ChoiceBody::Word(word) => word_choice(&word)?,
        ChoiceBody::Object(fields) if fields.get("type").is_some_and(|kind| kind == ALLOWED_TOOLS) => {
            return Ok(read_allowed_tools(&fields, ID));
        }
        ChoiceBody::Object(fields) => object_choice(fields),
    };
    Ok(ToolChoice { choice: Some(choice), ..ToolChoice::default() })
}

fn word_choice(word: &str) -> Result<Choice, TurnError> {
    match word {
        "auto" => Ok(Choice::Auto),
        "required" => Ok(Choice::Any),
        "none" => Ok(Choice::None),
        _ => Err(TurnError::invalid_param(
            "tool_choice",
            format!("tool_choice: `{word}` is unknown: use `auto`, `required`, `none` or an object"),
        )),
    }
}

fn object_choice(fields: Fields) -> Choice {
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let name = text("name").map(|name| match text(NAMESPACE) {
        Some(namespace) => client_tools::flat_name(namespace, name),
        None => name.to_owned(),
    });
    match (kind.as_str(), name) {
        ("function", Some(name)) => Choice::Named(name.into(), CallKind::Function),
        ("custom", Some(name)) => Choice::Named(name.into(), CallKind::Custom),
        _ => Choice::Provider(Opaque { dialect: ID, kind, fields }),
    }
}

/// The output format. Other fields of `text` go to the unknown fields, under `text`.
fn output_format(body: TextBody, extra: &mut Fields) -> OutputFormat {
    let mut rest = body.extra;
    let format = match body.format {
        None => OutputFormat::Text,
        Some(FormatBody::JsonObject) => OutputFormat::JsonObject,
        Some(FormatBody::Schema(body)) => OutputFormat::JsonSchema(SchemaFormat {
            name: body.name,
            description: body.description,
            schema: body.schema.unwrap_or_else(JsonText::empty_object),
            strict: body.strict,
            extras: Extras::of(ID, body.extra),
        }),
        Some(FormatBody::Other(fields)) => {
            rest.insert("format".to_owned(), Value::Object(fields));
            OutputFormat::Text
        }
    };
    if !rest.is_empty() {
        extra.insert("text".to_owned(), Value::Object(rest));
    }
    format
}
