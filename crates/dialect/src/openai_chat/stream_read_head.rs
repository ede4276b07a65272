//! Collects a stream's head. Some hosts spread it over several chunks: Azure sends the reply's id only in its second.

use serde_json::value::RawValue;
use toolgate_model::{Fields, ReplyHead};

use super::extras::{extras, merge};
use super::reply_read::{SERVICE_TIER, mark_head, seconds, service_tier};
use super::wire_stream::{ChunkIn, Str};

/// The head of one stream.
pub(super) struct HeadReader {
    head: ReplyHead,
    is_emitted: bool,
    /// Unknown fields that arrived before the head was emitted.
    early_fields: Fields,
    /// Unknown fields that arrived after it.
    late_fields: Fields,
    /// Fields that most hosts repeat in every chunk, with their last value.
    repeated: [(&'static str, Option<String>); 2],
}

impl HeadReader {
    pub(super) fn new() -> Self {
        Self {
            head: ReplyHead::default(),
            is_emitted: false,
            early_fields: Fields::new(),
            late_fields: Fields::new(),
            repeated: [("system_fingerprint", None), (SERVICE_TIER, None)],
        }
    }

    /// Reads the top-level fields of a chunk.
    pub(super) fn chunk(&mut self, chunk: &ChunkIn<'_>) {
        self.repeated_fields(chunk);
        if self.is_emitted {
            return;
        }
        let text = |field: &Option<Str<'_>>| {
            field.as_ref().map(|text| text.0.to_string()).filter(|text| !text.is_empty())
        };
        if let (None, Some(id)) = (&self.head.id, text(&chunk.id)) {
            self.head.id = Some(id.into());
        }
        if self.head.created.is_none() {
            let created = chunk.created.and_then(|number| seconds(number.get()));
            self.head.created = created.filter(|seconds| *seconds > 0);
        }
        if let (None, Some(model)) = (&self.head.model, text(&chunk.model)) {
            self.head.model = Some(model.into());
        }
    }

    fn repeated_fields(&mut self, chunk: &ChunkIn<'_>) {
        let values = [chunk.system_fingerprint, chunk.service_tier];
        for ((name, last), value) in self.repeated.iter_mut().zip(values) {
            let Some(value) = value.map(RawValue::get).filter(|value| last.as_deref() != Some(*value)) else {
                continue;
            };
            *last = Some(value.to_owned());
            let fields = if self.is_emitted { &mut self.late_fields } else { &mut self.early_fields };
            fields.insert((*name).to_owned(), serde_json::from_str(value).unwrap_or_default());
        }
    }

    /// Adds the unknown top-level fields of a chunk.
    pub(super) fn unknown_fields(&mut self, extra: Fields) {
        merge(if self.is_emitted { &mut self.late_fields } else { &mut self.early_fields }, extra);
    }

    /// True once id, model and creation time are known.
    pub(super) fn is_complete(&self) -> bool {
        let ReplyHead { id, model, created, service_tier: _, extras: _ } = &self.head;
        id.is_some() && model.is_some() && created.is_some()
    }

    /// True once [`HeadReader::emit`] has returned the head.
    pub(super) fn is_emitted(&self) -> bool {
        self.is_emitted
    }

    /// The host's id for the reply; empty if unknown.
    pub(super) fn reply_id(&self) -> &str {
        self.head.id.as_ref().map_or("", |id| id.as_str())
    }

    /// The head, the first time it is called.
    pub(super) fn emit(&mut self) -> Option<ReplyHead> {
        if std::mem::replace(&mut self.is_emitted, true) {
            return None;
        }
        let mut head = self.head.clone();
        head.service_tier = service_tier(&self.early_fields);
        head.extras = extras(std::mem::take(&mut self.early_fields));
        mark_head(&mut head);
        Some(head)
    }

    /// The unknown fields that arrived after the head.
    pub(super) fn take_late_fields(&mut self) -> Fields {
        std::mem::take(&mut self.late_fields)
    }
}
