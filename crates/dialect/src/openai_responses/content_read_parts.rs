//! Reads content parts: texts, images, files, audio.

use serde_json::Value;
use toolgate_model::{Audio, Document, Extras, Fields, Image, Opaque, Part, Source, Text};

use super::ID;
use super::content_read::text_extras;
use super::wire::{Content, ContentPart, FilePart, ImagePart, MessageItem};

/// Reads the content of a message or result.
pub(super) fn parts(content: Content) -> Vec<Part> {
    match content {
        Content::Text(text) => vec![Part::text(text)],
        Content::Parts(parts) => parts.into_iter().map(part).collect(),
    }
}

fn part(part: ContentPart) -> Part {
    match part {
        ContentPart::Text(part) => {
            Part::Text(Text { text: part.text, extras: text_extras(part.extra, 0, &Fields::new()) })
        }
        ContentPart::Image(part) => image(part),
        ContentPart::File(part) => file(part),
        ContentPart::Audio(part) => Part::Audio(Audio {
            data: part.input_audio.data,
            format: part.input_audio.format,
            extras: Extras::of(ID, part.extra),
        }),
        part @ (ContentPart::Refusal(_) | ContentPart::Other(..)) => {
            let (kind, fields) = part_fields(part);
            Part::Opaque(Opaque { dialect: ID, kind, fields })
        }
    }
}

fn image(part: ImagePart) -> Part {
    let source = match (part.image_url, part.file_id) {
        (Some(url), _) => Source::from_url(url),
        (None, Some(id)) => Source::File { provider: ID.provider, id },
        (None, None) => {
            let mut fields = part.extra;
            fields.extend(part.detail.map(|detail| ("detail".to_owned(), Value::from(detail))));
            fields.insert("type".to_owned(), Value::from("input_image"));
            return Part::Opaque(Opaque { dialect: ID, kind: "input_image".to_owned(), fields });
        }
    };
    Part::Image(Image { source, detail: part.detail, extras: Extras::of(ID, part.extra) })
}

fn file(part: FilePart) -> Part {
    let source = match (part.file_data, part.file_url, part.file_id) {
        (Some(data), _, _) => match Source::from_url(data) {
            // Bare base64: the file name decides the media type.
            Source::Url(data) => {
                Source::Base64 { media_type: media_type(part.filename.as_deref()).to_owned(), data }
            }
            inline @ (Source::Base64 { .. } | Source::Text(_) | Source::File { .. }) => inline,
        },
        (None, Some(url), _) => Source::Url(url),
        (None, None, Some(id)) => Source::File { provider: ID.provider, id },
        (None, None, None) => {
            let mut fields = part.extra;
            fields.insert("type".to_owned(), Value::from("input_file"));
            return Part::Opaque(Opaque { dialect: ID, kind: "input_file".to_owned(), fields });
        }
    };
    Part::Document(Document { source, name: part.filename, extras: Extras::of(ID, part.extra) })
}

fn media_type(name: Option<&str>) -> &'static str {
    let extension = name.and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension);
    match extension {
        Some("txt" | "md" | "csv") => "text/plain",
        Some(_) | None => "application/pdf",
    }
}

/// A whole message as an opaque block.
pub(super) fn opaque_message(message: MessageItem) -> Opaque {
    let content = match message.content {
        Content::Text(text) => Value::from(text),
        Content::Parts(parts) => parts.into_iter().map(|part| Value::Object(part_fields(part).1)).collect(),
    };
    let mut fields = Fields::new();
    fields.insert("type".to_owned(), Value::from("message"));
    fields.extend(message.role.map(|role| ("role".to_owned(), Value::from(role))));
    fields.insert("content".to_owned(), content);
    fields.extend(message.extra);
    Opaque { dialect: ID, kind: "message".to_owned(), fields }
}

fn part_fields(part: ContentPart) -> (String, Fields) {
    let mut fields = Fields::new();
    let kind = match part {
        ContentPart::Other(kind, fields) => return (kind, fields),
        ContentPart::Text(part) => {
            fields.insert("text".to_owned(), Value::from(part.text));
            fields.extend(part.extra);
            "output_text"
        }
        ContentPart::Refusal(part) => {
            fields.insert("refusal".to_owned(), Value::from(part.refusal));
            fields.extend(part.extra);
            "refusal"
        }
        ContentPart::Image(part) => {
            fields.extend(part.image_url.map(|url| ("image_url".to_owned(), Value::from(url))));
            fields.extend(part.file_id.map(|id| ("file_id".to_owned(), Value::from(id))));
            fields.extend(part.detail.map(|detail| ("detail".to_owned(), Value::from(detail))));
            fields.extend(part.extra);
            "input_image"
        }
        ContentPart::File(part) => {
            fields.extend(part.file_data.map(|data| ("file_data".to_owned(), Value::from(data))));
            fields.extend(part.file_url.map(|url| ("file_url".to_owned(), Value::from(url))));
            fields.extend(part.file_id.map(|id| ("file_id".to_owned(), Value::from(id))));
            fields.extend(part.filename.map(|name| ("filename".to_owned(), Value::from(name))));
            fields.extend(part.extra);
            "input_file"
        }
        ContentPart::Audio(part) => {
            let mut audio = Fields::new();
            audio.insert("data".to_owned(), Value::from(part.input_audio.data));
            audio.insert("format".to_owned(), Value::from(part.input_audio.format));
            fields.insert("input_audio".to_owned(), Value::Object(audio));
            fields.extend(part.extra);
            "input_audio"
        }
    };
    fields.insert("type".to_owned(), Value::from(kind));
    (kind.to_owned(), fields)
}
