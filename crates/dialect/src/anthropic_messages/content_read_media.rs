//! Reads images and documents. A block whose source the model cannot represent stays opaque.

use serde_json::Value;
use toolgate_model::{Document, Extras, Fields, Image, Opaque, Part, Source};

use super::ID;
use super::content_read_as_text as as_text;
use super::wire::extras;

/// The only media type of a document given as text.
pub(super) const PLAIN_TEXT: &str = "text/plain";

/// Reads an `image` block.
pub(super) fn read_image(fields: Fields) -> Part {
    let is_text =
        fields.get("source").and_then(|source| source.get("type")).is_some_and(|kind| kind == "text");
    if is_text {
        return opaque("image", fields);
    }
    match take_source(fields) {
        Err(fields) => opaque("image", fields),
        Ok((source, mut fields)) => {
            fields.shift_remove("source");
            Part::Image(Image { source, detail: None, extras: extras(fields) })
        }
    }
}

/// Reads a `document` block.
pub(super) fn read_document(fields: Fields) -> Part {
    match take_source(fields) {
        Ok((source, mut fields)) => {
            fields.shift_remove("source");
            let name = fields.get("title").and_then(Value::as_str).map(str::to_owned);
            if name.is_some() {
                fields.shift_remove("title");
            }
            fields.retain(|_, value| !value.is_null());
            // Marked even without fields: a document of this dialect is written back unchanged.
            Part::Document(Document { source, name, extras: Extras::marked(ID, fields) })
        }
        Err(fields) => as_text::read_document(fields).unwrap_or_else(|fields| opaque("document", fields)),
    }
}

/// Takes the source out of the block if the model can represent all of it, else returns the block unchanged.
fn take_source(mut fields: Fields) -> Result<(Source, Fields), Fields> {
    match fields.get_mut("source").and_then(Value::as_object_mut).and_then(known_source) {
        Some(source) => Ok((source, fields)),
        None => Err(fields),
    }
}

fn known_source(source: &mut Fields) -> Option<Source> {
    let kind = source.get("type")?.as_str()?;
    let expected: &[&str] = match kind {
        "base64" | "text" => &["type", "media_type", "data"],
        "url" => &["type", "url"],
        "file" => &["type", "file_id"],
        _ => return None,
    };
    let complete = expected.iter().all(|name| source.get(*name).is_some_and(Value::is_string));
    let other_text = kind == "text" && source.get("media_type").and_then(Value::as_str) != Some(PLAIN_TEXT);
    if !complete || source.len() != expected.len() || other_text {
        return None;
    }
    let mut take = |name: &str| match source.get_mut(name).map(Value::take) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    Some(match take("type")?.as_str() {
        "base64" => Source::Base64 { media_type: take("media_type")?, data: take("data")? },
        "text" => Source::Text(take("data")?),
        "url" => Source::Url(take("url")?),
        _ => Source::File { provider: ID.provider, id: take("file_id")? },
    })
}

fn opaque(kind: &str, mut fields: Fields) -> Part {
    fields.insert("type".to_owned(), Value::from(kind));
    Part::Opaque(Opaque { dialect: ID, kind: kind.to_owned(), fields })
}
