//! The JSON of a stream's chunks. A hot path: text is borrowed, and common fields are named, so that the flattened maps
//! stay empty.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_model::Fields;

use super::error;
use super::wire::{PartIn, object_content};
use super::wire_either::StringOrArray;

/// One chunk.
#[derive(Deserialize)]
pub(super) struct ChunkIn<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<Str<'a>>,
    #[serde(rename = "object")]
    _object: Option<IgnoredAny>,
    /// Padding.
    #[serde(rename = "obfuscation")]
    _obfuscation: Option<IgnoredAny>,
    #[serde(borrow)]
    pub(super) created: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) system_fingerprint: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) service_tier: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) choices: Option<Vec<ChoiceIn<'a>>>,
    #[serde(borrow, default)]
    pub(super) usage: UsageField<'a>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

impl ChunkIn<'_> {
    /// True if the chunk reports an error. Beside choices, an empty error means that there is none.
    pub(super) fn has_error(&self) -> bool {
        let has_choices = self.choices.as_ref().is_some_and(|choices| !choices.is_empty());
        self.error.is_some_and(|error| !has_choices || !error::is_empty(error.get()))
    }
}

/// `null` differs from a missing field: it announces a usage chunk.
#[derive(Default)]
pub(super) enum UsageField<'a> {
    #[default]
    Absent,
    Null,
    Given(&'a RawValue),
}

impl<'de: 'a, 'a> Deserialize<'de> for UsageField<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Option::<&'de RawValue>::deserialize(deserializer)?;
        Ok(given.map_or(Self::Null, Self::Given))
    }
}

#[derive(Deserialize)]
pub(super) struct ChoiceIn<'a> {
    pub(super) index: Option<u32>,
    #[serde(borrow)]
    pub(super) delta: Option<DeltaIn<'a>>,
    /// Some hosts send the whole message in place of a delta, others the message so far beside it.
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Str<'a>>,
    /// Named, because most hosts send `null` in every chunk.
    #[serde(borrow)]
    pub(super) logprobs: Option<&'a RawValue>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct DeltaIn<'a> {
    #[serde(rename = "role")]
    _role: Option<IgnoredAny>,
    #[serde(borrow)]
    pub(super) content: Option<ContentIn<'a>>,
    #[serde(borrow)]
    pub(super) reasoning_content: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) reasoning: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) reasoning_text: Option<Str<'a>>,
    pub(super) reasoning_details: Option<Vec<Value>>,
    #[serde(borrow)]
    pub(super) refusal: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<CallDelta<'a>>>,
    #[serde(borrow)]
    pub(super) function_call: Option<InputDelta<'a>>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

/// A delta of a call. Some hosts repeat the id and the name, some send them late, some send no index.
#[derive(Deserialize)]
pub(super) struct CallDelta<'a> {
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) id: Option<Str<'a>>,
    #[serde(rename = "type")]
    _kind: Option<IgnoredAny>,
    #[serde(borrow)]
    pub(super) function: Option<InputDelta<'a>>,
    #[serde(borrow)]
    pub(super) custom: Option<InputDelta<'a>>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

impl<'a> CallDelta<'a> {
    /// A delta of a legacy stream's only call.
    pub(super) fn legacy(function: InputDelta<'a>) -> Self {
        Self {
            index: Some(0),
            id: None,
            _kind: None,
            function: Some(function),
            custom: None,
            extra: Fields::new(),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct InputDelta<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Str<'a>>,
    #[serde(borrow, alias = "input")]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

impl<'a> InputDelta<'a> {
    /// True if it has neither a name nor input.
    pub(super) fn is_empty(&self) -> bool {
        self.name.as_ref().is_none_or(|name| name.0.is_empty()) && self.input().is_empty()
    }

    /// The input delta: a string by the specification; some hosts send an object (T34).
    pub(super) fn input(&self) -> Cow<'a, str> {
        match self.arguments {
            None => Cow::Borrowed(""),
            Some(raw) => {
                serde_json::from_str::<Str<'a>>(raw.get()).map_or(Cow::Borrowed(raw.get()), |text| text.0)
            }
        }
    }
}

/// A string, borrowed if it has no escapes. (serde borrows a `Cow` only outside of `Option`.)
#[derive(Deserialize)]
pub(super) struct Str<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl<'a> Str<'a> {
    /// The text; empty if the field is absent (T12).
    pub(super) fn text(field: Option<Self>) -> Cow<'a, str> {
        field.map_or(Cow::Borrowed(""), |text| text.0)
    }
}

/// A string; or parts or an object, at hosts that stream the form of whole replies.
pub(super) enum ContentIn<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<PartIn>),
}

impl<'de: 'a, 'a> Deserialize<'de> for ContentIn<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;

        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = ContentIn<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an array of parts")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<ContentIn<'de>, E> {
                Ok(ContentIn::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<ContentIn<'de>, E> {
                Ok(ContentIn::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_string<E>(self, text: String) -> Result<ContentIn<'de>, E> {
                Ok(ContentIn::Text(Cow::Owned(text)))
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<ContentIn<'de>, A::Error> {
                let fields = Fields::deserialize(MapAccessDeserializer::new(fields))?;
                Ok(match object_content(&Value::Object(fields).to_string()) {
                    StringOrArray::String(text) => ContentIn::Text(Cow::Owned(text)),
                    StringOrArray::Array(parts) => ContentIn::Parts(parts),
                })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ContentIn<'de>, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = items.next_element()? {
                    parts.push(part);
                }
                Ok(ContentIn::Parts(parts))
            }
        }

        deserializer.deserialize_any(ContentVisitor)
    }
}
