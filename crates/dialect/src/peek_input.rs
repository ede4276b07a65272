//! Looks into a request's `input` without parsing it: does an item only name an earlier one by its id?

use std::fmt;

use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The type of an item that only names another one.
const REFERENCE: &str = "item_reference";

/// True if an item of `input` is a reference: one of that type, or one with neither a type nor a role. Any other value
/// has no references, because dialects that do not define `input` ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HasReferences(pub(crate) bool);

impl<'de> Deserialize<'de> for HasReferences {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue(Read::Input)).map(Self)
    }
}

/// An item of `input`.
struct IsReference(bool);

impl<'de> Deserialize<'de> for IsReference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue(Read::Item)).map(Self)
    }
}

/// The `type` of an item.
struct IsReferenceType(bool);

impl<'de> Deserialize<'de> for IsReferenceType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue(Read::Type)).map(Self)
    }
}

/// What a value is read as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    Input,
    Item,
    Type,
}

/// Accepts any value: the peek rejects nothing that the full reader might accept.
struct AnyValue(Read);

impl<'de> Visitor<'de> for AnyValue {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(IsReference(is_reference)) = items.next_element()? {
            found |= is_reference;
        }
        Ok(found && self.0 == Read::Input)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<bool, A::Error> {
        let (mut is_named, mut has_type, mut has_role) = (false, false, false);
        while let Some(field) = fields.next_key()? {
            match field {
                Field::Type => {
                    has_type = true;
                    let IsReferenceType(is_reference) = fields.next_value()?;
                    is_named |= is_reference;
                }
                Field::Role => {
                    has_role = true;
                    fields.next_value::<IgnoredAny>()?;
                }
                Field::Other => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(self.0 == Read::Item && (is_named || !has_type && !has_role))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<bool, E> {
        Ok(self.0 == Read::Type && text == REFERENCE)
    }

    fn visit_unit<E: de::Error>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }
}

/// A field of an item.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Type,
    Role,
    #[serde(other)]
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, expect: bool) {
        assert_eq!(serde_json::from_str::<HasReferences>(input).unwrap(), HasReferences(expect), "{input}");
    }

    #[test]
    fn only_items_that_name_others_are_references() {
        check(r#"[{"type":"item_reference","id":"msg_1"}]"#, true);
        check(r#"[{"role":"user","content":"x"},{"id":"msg_1"}]"#, true);
        check(r#"[{"type":"item\u005freference","id":"msg_1"}]"#, true);
        check(r#"[{"type":"item_reference","type":"message","role":"user"}]"#, true);
        check(r#"[{"role":"user","content":"item_reference"}]"#, false);
        check(r#"[{"type":"message","content":[{"type":"item_reference"}]}]"#, false);
        check(r#"[{"type":"function_call","id":"fc_1"}]"#, false);
    }

    #[test]
    fn values_of_other_kinds_have_no_references() {
        for input in
            [r#""item_reference""#, "null", "1", "-1", "1.5", "true", "[]", r#"[["x"],7]"#, r#"{"id":"x"}"#]
        {
            check(input, false);
        }
    }
}
