//! The JSON of a stream's chunks. A hot path: text is borrowed, and what is usually there is named, so that the
//! catch-all fields stay empty.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;
use toolgate_model::Fields;

use super::wire::PartIn;

/// One frame.
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

/// `null` is not the same as nothing here: it announces token counts.
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
    #[serde(borrow)]
    pub(super) finish_reason: Option<Str<'a>>,
    /// Named, because most hosts say `null` every time.
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
    pub(super) refusal: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<CallDelta<'a>>>,
    #[serde(borrow)]
    pub(super) function_call: Option<InputDelta<'a>>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

/// A piece of a call. Some hosts repeat the id and the name, some give them late, some give no index.
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
    /// A piece of the only call a legacy stream has.
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
    /// The piece of input. By the book it is text; some hosts send the object itself (T34).
    pub(super) fn input(&self) -> Cow<'a, str> {
        match self.arguments {
            None => Cow::Borrowed(""),
            Some(raw) => {
                serde_json::from_str::<Str<'a>>(raw.get()).map_or(Cow::Borrowed(raw.get()), |text| text.0)
            }
        }
    }
}

/// Text, borrowed where it holds no escapes. (serde borrows a `Cow` only outside of `Option`.)
#[derive(Deserialize)]
pub(super) struct Str<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl<'a> Str<'a> {
    /// The text; empty where there is none (T12).
    pub(super) fn text(field: Option<Self>) -> Cow<'a, str> {
        field.map_or(Cow::Borrowed(""), |text| text.0)
    }
}

/// Text, or parts where a host streams its whole-reply form.
pub(super) enum ContentIn<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<PartIn>),
}

impl<'de: 'a, 'a> Deserialize<'de> for ContentIn<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
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

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ContentIn<'de>, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = items.next_element()? {
                    parts.push(part);
                }
                Ok(ContentIn::Parts(parts))
            }
        }

        deserializer.deserialize_any(Either)
    }
}
