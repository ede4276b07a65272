//! Finds the user's first words in a request without parsing the conversation. Reading stops as soon as they are found,
//! which is near the beginning of most bodies.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use toolgate_model::observed::MAX_OPENING_BYTES;

/// The last text of the first user message that has one, cut to [`MAX_OPENING_BYTES`]; empty if there is none. The same
/// in every dialect as `toolgate_model::observed::opening_text` of the parsed request.
pub fn peek_opening(body: &[u8]) -> String {
    let mut found = None;
    let mut json = serde_json::Deserializer::from_slice(body);
    // The error that stops the reading is no failure, and a malformed body is refused elsewhere.
    match json.deserialize_map(Body(&mut found)) {
        Ok(()) | Err(_) => found.unwrap_or_default(),
    }
}

/// A request body.
struct Body<'a>(&'a mut Option<String>);

impl<'de> Visitor<'de> for Body<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut fields: M) -> Result<(), M::Error> {
        while let Some(field) = fields.next_key()? {
            match field {
                Field::Messages | Field::Input => fields.next_value_seed(Conversation(&mut *self.0))?,
                Field::Other => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// A field of a request.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Messages,
    Input,
    #[serde(other)]
    Other,
}

/// `messages` or `input`: messages, or one text.
struct Conversation<'a>(&'a mut Option<String>);

impl<'de> DeserializeSeed<'de> for Conversation<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Conversation<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut messages: A) -> Result<(), A::Error> {
        while let Some(message) = messages.next_element::<MessageIn<'_>>()? {
            let text =
                message.content.filter(|_| message.role.as_deref() == Some("user")).and_then(last_text);
            if text.is_some() {
                *self.0 = text;
                return Err(de::Error::custom("found"));
            }
        }
        Ok(())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        *self.0 = Some(text[..text.floor_char_boundary(MAX_OPENING_BYTES)].to_owned());
        Err(E::custom("found"))
    }
}

#[derive(Deserialize)]
struct MessageIn<'a> {
    #[serde(borrow)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct PartIn<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

fn last_text(content: &RawValue) -> Option<String> {
    if content.get().starts_with('"') {
        return beginning(content.get());
    }
    let parts: Vec<PartIn<'_>> = serde_json::from_str(content.get()).ok()?;
    parts.iter().rev().filter_map(|part| part.text).find_map(|text| beginning(text.get()))
}

/// The beginning of a JSON string, without reading the rest. `None` if it is blank or no string.
fn beginning(raw: &str) -> Option<String> {
    /// The longest escape: two surrogates.
    const ESCAPE_BYTES: usize = 12;
    /// The quote, and characters that are all escaped, which makes them up to six times as long.
    const RAW_BYTES: usize = 1 + 6 * MAX_OPENING_BYTES;
    let text = if raw.len() <= RAW_BYTES {
        serde_json::from_str::<Cow<'_, str>>(raw).ok()?.into_owned()
    } else {
        // The cut may be inside an escape.
        let cuts = (RAW_BYTES - ESCAPE_BYTES..=RAW_BYTES).rev();
        cuts.map(|end| format!("{}\"", &raw[..raw.floor_char_boundary(end)]))
            .find_map(|cut| serde_json::from_str::<String>(&cut).ok())?
    };
    if text.trim().is_empty() {
        return None;
    }
    Some(text[..text.floor_char_boundary(MAX_OPENING_BYTES)].to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_model::observed::opening_text;

    use super::*;
    use crate::registry;

    /// The peek finds this text, and so does the full reader of each dialect that has such requests.
    #[track_caller]
    fn check(dialects: &[&str], body: &serde_json::Value, expect: &str) {
        let body = body.to_string();
        assert_eq!(peek_opening(body.as_bytes()), expect, "{body:.200}");
        for dialect in dialects {
            let client = registry::find(dialect).expect("a dialect").client;
            let request = client.read_request(body.as_bytes()).expect("a request").value;
            let opening = opening_text(&request.messages);
            assert_eq!(
                &opening[..opening.floor_char_boundary(MAX_OPENING_BYTES)],
                expect,
                "{dialect}: {body:.200}"
            );
        }
    }

    #[test]
    fn the_first_words_are_the_same_for_every_reader() {
        let all = ["anthropic-messages", "openai-chat"];
        let messages = |content: serde_json::Value| {
            json!({ "model": "m", "max_tokens": 1, "messages": [
            { "role": "user", "content": content },
            { "role": "assistant", "content": "yes" },
            { "role": "user", "content": "later" },
        ] })
        };
        check(&all, &messages(json!("Fix \"it\"\n\u{1f600}")), "Fix \"it\"\n\u{1f600}");
        let parts = json!([{ "type": "text", "text": "context" }, { "type": "text", "text": "Fix it" }]);
        check(&all, &messages(parts), "Fix it");
        let long = "é\n".repeat(MAX_OPENING_BYTES);
        check(&all, &messages(json!(long)), &long[..long.floor_char_boundary(MAX_OPENING_BYTES)]);
        let escaped = "\u{1}".repeat(8 * MAX_OPENING_BYTES);
        check(&all, &messages(json!(escaped)), &escaped[..MAX_OPENING_BYTES]);
        let image = json!([{ "type": "image", "source": { "type": "url", "url": "https://x/y" } }]);
        check(&["anthropic-messages"], &messages(image), "later");
        check(&["openai-responses"], &json!({ "model": "m", "input": "Fix it" }), "Fix it");
        let items = json!({ "model": "m", "input": [
            { "role": "developer", "content": "Be short." },
            { "role": "user", "content": [{ "type": "input_text", "text": "Fix it" }] },
        ] });
        check(&["openai-responses"], &items, "Fix it");
    }

    #[test]
    fn a_body_without_words_has_an_empty_opening() {
        for body in [
            "",
            "{",
            "[]",
            "{}",
            r#"{"messages":7}"#,
            r#"{"messages":[7]}"#,
            r#"{"messages":[{"role":"user"}]}"#,
            r#"{"messages":[{"role":"user","content":" "}]}"#,
            r#"{"messages":[{"role":"user","content":{"text":1}}]}"#,
        ] {
            assert_eq!(peek_opening(body.as_bytes()), "", "{body}");
        }
    }

    #[test]
    fn nothing_after_the_first_words_is_read() {
        assert_eq!(peek_opening(br#"{"messages":[{"role":"user","content":"x"},{"role":"user" ###"#), "x");
    }
}
