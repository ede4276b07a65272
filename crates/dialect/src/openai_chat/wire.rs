//! The JSON of requests and whole replies, for reading.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Number, Value};
use toolgate_model::json::{Tagged, read_tagged};
use toolgate_model::{Fields, JsonText, Opaque, SystemRole};

use super::extras::opaque;
use super::wire_either::{StringOrArray, StringOrObject};
use super::wire_tools::{FunctionToolIn, ToolIn};
use crate::lenient;

/// A request body.
#[derive(Deserialize)]
#[serde(expecting = "a JSON object")]
pub(super) struct RequestIn {
    pub(super) model: String,
    pub(super) messages: Vec<MessageIn>,
    pub(super) tools: Option<Vec<ToolIn>>,
    pub(super) functions: Option<Vec<FunctionToolIn>>,
    pub(super) tool_choice: Option<StringOrObject<Fields>>,
    pub(super) function_call: Option<StringOrObject<NameIn>>,
    pub(super) parallel_tool_calls: Option<bool>,
    #[serde(default, deserialize_with = "lenient::count")]
    pub(super) max_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    pub(super) max_completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::number")]
    pub(super) temperature: Option<Number>,
    #[serde(default, deserialize_with = "lenient::number")]
    pub(super) top_p: Option<Number>,
    #[serde(default, deserialize_with = "lenient::number")]
    pub(super) top_k: Option<Number>,
    #[serde(default, deserialize_with = "lenient::number")]
    pub(super) frequency_penalty: Option<Number>,
    #[serde(default, deserialize_with = "lenient::number")]
    pub(super) presence_penalty: Option<Number>,
    #[serde(default, deserialize_with = "lenient::number")]
    pub(super) seed: Option<Number>,
    pub(super) stop: Option<StringOrArray<String>>,
    pub(super) response_format: Option<FormatIn>,
    pub(super) reasoning_effort: Option<String>,
    pub(super) stream: Option<bool>,
    pub(super) stream_options: Option<StreamOptionsIn>,
    pub(super) n: Option<u32>,
    pub(super) user: Option<String>,
    pub(super) store: Option<bool>,
    pub(super) verbosity: Option<String>,
    pub(super) prompt_cache_key: Option<String>,
    pub(super) prompt_cache_retention: Option<String>,
    pub(super) service_tier: Option<String>,
    pub(super) metadata: Option<Fields>,
    pub(super) safety_identifier: Option<String>,
    /// A boolean by the specification; some hosts have a number here.
    pub(super) logprobs: Option<Value>,
    #[serde(default, deserialize_with = "lenient::count")]
    pub(super) top_logprobs: Option<u64>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct StreamOptionsIn {
    pub(super) include_usage: Option<bool>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct NameIn {
    pub(super) name: String,
}

/// A message, tagged by its role.
pub(super) enum MessageIn {
    System(SystemRole, PlainIn),
    User(PlainIn),
    Assistant(Box<AssistantIn>),
    Tool(ToolResultIn),
    Function(FunctionResultIn),
}

#[derive(Deserialize)]
pub(super) struct PlainIn {
    pub(super) content: Option<StringOrArray<PartIn>>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

/// An assistant message, in a request's history or in a reply.
#[derive(Default, Deserialize)]
pub(super) struct AssistantIn {
    pub(super) content: Option<AssistantTextIn>,
    pub(super) refusal: Option<String>,
    pub(super) reasoning_content: Option<Value>,
    pub(super) reasoning: Option<Value>,
    pub(super) reasoning_text: Option<Value>,
    pub(super) reasoning_details: Option<Value>,
    pub(super) tool_calls: Option<Vec<CallIn>>,
    pub(super) function_call: Option<FunctionCallIn>,
    /// Only in a reply; a message of a history is tagged by it.
    #[serde(rename = "role")]
    pub(super) _role: Option<IgnoredAny>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

/// The content of an assistant message: a string or parts by the specification. Some hosts send a single part, or JSON
/// that the model wrote, as an object.
pub(super) struct AssistantTextIn(pub(super) StringOrArray<PartIn>);

impl<'de> Deserialize<'de> for AssistantTextIn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let text = raw.get();
        let content = match text.as_bytes().first() {
            Some(b'"') => serde_json::from_str(text).map(StringOrArray::String),
            Some(b'[') => serde_json::from_str(text).map(StringOrArray::Array),
            _ => Ok(object_content(text)),
        };
        content.map(Self).map_err(D::Error::custom)
    }
}

/// The content of a message whose `content` is neither a string nor an array: one part, or the JSON as text.
pub(super) fn object_content(json: &str) -> StringOrArray<PartIn> {
    match serde_json::from_str::<PartIn>(json) {
        Ok(part @ (PartIn::Text(_) | PartIn::Refusal(_))) => StringOrArray::Array(vec![part]),
        Ok(PartIn::Image(_) | PartIn::Audio(_) | PartIn::File(_) | PartIn::Other(_)) | Err(_) => {
            StringOrArray::String(json.to_owned())
        }
    }
}

#[derive(Deserialize)]
pub(super) struct ToolResultIn {
    pub(super) tool_call_id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) content: Option<StringOrArray<PartIn>>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct FunctionResultIn {
    pub(super) name: Option<String>,
    pub(super) content: Option<StringOrArray<PartIn>>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

impl<'de> Tagged<'de> for MessageIn {
    const TAG: &'static str = "role";

    fn read<D: Deserializer<'de>>(role: &str, fields: D) -> Result<Self, D::Error> {
        Ok(match role {
            "system" => Self::System(SystemRole::System, PlainIn::deserialize(fields)?),
            "developer" => Self::System(SystemRole::Developer, PlainIn::deserialize(fields)?),
            "user" => Self::User(PlainIn::deserialize(fields)?),
            "assistant" => Self::Assistant(Box::new(AssistantIn::deserialize(fields)?)),
            "tool" => Self::Tool(ToolResultIn::deserialize(fields)?),
            "function" => Self::Function(FunctionResultIn::deserialize(fields)?),
            "" => return Err(D::Error::custom("a message needs a `role`")),
            other => {
                let message = format!(
                    "unknown role `{other}`: use system, developer, user, assistant, tool or function"
                );
                return Err(D::Error::custom(message));
            }
        })
    }
}

/// A content part.
pub(super) enum PartIn {
    Text(TextIn),
    Refusal(RefusalIn),
    Image(ImageIn),
    Audio(AudioIn),
    File(FileIn),
    Other(Opaque),
}

#[derive(Deserialize)]
pub(super) struct TextIn {
    pub(super) text: String,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct RefusalIn {
    pub(super) refusal: String,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct ImageIn {
    /// An object by the specification; many hosts also accept the URL itself.
    pub(super) image_url: StringOrObject<ImageUrlIn>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct ImageUrlIn {
    pub(super) url: String,
    pub(super) detail: Option<String>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct AudioIn {
    pub(super) input_audio: AudioDataIn,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct AudioDataIn {
    pub(super) data: String,
    pub(super) format: String,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct FileIn {
    pub(super) file: FileDataIn,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct FileDataIn {
    pub(super) file_data: Option<String>,
    pub(super) file_id: Option<String>,
    pub(super) filename: Option<String>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

impl<'de> Tagged<'de> for PartIn {
    fn read<D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Self, D::Error> {
        Ok(match tag {
            "text" => Self::Text(TextIn::deserialize(fields)?),
            "refusal" => Self::Refusal(RefusalIn::deserialize(fields)?),
            "image_url" => Self::Image(ImageIn::deserialize(fields)?),
            "input_audio" => Self::Audio(AudioIn::deserialize(fields)?),
            "file" => Self::File(FileIn::deserialize(fields)?),
            "" => Self::untyped(UntypedPartIn::deserialize(fields)?).map_err(D::Error::custom)?,
            other => Self::Other(opaque(other, Fields::deserialize(fields)?)),
        })
    }

    fn read_text<E>(text: &str) -> Result<Self, E> {
        Ok(Self::Text(TextIn { text: text.to_owned(), extra: Fields::new() }))
    }
}

/// A part whose field says what it is; some hosts do not require the type.
#[derive(Deserialize)]
struct UntypedPartIn {
    text: Option<String>,
    image_url: Option<StringOrObject<ImageUrlIn>>,
    #[serde(flatten)]
    extra: Fields,
}

impl PartIn {
    fn untyped(part: UntypedPartIn) -> Result<Self, &'static str> {
        let UntypedPartIn { text, image_url, extra } = part;
        match (text, image_url) {
            (Some(text), _) => Ok(Self::Text(TextIn { text, extra })),
            (None, Some(image_url)) => Ok(Self::Image(ImageIn { image_url, extra })),
            (None, None) => Err("a content part needs a `type`"),
        }
    }
}

/// A call. Some hosts omit the type.
pub(super) enum CallIn {
    Function { id: Option<String>, function: FunctionCallIn, extra: Fields },
    Untyped { id: Option<String>, function: FunctionCallIn, extra: Fields },
    Custom { id: Option<String>, custom: CustomCallIn, extra: Fields },
    Other(Opaque),
}

#[derive(Deserialize)]
pub(super) struct FunctionCallIn {
    pub(super) name: String,
    /// A string by the specification; some hosts send an object (T34).
    pub(super) arguments: Option<JsonText>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct CustomCallIn {
    pub(super) name: String,
    pub(super) input: String,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

impl<'de> Tagged<'de> for CallIn {
    fn read<D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct FunctionFields {
            id: Option<String>,
            function: FunctionCallIn,
            #[serde(flatten)]
            extra: Fields,
        }
        #[derive(Deserialize)]
        struct CustomFields {
            id: Option<String>,
            custom: CustomCallIn,
            #[serde(flatten)]
            extra: Fields,
        }
        Ok(match tag {
            "function" => {
                let FunctionFields { id, function, extra } = FunctionFields::deserialize(fields)?;
                Self::Function { id, function, extra }
            }
            "" => {
                let FunctionFields { id, function, extra } = FunctionFields::deserialize(fields)?;
                Self::Untyped { id, function, extra }
            }
            "custom" => {
                let CustomFields { id, custom, extra } = CustomFields::deserialize(fields)?;
                Self::Custom { id, custom, extra }
            }
            other => Self::Other(opaque(other, Fields::deserialize(fields)?)),
        })
    }
}

/// `response_format`.
pub(super) enum FormatIn {
    Text(Fields),
    JsonObject(Fields),
    JsonSchema {
        json_schema: SchemaIn,
        extra: Fields,
    },
    /// A format that only some hosts have, such as a grammar.
    Other(Opaque),
}

#[derive(Deserialize)]
pub(super) struct SchemaIn {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) schema: Option<JsonText>,
    pub(super) strict: Option<bool>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

impl<'de> Tagged<'de> for FormatIn {
    fn read<D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct SchemaFields {
            json_schema: SchemaIn,
            #[serde(flatten)]
            extra: Fields,
        }
        Ok(match tag {
            "text" => Self::Text(Fields::deserialize(fields)?),
            "json_object" => Self::JsonObject(Fields::deserialize(fields)?),
            "json_schema" => {
                let SchemaFields { json_schema, extra } = SchemaFields::deserialize(fields)?;
                Self::JsonSchema { json_schema, extra }
            }
            other => Self::Other(opaque(other, Fields::deserialize(fields)?)),
        })
    }
}

macro_rules! read_by_tag {
    ($($name:ident)*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                read_tagged(deserializer)
            }
        }
    )*};
}
read_by_tag!(MessageIn PartIn CallIn FormatIn);
