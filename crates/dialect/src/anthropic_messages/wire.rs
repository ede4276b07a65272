//! The JSON of the Messages API. Requests and replies share their content blocks.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use toolgate_model::json::{Tagged, read_tagged};
use toolgate_model::{Extras, Fields, JsonText, ModelName, Opaque};

use super::ID;
use super::wire_output::{OutputConfigIn, OutputFormatIn};

/// A request body.
#[derive(Deserialize)]
#[serde(expecting = "a JSON object")]
pub(super) struct RequestIn {
    pub(super) model: ModelName,
    pub(super) messages: Vec<MessageIn>,
    pub(super) max_tokens: Option<u64>,
    pub(super) system: Option<ContentIn>,
    pub(super) tools: Option<Vec<ToolIn>>,
    pub(super) tool_choice: Option<ToolChoiceIn>,
    pub(super) stop_sequences: Option<Vec<String>>,
    pub(super) stream: Option<bool>,
    pub(super) temperature: Option<Number>,
    pub(super) top_p: Option<Number>,
    pub(super) top_k: Option<Number>,
    pub(super) thinking: Option<ThinkingIn>,
    pub(super) output_config: Option<OutputConfigIn>,
    /// The older name of `output_config.format`.
    pub(super) output_format: Option<OutputFormatIn>,
    pub(super) metadata: Option<MetadataIn>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct MessageIn {
    pub(super) role: RoleIn,
    pub(super) content: ContentIn,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum RoleIn {
    User,
    Assistant,
    System,
}

#[derive(Deserialize)]
pub(super) struct ThinkingIn {
    #[serde(rename = "type")]
    pub(super) mode: String,
    pub(super) budget_tokens: Option<u64>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct MetadataIn {
    pub(super) user_id: Option<String>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

/// An offered tool: the client's own, or one that the provider runs.
pub(super) enum ToolIn {
    Function(FunctionIn),
    Provider(Opaque),
}

#[derive(Deserialize)]
pub(super) struct FunctionIn {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) input_schema: Option<JsonText>,
    pub(super) strict: Option<bool>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

pub(super) enum ToolChoiceIn {
    Auto(ToolChoiceFields),
    Any(ToolChoiceFields),
    None(ToolChoiceFields),
    Tool(NamedChoice),
    Other(Opaque),
}

#[derive(Deserialize)]
pub(super) struct ToolChoiceFields {
    pub(super) disable_parallel_tool_use: Option<bool>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct NamedChoice {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) rest: ToolChoiceFields,
}

/// The value of `content` and `system`: a string or blocks.
pub(super) enum ContentIn {
    Text(String),
    Blocks(Vec<BlockIn>),
}

impl ContentIn {
    /// A string becomes one text block; an empty string becomes none.
    pub(super) fn into_blocks(self) -> Vec<BlockIn> {
        match self {
            Self::Text(text) if text.is_empty() => Vec::new(),
            Self::Text(text) => vec![BlockIn::Text(TextIn { text, extra: Fields::new() })],
            Self::Blocks(blocks) => blocks,
        }
    }
}

/// A content block.
pub(super) enum BlockIn {
    Text(TextIn),
    ToolUse(ToolUseIn),
    ToolResult(ToolResultIn),
    Thinking(ThinkingBlockIn),
    RedactedThinking(RedactedIn),
    /// Kept as fields, because its source decides whether the model can represent it.
    Image(Fields),
    /// See `Image`.
    Document(Fields),
    Other(Opaque),
}

#[derive(Deserialize)]
pub(super) struct TextIn {
    pub(super) text: String,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct ToolUseIn {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Option<JsonText>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct ToolResultIn {
    pub(super) tool_use_id: String,
    pub(super) content: Option<ContentIn>,
    pub(super) is_error: Option<bool>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct ThinkingBlockIn {
    #[serde(default)]
    pub(super) thinking: String,
    pub(super) signature: Option<String>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct RedactedIn {
    pub(super) data: String,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

/// A host's message.
#[derive(Deserialize)]
pub(super) struct MessageHeadIn {
    pub(super) id: Option<String>,
    pub(super) model: Option<ModelName>,
    #[serde(default)]
    pub(super) content: Option<Vec<BlockIn>>,
    pub(super) stop_reason: Option<String>,
    pub(super) stop_sequence: Option<String>,
    pub(super) usage: Option<UsageIn>,
    /// Always `message` and `assistant`.
    #[serde(rename = "type")]
    pub(super) _kind: Option<Value>,
    #[serde(rename = "role")]
    pub(super) _role: Option<Value>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

/// Token counts. Later counts in a stream name only what changed.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub(super) struct UsageIn {
    pub(super) input_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) output_tokens_details: Option<Fields>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

/// A content block to write.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum BlockOut<'a> {
    Text {
        text: &'a str,
        #[serde(flatten)]
        extra: Fields,
    },
    Image {
        source: SourceOut<'a>,
        #[serde(flatten)]
        extra: Fields,
    },
    Document {
        source: SourceOut<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        #[serde(flatten)]
        extra: Fields,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: JsonText,
        #[serde(flatten)]
        extra: Fields,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<BlockOut<'a>>,
        is_error: bool,
        #[serde(flatten)]
        extra: Fields,
    },
    Thinking {
        thinking: Cow<'a, str>,
        signature: Cow<'a, str>,
        #[serde(flatten)]
        extra: Fields,
    },
    RedactedThinking {
        data: &'a str,
        #[serde(flatten)]
        extra: Fields,
    },
    #[serde(untagged)]
    Opaque(Fields),
}

/// The source of an image or document.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum SourceOut<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Text { media_type: &'static str, data: Cow<'a, str> },
    Url { url: &'a str },
    File { file_id: &'a str },
}

/// The unknown fields of this dialect, without nulls: `null` equals a missing field.
pub(super) fn extras(mut fields: Fields) -> Extras {
    fields.retain(|_, value| !value.is_null());
    Extras::of(ID, fields)
}

/// An object that only this dialect understands.
pub(super) fn opaque<'de, D: Deserializer<'de>>(tag: &str, rest: D) -> Result<Opaque, D::Error> {
    let mut fields = Fields::new();
    if !tag.is_empty() {
        fields.insert("type".to_owned(), Value::from(tag));
    }
    fields.extend(Fields::deserialize(rest)?);
    Ok(Opaque { dialect: ID, kind: tag.to_owned(), fields })
}

impl<'de> Tagged<'de> for BlockIn {
    fn read<D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Self, D::Error> {
        Ok(match tag {
            "text" => Self::Text(TextIn::deserialize(fields)?),
            "tool_use" => Self::ToolUse(ToolUseIn::deserialize(fields)?),
            "tool_result" => Self::ToolResult(ToolResultIn::deserialize(fields)?),
            "thinking" => Self::Thinking(ThinkingBlockIn::deserialize(fields)?),
            "redacted_thinking" => Self::RedactedThinking(RedactedIn::deserialize(fields)?),
            "image" => Self::Image(Fields::deserialize(fields)?),
            "document" => Self::Document(Fields::deserialize(fields)?),
            "" => return Err(D::Error::custom("a content block needs a `type`, for example `text`")),
            other => Self::Other(opaque(other, fields)?),
        })
    }
}

impl<'de> Tagged<'de> for ToolIn {
    fn read<D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Self, D::Error> {
        match tag {
            "" | "custom" => FunctionIn::deserialize(fields).map(Self::Function),
            other => opaque(other, fields).map(Self::Provider),
        }
    }
}

impl<'de> Tagged<'de> for ToolChoiceIn {
    fn read<D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Self, D::Error> {
        Ok(match tag {
            "auto" => Self::Auto(ToolChoiceFields::deserialize(fields)?),
            "any" => Self::Any(ToolChoiceFields::deserialize(fields)?),
            "none" => Self::None(ToolChoiceFields::deserialize(fields)?),
            "tool" => Self::Tool(NamedChoice::deserialize(fields)?),
            "" => return Err(D::Error::custom("tool_choice needs a `type`: auto, any, tool or none")),
            other => Self::Other(opaque(other, fields)?),
        })
    }
}

macro_rules! deserialize_tagged {
    ($($name:ident),*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                read_tagged(deserializer)
            }
        }
    )*};
}

deserialize_tagged!(BlockIn, ToolIn, ToolChoiceIn);

impl<'de> Deserialize<'de> for ContentIn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = ContentIn;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an array of content blocks")
    }

    fn visit_str<E>(self, text: &str) -> Result<ContentIn, E> {
        Ok(ContentIn::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<ContentIn, E> {
        Ok(ContentIn::Text(text))
    }

    fn visit_unit<E>(self) -> Result<ContentIn, E> {
        Ok(ContentIn::Blocks(Vec::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ContentIn, A::Error> {
        let mut blocks = Vec::new();
        while let Some(block) = items.next_element()? {
            blocks.push(block);
        }
        Ok(ContentIn::Blocks(blocks))
    }
}
