//! Fields with two possible JSON types.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A string or an array.
pub(super) enum StringOrArray<T> {
    String(String),
    Array(Vec<T>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for StringOrArray<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StringOrArrayVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for StringOrArrayVisitor<T> {
            type Value = StringOrArray<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an array")
            }

            fn visit_str<E>(self, text: &str) -> Result<StringOrArray<T>, E> {
                Ok(StringOrArray::String(text.to_owned()))
            }

            fn visit_string<E>(self, text: String) -> Result<StringOrArray<T>, E> {
                Ok(StringOrArray::String(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<StringOrArray<T>, A::Error> {
                let mut array = Vec::new();
                while let Some(item) = items.next_element()? {
                    array.push(item);
                }
                Ok(StringOrArray::Array(array))
            }
        }

        deserializer.deserialize_any(StringOrArrayVisitor(PhantomData))
    }
}

/// A string or an object.
pub(super) enum StringOrObject<T> {
    String(String),
    Object(T),
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for StringOrObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?;
        let read = if raw.get().starts_with('"') {
            serde_json::from_str(raw.get()).map(Self::String)
        } else {
            serde_json::from_str(raw.get()).map(Self::Object)
        };
        read.map_err(D::Error::custom)
    }
}
