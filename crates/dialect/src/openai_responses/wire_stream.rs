//! The JSON of a stream's events, as far as the reader needs it.

use std::borrow::Cow;

use serde::Deserialize;
use toolgate_model::TurnError;

use super::stream_read_lookup::ItemRef;
use super::wire::{Arguments, ContentPart, Item, ResponseBody};

/// Reads an event's data.
pub(super) fn read<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, TurnError> {
    serde_json::from_str(data).map_err(|error| {
        TurnError::upstream(
            "the host sent an event that cannot be read: check that the upstream uses the Responses API",
        )
        .caused_by(error)
    })
}

/// The type of an event.
#[derive(Deserialize)]
pub(super) struct Named<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Cow<'a, str>,
}

/// A delta of a text, reasoning or call.
#[derive(Deserialize)]
pub(super) struct DeltaEvent<'a> {
    pub(super) output_index: Option<u32>,
    #[serde(borrow)]
    pub(super) item_id: Option<Str<'a>>,
    #[serde(default)]
    pub(super) content_index: u32,
    #[serde(default)]
    pub(super) summary_index: u32,
    #[serde(borrow, default)]
    pub(super) delta: Cow<'a, str>,
}

impl DeltaEvent<'_> {
    pub(super) fn item(&self) -> ItemRef<'_> {
        ItemRef { index: self.output_index, id: self.item_id.as_ref().map(|id| id.0.as_ref()) }
    }
}

/// A string, borrowed if it has no escapes. (serde borrows a `Cow` only outside of `Option`.)
#[derive(Deserialize)]
pub(super) struct Str<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// A part of a message or reasoning item was added or is done.
#[derive(Deserialize)]
pub(super) struct PartEvent {
    pub(super) output_index: Option<u32>,
    pub(super) item_id: Option<String>,
    #[serde(default)]
    pub(super) content_index: u32,
    pub(super) part: ContentPart,
}

impl PartEvent {
    pub(super) fn item(&self) -> ItemRef<'_> {
        ItemRef { index: self.output_index, id: self.item_id.as_deref() }
    }
}

/// A paragraph of a summary was added.
#[derive(Deserialize)]
pub(super) struct SummaryEvent {
    pub(super) output_index: Option<u32>,
    pub(super) item_id: Option<String>,
    #[serde(default)]
    pub(super) summary_index: u32,
}

/// The complete arguments of a call.
#[derive(Deserialize)]
pub(super) struct ArgumentsEvent {
    pub(super) output_index: Option<u32>,
    pub(super) item_id: Option<String>,
    #[serde(default)]
    pub(super) arguments: Arguments,
    #[serde(default)]
    pub(super) input: String,
}

/// An item was added or is done.
#[derive(Deserialize)]
pub(super) struct ItemEvent {
    pub(super) output_index: Option<u32>,
    pub(super) item: Option<Item>,
}

/// The response so far.
#[derive(Deserialize)]
pub(super) struct ResponseEvent {
    pub(super) response: ResponseBody,
}
