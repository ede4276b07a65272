//! Writes content parts.

use std::borrow::Cow;

use serde::Serialize;
use toolgate_model::{Audio, Document, Fields, Image, Losses, Part, Source};

use super::extras::write_nested;
use super::{ID, Origin, marks};

/// `content` to write.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ContentOut<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<PartOut<'a>>),
}

/// A content part to write.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum PartOut<'a> {
    Typed(TypedPart<'a>),
    Opaque(&'a Fields),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum TypedPart<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(flatten)]
        extra: Fields,
    },
    Refusal {
        refusal: &'a str,
        #[serde(flatten)]
        extra: Fields,
    },
    Thinking {
        thinking: [ThinkingText<'a>; 1],
        #[serde(flatten)]
        extra: Fields,
    },
    ImageUrl {
        image_url: ImageOut<'a>,
        #[serde(flatten)]
        extra: Fields,
    },
    InputAudio {
        input_audio: AudioOut<'a>,
        #[serde(flatten)]
        extra: Fields,
    },
    File {
        file: FileOut<'a>,
        #[serde(flatten)]
        extra: Fields,
    },
}

#[derive(Serialize)]
pub(super) struct ThinkingText<'a> {
    r#type: &'static str,
    text: Cow<'a, str>,
}

impl<'a> ThinkingText<'a> {
    pub(super) fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self { r#type: "text", text: text.into() }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ImageOut<'a> {
    Object(UrlOut<'a>),
    String(Cow<'a, str>),
}

#[derive(Serialize)]
pub(super) struct UrlOut<'a> {
    url: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Serialize)]
pub(super) struct AudioOut<'a> {
    data: &'a str,
    format: &'a str,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Serialize)]
pub(super) struct FileOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<&'a str>,
    #[serde(flatten)]
    extra: Fields,
}

impl<'a> PartOut<'a> {
    /// Text with nothing attached.
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Typed(TypedPart::Text { text: text.into(), extra: Fields::new() })
    }
}

/// Writes parts; a single plain text is written as a string.
pub(super) fn write<'a>(parts: &'a [Part], place: &str, losses: &mut Losses) -> ContentOut<'a> {
    let mut out: Vec<PartOut<'a>> = parts.iter().filter_map(|part| write_part(part, place, losses)).collect();
    match out.as_mut_slice() {
        [] => ContentOut::Text(Cow::Borrowed("")),
        [PartOut::Typed(TypedPart::Text { text, extra })] if extra.is_empty() => {
            ContentOut::Text(std::mem::take(text))
        }
        _ => ContentOut::Parts(out),
    }
}

/// Writes one part; `None` if it cannot be written, which is reported.
pub(super) fn write_part<'a>(part: &'a Part, place: &str, losses: &mut Losses) -> Option<PartOut<'a>> {
    match part {
        Part::Text(text) => {
            let extra = text.extras.write(ID, place, losses);
            Some(PartOut::Typed(TypedPart::Text { text: Cow::Borrowed(&text.text), extra }))
        }
        Part::Image(image) => Some(write_image(image, place, losses)),
        Part::Audio(Audio { data, format, extras }) => {
            let (extra, inner) = write_nested(extras, "input_audio", place, losses);
            Some(PartOut::Typed(TypedPart::InputAudio {
                input_audio: AudioOut { data, format, extra: inner },
                extra,
            }))
        }
        Part::Document(document) => Some(write_document(document, place, losses)),
        Part::Opaque(opaque) => opaque.write(ID, place, losses).map(PartOut::Opaque),
    }
}

fn write_image<'a>(image: &'a Image, place: &str, losses: &mut Losses) -> PartOut<'a> {
    let url: Cow<'a, str> = match &image.source {
        Source::Url(url) => Cow::Borrowed(url),
        Source::Base64 { media_type, data } => Cow::Owned(Source::data_url(media_type, data)),
        Source::Text(_) | Source::File { .. } => {
            losses.add(format!("{place}.image"), "openai-chat accepts images only by URL or inline");
            return PartOut::text("[image not available]");
        }
    };
    let (extra, inner) = write_nested(&image.extras, "image_url", place, losses);
    let image_url = if image.extras.is_marked(ID, marks::URL_STRING) {
        ImageOut::String(url)
    } else {
        ImageOut::Object(UrlOut { url, detail: image.detail.as_deref(), extra: inner })
    };
    PartOut::Typed(TypedPart::ImageUrl { image_url, extra })
}

/// OpenAI rejects inline files without a name.
const UNNAMED_FILE: &str = "document.pdf";

fn write_document<'a>(document: &'a Document, place: &str, losses: &mut Losses) -> PartOut<'a> {
    let name = document.name.as_deref();
    let origin = Origin::of(&document.extras);
    let (file_data, file_id) = match &document.source {
        Source::Base64 { media_type, data } => (Some(Cow::Owned(Source::data_url(media_type, data))), None),
        Source::File { provider, id } if *provider == ID.provider => (None, Some(id.as_str())),
        Source::Text(text) => {
            let extra = document.extras.write(ID, place, losses);
            let text =
                name.map_or(Cow::Borrowed(text.as_str()), |name| Cow::Owned(format!("{name}\n\n{text}")));
            return PartOut::Typed(TypedPart::Text { text, extra });
        }
        Source::Url(url) if origin == Origin::Native => (Some(Cow::Borrowed(url.as_str())), None),
        Source::Url(url) => {
            losses.add(
                format!("{place}.document"),
                "openai-chat does not accept documents by URL; the URL is sent as text",
            );
            return PartOut::text(format!("[document: {url}]"));
        }
        Source::File { .. } => {
            losses.add(format!("{place}.document"), "the file was uploaded to another provider");
            return PartOut::text("[document not available]");
        }
    };
    let (extra, inner) = write_nested(&document.extras, "file", place, losses);
    let must_be_named = file_data.is_some() && origin == Origin::Foreign;
    let filename = name.or(must_be_named.then_some(UNNAMED_FILE));
    PartOut::Typed(TypedPart::File { file: FileOut { filename, file_data, file_id, extra: inner }, extra })
}
