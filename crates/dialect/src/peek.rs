//! Reads the few request fields that routing needs, without parsing the conversation.
//!
//! A request for an upstream of the client's own dialect can be relayed after this: the host checks the rest.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::json::{self, Unreadable};
use crate::peek_input::HasReferences;

/// The fields that every request dialect spells the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek<'b> {
    /// `model`, as the client wrote it.
    pub model: Cow<'b, str>,
    /// `stream`; absent and `null` mean false.
    pub stream: bool,
    /// `store`; `None` if it is absent or not a boolean. A reply that must be stored cannot be relayed unread.
    pub store: Option<bool>,
    /// True if `previous_response_id` or `conversation` has a value: earlier messages are stored.
    pub continues_reply: bool,
    /// True if `input` names items of earlier replies instead of repeating them.
    pub has_references: bool,
}

/// Reads the shared fields. Every other field is skipped, but the body must be one valid JSON object, and none of
/// the shared fields may occur twice.
pub(crate) fn peek(body: &[u8]) -> Result<Peek<'_>, Unreadable> {
    let Object(SharedFields { model, stream, store, previous_response_id, conversation, input }) =
        json::read(body)?;
    Ok(Peek {
        model,
        stream: stream.unwrap_or(false),
        store: store.and_then(|store| serde_json::from_str(store.get()).ok()),
        continues_reply: previous_response_id.is_some() || conversation.is_some(),
        has_references: input.0,
    })
}

#[derive(Deserialize)]
struct SharedFields<'b> {
    #[serde(borrow)]
    model: Cow<'b, str>,
    stream: Option<bool>,
    // Dialects that do not define these fields ignore their values, so the peek must not reject any.
    #[serde(borrow)]
    store: Option<&'b RawValue>,
    #[serde(borrow)]
    previous_response_id: Option<&'b RawValue>,
    #[serde(borrow)]
    conversation: Option<&'b RawValue>,
    #[serde(default)]
    input: HasReferences,
}

/// Accepts objects only. A derived struct would also accept an array of its fields in order.
struct Object<'b>(SharedFields<'b>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Object<'de>, M::Error> {
        SharedFields::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    #[track_caller]
    fn check(body: &str, expect: &Peek<'_>) {
        for (name, dialect) in &registry::ALL {
            assert_eq!(&dialect.client.peek_request(body.as_bytes()).unwrap(), expect, "{name}: {body}");
        }
    }

    /// The peek and the full reader report the same error.
    #[track_caller]
    fn check_error(body: &[u8], expect: &str) {
        for (name, dialect) in &registry::ALL {
            let error = dialect.client.peek_request(body).expect_err("an unreadable body");
            assert!(error.message.contains(expect), "{name}: {}", error.message);
            let full = dialect.client.read_request(body).expect_err("an unreadable body");
            assert_eq!((error.kind, error.message, error.param), (full.kind, full.message, full.param));
        }
    }

    fn whole(model: &str) -> Peek<'_> {
        Peek {
            model: Cow::Borrowed(model),
            stream: false,
            store: None,
            continues_reply: false,
            has_references: false,
        }
    }

    #[test]
    fn shared_fields_are_read_and_others_skipped() {
        check(r#"{"model":"m"}"#, &whole("m"));
        check(r#" {"messages":[{"stream":true,"model":7}],"model":"m","x":1e9} "#, &whole("m"));
        check(r#"{"model":"m\u00e9","stream":null,"store":null}"#, &whole("mé"));
        check(r#"{"stream":false,"model":"m","store":"yes"}"#, &whole("m"));
        check(r#"{"stream":true,"model":"m"}"#, &Peek { stream: true, ..whole("m") });
        check(r#"{"store":false,"model":"m"}"#, &Peek { store: Some(false), ..whole("m") });
        check(r#"{"store":true,"model":"m"}"#, &Peek { store: Some(true), ..whole("m") });
        for field in [r#""previous_response_id":"resp_1""#, r#""conversation":{"id":"conv_1"}"#] {
            check(&format!(r#"{{{field},"model":"m"}}"#), &Peek { continues_reply: true, ..whole("m") });
        }
        check(r#"{"input":[{"id":"msg_1"}],"model":"m"}"#, &Peek { has_references: true, ..whole("m") });
    }

    #[test]
    fn unreadable_bodies_are_reported_as_the_full_reader_reports_them() {
        check_error(b"", "EOF while parsing");
        check_error(br#"{"model":"m""#, "EOF while parsing");
        check_error(br#"{"model":"m","messages":[],"input":[]} x"#, "trailing characters");
        check_error(br#"["model"]"#, "invalid type: sequence, expected a JSON object");
        check_error(b"{\"model\":\"\xff\"}", "invalid unicode code point");
        check_error(br#"{"model":"m","model":"n"}"#, "duplicate field `model`");
        check_error(br#"{"model":"m","stream":true,"stream":false}"#, "duplicate field `stream`");
        check_error(br#"{"model":7}"#, "invalid type: integer `7`, expected a string");
        check_error(br#"{"model":null}"#, "invalid type: null, expected a string");
        check_error(br#"{"model":"m","stream":"yes"}"#, "stream: invalid type: string");
    }
}
