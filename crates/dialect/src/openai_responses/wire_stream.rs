//! The events of a stream, as far as their reader looks into them.

use std::borrow::Cow;

use serde::Deserialize;
use toolgate_model::TurnError;

use super::wire::{Arguments, ContentPart, Item, ResponseBody};

/// Reads an event's data.
pub(super) fn read<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, TurnError> {
    serde_json::from_str(data).map_err(|error| {
        TurnError::upstream(
            "the host sent an event that cannot be read: check that it speaks the Responses API",
        )
        .caused_by(error)
    })
}

/// What every event says of itself.
#[derive(Deserialize)]
pub(super) struct Named<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Cow<'a, str>,
}

/// More of a text, a thought or a call.
#[derive(Deserialize)]
pub(super) struct DeltaEvent<'a> {
    #[serde(default)]
    pub(super) output_index: u32,
    #[serde(default)]
    pub(super) content_index: u32,
    #[serde(default)]
    pub(super) summary_index: u32,
    #[serde(borrow, default)]
    pub(super) delta: Cow<'a, str>,
}

/// A part of a message or thought opens or is complete.
#[derive(Deserialize)]
pub(super) struct PartEvent {
    #[serde(default)]
    pub(super) output_index: u32,
    #[serde(default)]
    pub(super) content_index: u32,
    pub(super) part: ContentPart,
}

/// A paragraph of a summary opens.
#[derive(Deserialize)]
pub(super) struct SummaryEvent {
    #[serde(default)]
    pub(super) output_index: u32,
    #[serde(default)]
    pub(super) summary_index: u32,
}

/// A call's arguments are complete.
#[derive(Deserialize)]
pub(super) struct ArgumentsEvent {
    #[serde(default)]
    pub(super) output_index: u32,
    #[serde(default)]
    pub(super) arguments: Arguments,
    #[serde(default)]
    pub(super) input: String,
}

/// An item is announced or complete.
#[derive(Deserialize)]
pub(super) struct ItemEvent {
    #[serde(default)]
    pub(super) output_index: u32,
    pub(super) item: Option<Item>,
}

/// The response as it stands.
#[derive(Deserialize)]
pub(super) struct ResponseEvent {
    pub(super) response: ResponseBody,
}
