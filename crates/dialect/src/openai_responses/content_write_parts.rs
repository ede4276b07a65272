//! Writes content parts: texts, images, files, audio.

use serde_json::{Value, json};
use toolgate_model::{Audio, Document, Fields, Image, Losses, Part, Source};

use super::ID;

/// Where content comes from; decides how empty content is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentSource {
    /// A user or system message.
    User,
    /// A tool, whose empty result is an empty string.
    Tool,
}

/// The prefix of a failed tool's output: the API has no error flag (T25).
const ERROR_MARK: &str = "[error] ";

/// Writes content: a string if it is one plain text, else parts.
pub(super) fn content(parts: &[Part], source: ContentSource, losses: &mut Losses) -> Value {
    match parts {
        [Part::Text(text)] if text.extras.known_to(ID).is_none() => {
            text.extras.write(ID, "messages[].content[]", losses);
            Value::from(text.text.as_str())
        }
        [] if source == ContentSource::Tool => Value::from(""),
        parts => parts.iter().filter_map(|part| write(part, losses)).map(Value::Object).collect(),
    }
}

/// Adds the error prefix to a tool's output.
pub(super) fn mark_error(output: &mut Value, losses: &mut Losses) {
    losses.add("messages[].content[].is_error", "written as a prefix of the tool's output");
    match output {
        Value::String(text) => text.insert_str(0, ERROR_MARK),
        Value::Array(parts) => {
            parts.insert(0, json!({ "type": "input_text", "text": ERROR_MARK.trim_end() }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}

fn write(part: &Part, losses: &mut Losses) -> Option<Fields> {
    match part {
        Part::Text(text) => {
            let mut fields = text_part(&text.text);
            fields.extend(text.extras.write(ID, "messages[].content[]", losses));
            Some(fields)
        }
        Part::Image(image) => self::image(image, losses),
        Part::Document(document) => self::document(document, losses),
        Part::Audio(audio) => Some(self::audio(audio, losses)),
        Part::Opaque(opaque) => opaque.write(ID, "messages[].content", losses).cloned(),
    }
}

fn text_part(text: &str) -> Fields {
    let mut fields = Fields::new();
    fields.insert("type".to_owned(), Value::from("input_text"));
    fields.insert("text".to_owned(), Value::from(text));
    fields
}

fn image(image: &Image, losses: &mut Losses) -> Option<Fields> {
    let mut fields = Fields::new();
    fields.insert("type".to_owned(), Value::from("input_image"));
    match &image.source {
        Source::Base64 { media_type, data } => {
            fields.insert("image_url".to_owned(), Value::from(Source::data_url(media_type, data)));
        }
        Source::Url(url) => {
            fields.insert("image_url".to_owned(), Value::from(url.as_str()));
        }
        Source::File { provider, id } if *provider == ID.provider => {
            fields.insert("file_id".to_owned(), Value::from(id.as_str()));
        }
        Source::File { .. } | Source::Text(_) => {
            losses.add("messages[].content[image]", "the host has no such file: send the image itself");
            return None;
        }
    }
    // The SDK's type requires it.
    let detail = image.detail.as_deref().unwrap_or("auto");
    fields.insert("detail".to_owned(), Value::from(detail));
    fields.extend(image.extras.write(ID, "messages[].content[image]", losses));
    Some(fields)
}

fn document(document: &Document, losses: &mut Losses) -> Option<Fields> {
    let mut fields = Fields::new();
    fields.insert("type".to_owned(), Value::from("input_file"));
    let extras = document.extras.write(ID, "messages[].content[document]", losses);
    match &document.source {
        Source::Base64 { media_type, data } => {
            // The API requires a name with inline data.
            let name = document.name.clone().unwrap_or_else(|| file_name(media_type));
            fields.insert("filename".to_owned(), Value::from(name));
            fields.insert("file_data".to_owned(), Value::from(Source::data_url(media_type, data)));
        }
        Source::Url(url) => {
            fields.insert("file_url".to_owned(), Value::from(url.as_str()));
            fields
                .extend(document.name.iter().map(|name| ("filename".to_owned(), Value::from(name.as_str()))));
        }
        Source::File { provider, id } if *provider == ID.provider => {
            fields.insert("file_id".to_owned(), Value::from(id.as_str()));
            fields
                .extend(document.name.iter().map(|name| ("filename".to_owned(), Value::from(name.as_str()))));
        }
        Source::Text(text) => {
            losses.add("messages[].content[document]", "a plain-text document is sent as text");
            return Some(text_part(&match &document.name {
                Some(name) => format!("{name}\n\n{text}"),
                None => text.clone(),
            }));
        }
        Source::File { .. } => {
            losses.add("messages[].content[document]", "the host has no such file: send the document itself");
            return None;
        }
    }
    fields.extend(extras);
    Some(fields)
}

fn file_name(media_type: &str) -> String {
    let extension = match media_type {
        "application/pdf" => "pdf",
        "text/plain" => "txt",
        other => other.rsplit_once('/').map_or("bin", |(_, kind)| kind),
    };
    format!("document.{extension}")
}

fn audio(audio: &Audio, losses: &mut Losses) -> Fields {
    let mut fields = Fields::new();
    fields.insert("type".to_owned(), Value::from("input_audio"));
    fields.insert("input_audio".to_owned(), json!({ "data": audio.data, "format": audio.format }));
    fields.extend(audio.extras.write(ID, "messages[].content[audio]", losses));
    fields
}
