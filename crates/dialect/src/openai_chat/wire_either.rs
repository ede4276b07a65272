//! Fields with two possible JSON types.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

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

impl<'de, T: Deserialize<'de>> Deserialize<'de> for StringOrObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StringOrObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for StringOrObjectVisitor<T> {
            type Value = StringOrObject<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an object")
            }

            fn visit_str<E>(self, text: &str) -> Result<StringOrObject<T>, E> {
                Ok(StringOrObject::String(text.to_owned()))
            }

            fn visit_string<E>(self, text: String) -> Result<StringOrObject<T>, E> {
                Ok(StringOrObject::String(text))
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<StringOrObject<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields)).map(StringOrObject::Object)
            }
        }

        deserializer.deserialize_any(StringOrObjectVisitor(PhantomData))
    }
}
