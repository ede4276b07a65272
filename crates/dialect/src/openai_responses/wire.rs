//! The JSON of the Responses API, for reading: items, their parts, and whole responses.

use std::fmt;

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use serde_json::{Number, Value};
use toolgate_model::json::{Tagged, read_tagged};
use toolgate_model::{ErrorKind, Fields, TurnError};

use crate::json::{self, Unreadable};

/// Reads a client's JSON. An error names the field at fault.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, TurnError> {
    json::read(body).map_err(unreadable)
}

/// The error for a body that cannot be parsed.
pub(super) fn unreadable(Unreadable { path, cause }: Unreadable) -> TurnError {
    let cause = cause.to_string();
    let missing = cause.strip_prefix("missing field `").and_then(|rest| rest.split_once('`'));
    match (missing, path) {
        (Some((field, _)), path) => {
            let path = path.map_or_else(|| field.to_owned(), |path| format!("{path}.{field}"));
            TurnError::invalid_param(path.clone(), format!("{path}: field required"))
        }
        (None, None) => TurnError::invalid(format!("the body is not what this API expects: {cause}")),
        (None, Some(path)) => TurnError::invalid_param(path.clone(), format!("{path}: {cause}")),
    }
}

/// Reads a host's JSON: an error blames the host.
pub(super) fn read_host<T: DeserializeOwned>(body: &[u8]) -> Result<T, TurnError> {
    read(body).map_err(|mut error| {
        error.kind = ErrorKind::Upstream;
        error.message = format!(
            "the host's response cannot be read: {}; check that the upstream uses this API",
            error.message
        );
        error.param = None;
        error
    })
}

/// `input`: a string or items.
pub(super) enum Input {
    Text(String),
    Items(Vec<Item>),
}

/// An item of a conversation, of input or output.
pub(super) enum Item {
    Message(MessageItem),
    FunctionCall(FunctionCallItem),
    CustomCall(CustomCallItem),
    FunctionOutput(OutputItem),
    CustomOutput(OutputItem),
    /// A tool search that the client runs.
    ToolSearchCall(ToolSearchCallItem),
    ToolSearchOutput(ToolSearchOutputItem),
    Reasoning(ReasoningItem),
    /// The type, and all fields.
    Other(String, Fields),
}

