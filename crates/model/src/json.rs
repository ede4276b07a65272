//! JSON kept as text, and how tagged objects are read.
//!
//! serde's internally tagged enums buffer their content, and `RawValue` cannot be read from that buffer. So
//! tagged objects are read by [`read_tagged`]: the tag usually comes first and the rest is then read directly,
//! in one pass; fields that come before the tag are kept as raw text and handed on.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON value as text, byte for byte as it was written. Two are equal if their values are equal.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonText(Box<RawValue>);

impl JsonText {
    /// Parses exactly one JSON value.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text).map(Self)
    }

    /// The text of a value built in memory.
    pub fn from_value(value: &Value) -> Self {
        // A `Value` always serializes: its keys are strings and its numbers are finite.
        serde_json::value::to_raw_value(value).map_or_else(|_| Self::null(), Self)
    }

    /// `{}`.
    pub fn empty_object() -> Self {
        Self::from_value(&Value::Object(serde_json::Map::new()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The parsed value.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.0.get()).unwrap_or(Value::Null)
    }

    /// True for a JSON object.
    pub fn is_object(&self) -> bool {
        self.as_str().trim_start().starts_with('{')
    }

    fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str() || self.to_value() == other.to_value()
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A type whose JSON is an object with a tag field that selects the variant.
pub trait Tagged<'de>: Sized {
    /// The name of the tag field.
    const TAG: &'static str = "type";

    /// Reads the variant `tag` from the object's other fields. The tag is empty if the object has none.
    fn read<D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Self, D::Error>;

    /// Reads a string in place of an object. An error unless the type has such a form.
    fn read_text<E: de::Error>(text: &str) -> Result<Self, E> {
        let expected = format!("an object with a `{}`", Self::TAG);
        Err(E::invalid_type(de::Unexpected::Str(text), &expected.as_str()))
    }
}

/// Reads a tagged object in one pass; use it to implement `Deserialize` for a [`Tagged`] type. It reads from JSON
/// text (`from_str`, `from_slice`), not from a `Value`, because fields before the tag are borrowed from the text.
pub fn read_tagged<'de, T: Tagged<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(TaggedVisitor(PhantomData))
}

struct TaggedVisitor<T>(PhantomData<T>);

impl<'de, T: Tagged<'de>> Visitor<'de> for TaggedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with a `{}`", T::TAG)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::read_text(text)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<T, M::Error> {
        let mut before = Vec::new();
        let mut tag = BorrowedString(Cow::Borrowed(""));
        while let Some(key) = map.next_key::<BorrowedString<'de>>()? {
            if key.0 == T::TAG {
                tag = map.next_value()?;
                break;
            }
            before.push((key.0, map.next_value::<&'de RawValue>()?));
        }
        let fields = RemainingFields { before: before.into_iter(), value: None, rest: map };
        T::read(&tag.0, de::value::MapAccessDeserializer::new(fields))
    }
}

/// A string, borrowed from the text if it has no escapes.
#[derive(Deserialize)]
struct BorrowedString<'t>(#[serde(borrow)] Cow<'t, str>);

/// The fields before the tag, then those after it.
struct RemainingFields<'de, M> {
    before: std::vec::IntoIter<(Cow<'de, str>, &'de RawValue)>,
    value: Option<&'de RawValue>,
    rest: M,
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for RemainingFields<'de, M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, M::Error> {
        let Some((key, value)) = self.before.next() else {
            return self.rest.next_key_seed(seed);
        };
        self.value = Some(value);
        seed.deserialize(key.into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        let Some(value) = self.value.take() else {
            return self.rest.next_value_seed(seed);
        };
        seed.deserialize(value).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Circle {
        radius: JsonText,
    }

    #[derive(Debug, PartialEq)]
    enum Shape {
        Circle(Circle),
        Other(String, Value),
    }

    impl<'de> Tagged<'de> for Shape {
        fn read<D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Self, D::Error> {
            match tag {
                "circle" => Circle::deserialize(fields).map(Self::Circle),
                other => Ok(Self::Other(other.to_owned(), Value::deserialize(fields)?)),
            }
        }
    }

    impl<'de> Deserialize<'de> for Shape {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            read_tagged(deserializer)
        }
    }

    #[test]
    fn the_tag_may_be_at_any_position_and_text_is_kept() {
        let radius = |text: &str| Shape::Circle(Circle { radius: JsonText::parse(text).unwrap() });
        let check =
            |text: &str, expect: Shape| assert_eq!(serde_json::from_str::<Shape>(text).unwrap(), expect);
        check(r#"{"type":"circle","radius":{ "a": 1.0 }}"#, radius(r#"{ "a": 1.0 }"#));
        check(r#"{"radius":{"a":1.0},"type":"circle"}"#, radius(r#"{"a":1.0}"#));
        check(
            r#"{"x":1,"type":"blob","y":2}"#,
            Shape::Other("blob".into(), serde_json::json!({"x":1,"y":2})),
        );
        check("{}", Shape::Other(String::new(), serde_json::json!({})));
        assert!(serde_json::from_str::<Shape>(r#"{"type":"circle"}"#).is_err());
    }

    #[test]
    fn json_text_keeps_its_bytes_and_compares_by_value() {
        let text = JsonText::parse(r#"{"b":1, "a":"\u00e9"}"#).unwrap();
        assert_eq!(text.as_str(), r#"{"b":1, "a":"\u00e9"}"#);
        assert_eq!(text, JsonText::parse(r#"{"a":"é","b":1}"#).unwrap());
        assert!(text.is_object());
    }
}
