//! Reads content parts that are given to the model.

use serde_json::Value;
use toolgate_model::{Audio, Document, Fields, Image, Losses, Opaque, Part, Source, Text};

use super::content_write::write_part;
use super::extras::{extras, nested_extras};
use super::wire::{AudioDataIn, AudioIn, FileDataIn, FileIn, ImageIn, ImageUrlIn, PartIn, RefusalIn, TextIn};
use super::wire_either::{StringOrArray, StringOrObject};
use super::{ID, marks};

/// Reads `content`. An empty string gives no part.
pub(super) fn read(content: Option<StringOrArray<PartIn>>) -> Vec<Part> {
    match content {
        None => Vec::new(),
        Some(StringOrArray::String(text)) if text.is_empty() => Vec::new(),
        Some(StringOrArray::String(text)) => vec![Part::text(text)],
        Some(StringOrArray::Array(parts)) => parts.into_iter().map(read_part).collect(),
    }
}

fn read_part(part: PartIn) -> Part {
    match part {
        PartIn::Text(TextIn { text, extra }) => Part::Text(Text { text, extras: extras(extra) }),
        // Only an assistant message can contain a refusal; elsewhere it is read as text.
        PartIn::Refusal(RefusalIn { refusal, extra }) => {
            Part::Text(Text { text: refusal, extras: extras(extra) })
        }
        PartIn::Image(ImageIn { image_url, extra }) => {
            let (url, detail, extras) = match image_url {
                StringOrObject::Object(ImageUrlIn { url, detail, extra: inner }) => {
                    (url, detail, nested_extras(extra, "image_url", inner))
                }
                StringOrObject::String(url) => {
                    let mut extras = extras(extra);
                    extras.mark(ID, marks::URL_STRING);
                    (url, None, extras)
                }
            };
            Part::Image(Image { source: Source::from_url(url), detail, extras })
        }
        PartIn::Audio(AudioIn { input_audio: AudioDataIn { data, format, extra: inner }, extra }) => {
            Part::Audio(Audio { data, format, extras: nested_extras(extra, "input_audio", inner) })
        }
        PartIn::File(FileIn { file: FileDataIn { file_data, file_id, filename, extra: inner }, extra }) => {
            let source = match (file_data, file_id) {
                (Some(data), _) => file_source(data),
                (None, id) => Source::File { provider: ID.provider, id: id.unwrap_or_default() },
            };
            let mut extras = nested_extras(extra, "file", inner);
            extras.mark(ID, marks::NATIVE);
            Part::Document(Document { source, name: filename, extras })
        }
        PartIn::Other(opaque) => Part::Opaque(opaque),
    }
}

/// Reads a part as opaque, for messages in which the model has no such part.
pub(super) fn read_opaque(part: PartIn) -> Opaque {
    let part = read_part(part);
    let written = write_part(&part, "content", &mut Losses::default());
    let fields = match written.map(serde_json::to_value) {
        Some(Ok(Value::Object(fields))) => fields,
        _ => Fields::new(),
    };
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    Opaque { dialect: ID, kind, fields }
}

/// A `data:` URL by the specification. Bare base64, as some clients send, is taken for a PDF.
fn file_source(data: String) -> Source {
    if data.starts_with("data:") || data.starts_with("http") {
        Source::from_url(data)
    } else {
        Source::Base64 { media_type: "application/pdf".to_owned(), data }
    }
}