#[derive(Deserialize)]
pub(super) struct MessageItem {
    pub(super) role: Option<String>,
    #[serde(default)]
    pub(super) content: Content,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct FunctionCallItem {
    pub(super) call_id: Option<String>,
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: Arguments,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct CustomCallItem {
    pub(super) call_id: Option<String>,
    pub(super) name: String,
    #[serde(default)]
    pub(super) input: String,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

pub(super) struct ToolSearchCallItem {
    pub(super) call_id: String,
    pub(super) arguments: String,
    pub(super) extra: Fields,
}

pub(super) struct ToolSearchOutputItem {
    pub(super) call_id: String,
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct OutputItem {
    pub(super) call_id: String,
    #[serde(default)]
    pub(super) output: Content,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct ReasoningItem {
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) summary: Option<Vec<Paragraph>>,
    #[serde(default)]
    pub(super) content: Option<Vec<Paragraph>>,
    pub(super) encrypted_content: Option<String>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

/// A `summary_text` or `reasoning_text`.
#[derive(Deserialize)]
pub(super) struct Paragraph {
    pub(super) text: String,
}

/// A call's arguments: a string by the specification; some hosts send an object (T34).
#[derive(Default)]
pub(super) struct Arguments(pub(super) String);

/// The content of a message or result.
pub(super) enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Parts(Vec::new())
    }
}

/// A part of a message's or result's content.
pub(super) enum ContentPart {
    Text(TextPart),
    Refusal(RefusalPart),
    Image(ImagePart),
    File(FilePart),
    Audio(AudioPart),
    /// The type, and all fields.
    Other(String, Fields),
}

#[derive(Deserialize)]
pub(super) struct TextPart {
    pub(super) text: String,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct RefusalPart {
    pub(super) refusal: String,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct ImagePart {
    pub(super) image_url: Option<String>,
    pub(super) file_id: Option<String>,
    pub(super) detail: Option<String>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct FilePart {
    pub(super) file_data: Option<String>,
    pub(super) file_url: Option<String>,
    pub(super) file_id: Option<String>,
    pub(super) filename: Option<String>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct AudioPart {
    pub(super) input_audio: AudioData,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct AudioData {
    pub(super) data: String,
    pub(super) format: String,
}

/// A whole response, also part of the stream's first and last events.
#[derive(Deserialize)]
pub(super) struct ResponseBody {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) created_at: Option<Number>,
    pub(super) status: Option<String>,
    pub(super) output: Option<Vec<Item>>,
    pub(super) usage: Option<UsageBody>,
    pub(super) error: Option<Value>,
    pub(super) incomplete_details: Option<IncompleteDetails>,
    #[serde(rename = "object")]
    pub(super) _object: Option<String>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct IncompleteDetails {
    pub(super) reason: Option<String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(super) struct UsageBody {
    #[serde(default)]
    pub(super) input_tokens: u64,
    #[serde(default)]
    pub(super) output_tokens: u64,
    pub(super) total_tokens: Option<u64>,
    pub(super) input_tokens_details: Option<Fields>,
    pub(super) output_tokens_details: Option<Fields>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_tagged(deserializer)
    }
}

impl<'de> Tagged<'de> for Item {
    fn read<D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Self, D::Error> {
        Ok(match tag {
            "message" => Self::Message(Deserialize::deserialize(fields)?),
            "" => untagged(Deserialize::deserialize(fields)?),
            "function_call" => Self::FunctionCall(Deserialize::deserialize(fields)?),
            "custom_tool_call" => Self::CustomCall(Deserialize::deserialize(fields)?),
            "function_call_output" => Self::FunctionOutput(Deserialize::deserialize(fields)?),
            "custom_tool_call_output" => Self::CustomOutput(Deserialize::deserialize(fields)?),
            "reasoning" => Self::Reasoning(Deserialize::deserialize(fields)?),
            other => other_item(other, tagged_fields(other, fields)?),
        })
    }
}

/// An item of a tool search that the client runs, or an item that only this dialect has.
fn other_item(tag: &str, mut fields: Fields) -> Item {
    let is_client = fields.get("execution").is_some_and(|execution| execution == "client");
    let call_id = fields.get("call_id").and_then(Value::as_str).filter(|_| is_client).map(str::to_owned);
    let Some(call_id) = call_id else { return Item::Other(tag.to_owned(), fields) };
    match tag {
        "tool_search_call" => {
            let arguments = match fields.shift_remove("arguments") {
                Some(Value::String(text)) => text,
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            };
            fields.retain(|name, _| name != "type" && name != "call_id");
            Item::ToolSearchCall(ToolSearchCallItem { call_id, arguments, extra: fields })
        }
        "tool_search_output" => {
            fields.retain(|name, _| name != "type" && name != "call_id");
            Item::ToolSearchOutput(ToolSearchOutputItem { call_id, extra: fields })
        }
        _ => Item::Other(tag.to_owned(), fields),
    }
}

/// An item without a `type` is a message if it has a role, else a reference to an item by its id.
fn untagged(item: MessageItem) -> Item {
    if item.role.is_some() {
        Item::Message(item)
    } else {
        Item::Other("item_reference".to_owned(), item.extra)
    }
}

fn tagged_fields<'de, D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Fields, D::Error> {
    let rest = Fields::deserialize(fields)?;
    let mut all = Fields::new();
    all.insert("type".to_owned(), Value::from(tag));
    all.extend(rest);
    Ok(all)
}

impl<'de> Deserialize<'de> for ContentPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_tagged(deserializer)
    }
}

impl<'de> Tagged<'de> for ContentPart {
    fn read<D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Self, D::Error> {
        Ok(match tag {
            "input_text" | "output_text" | "text" => Self::Text(Deserialize::deserialize(fields)?),
            "refusal" => Self::Refusal(Deserialize::deserialize(fields)?),
            "input_image" => Self::Image(Deserialize::deserialize(fields)?),
            "input_file" => Self::File(Deserialize::deserialize(fields)?),
            "input_audio" => Self::Audio(Deserialize::deserialize(fields)?),
            other => Self::Other(other.to_owned(), tagged_fields(other, fields)?),
        })
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        match raw.get() {
            "null" => Ok(Self::default()),
            text if text.starts_with('"') => serde_json::from_str(text).map(Self).map_err(de::Error::custom),
            object => Ok(Self(object.to_owned())),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(TextOrList(std::marker::PhantomData))? {
            Either::Text(text) => Ok(Self::Text(text)),
            Either::List(parts) => Ok(Self::Parts(parts)),
        }
    }
}

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(TextOrList(std::marker::PhantomData))? {
            Either::Text(text) => Ok(Self::Text(text)),
            Either::List(items) => Ok(Self::Items(items)),
        }
    }
}

enum Either<T> {
    Text(String),
    List(Vec<T>),
}

struct TextOrList<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for TextOrList<T> {
    type Value = Either<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an array")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Either::Text(text.to_owned()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Either::List(Vec::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = seq.next_element()? {
            list.push(element);
        }
        Ok(Either::List(list))
    }
}
