//! The JSON of a stream's frames.

use std::borrow::Cow;

use serde::de::Deserializer;
use serde::{Deserialize, de};
use serde_json::Value;
use toolgate_model::Fields;
use toolgate_model::json::{Tagged, read_tagged};

use super::wire::{BlockIn, MessageHeadIn, UsageIn};
use crate::frame::SseFrame;

/// The type of a frame: its event name, or its `type` if the host omits the name.
pub(super) fn kind_of(frame: SseFrame<'_>) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
    }
    if !frame.event.is_empty() {
        return Cow::Borrowed(frame.event);
    }
    serde_json::from_str(frame.data).map_or(Cow::Borrowed(""), |Kind { kind }| kind)
}

#[derive(Deserialize)]
pub(super) struct StartFrame {
    pub(super) message: MessageHeadIn,
}

#[derive(Deserialize)]
pub(super) struct BlockStartFrame {
    pub(super) index: u64,
    pub(super) content_block: BlockIn,
}

#[derive(Deserialize)]
pub(super) struct BlockDeltaFrame<'a> {
    pub(super) index: u64,
    #[serde(borrow)]
    pub(super) delta: DeltaIn<'a>,
}

#[derive(Deserialize)]
pub(super) struct BlockStopFrame {
    pub(super) index: u64,
    #[serde(rename = "type")]
    pub(super) _kind: Option<Value>,
    /// Fields that the block's start did not carry; written by this gateway's own writer.
    #[serde(flatten)]
    pub(super) extra: Fields,
}

/// The frame with the reply's end.
#[derive(Deserialize)]
pub(super) struct MessageDeltaFrame {
    pub(super) delta: Option<StopIn>,
    pub(super) usage: Option<UsageIn>,
    #[serde(rename = "type")]
    pub(super) _kind: Option<Value>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct StopIn {
    pub(super) stop_reason: Option<String>,
    pub(super) stop_sequence: Option<String>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

/// A delta of a block.
pub(super) enum DeltaIn<'a> {
    Text(Cow<'a, str>),
    Json(Cow<'a, str>),
    Thinking(Cow<'a, str>),
    Signature(String),
    Citation(Value),
    Other(Fields),
}

impl<'de> Tagged<'de> for DeltaIn<'de> {
    fn read<D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Text<'a> {
            #[serde(borrow, alias = "partial_json", alias = "thinking", alias = "signature")]
            text: Cow<'a, str>,
        }
        #[derive(Deserialize)]
        struct Citation {
            citation: Value,
        }
        Ok(match tag {
            "text_delta" => Self::Text(Text::deserialize(fields)?.text),
            "input_json_delta" => Self::Json(Text::deserialize(fields)?.text),
            "thinking_delta" => Self::Thinking(Text::deserialize(fields)?.text),
            "signature_delta" => Self::Signature(Text::deserialize(fields)?.text.into_owned()),
            "citations_delta" => Self::Citation(Citation::deserialize(fields)?.citation),
            "" => return Err(de::Error::custom("a delta needs a `type`")),
            _ => Self::Other(Fields::deserialize(fields)?),
        })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for DeltaIn<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_tagged::<DeltaIn<'de>, D>(deserializer)
    }
}
