//! Writes images and documents.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use toolgate_model::{Document, Fields, Image, Losses, Source};

use super::ID;
use super::content_read_media::PLAIN_TEXT;
use super::wire::{BlockOut, SourceOut};

/// Writes an image, or reports why it cannot be sent.
pub(super) fn write_image<'a>(image: &'a Image, losses: &mut Losses) -> Option<BlockOut<'a>> {
    let extra = image.extras.write(ID, "image", losses);
    if image.detail.as_deref().is_some_and(|detail| detail != "auto") {
        losses.unknown_to(ID, "image.detail");
    }
    if let Source::Text(_) = image.source {
        losses.add("image", "an image cannot be given as text");
        return None;
    }
    Some(BlockOut::Image { source: write_source(&image.source, "image", losses)?, extra })
}

/// Writes a document, or reports why it cannot be sent.
pub(super) fn write_document<'a>(document: &'a Document, losses: &mut Losses) -> Option<BlockOut<'a>> {
    let extra = document.extras.write(ID, "document", losses);
    let title = document.name.as_deref();
    if let (Source::Base64 { media_type, data }, None) = (&document.source, document.extras.known_to(ID)) {
        return write_inline(media_type, data, title, extra, losses);
    }
    let source = write_source(&document.source, "document", losses)?;
    Some(BlockOut::Document { source, title, extra })
}

/// Writes a file by its media type: the API accepts PDF documents, text and images.
fn write_inline<'a>(
    media_type: &'a str,
    data: &'a str,
    title: Option<&'a str>,
    extra: Fields,
    losses: &mut Losses,
) -> Option<BlockOut<'a>> {
    let source = SourceOut::Base64 { media_type, data };
    if media_type == "application/pdf" {
        return Some(BlockOut::Document { source, title, extra });
    }
    if media_type.starts_with("image/") {
        return Some(BlockOut::Image { source, extra });
    }
    let Some(text) = decoded_text(media_type, data) else {
        losses.add("document", format!("the Messages API does not accept files of the type {media_type}"));
        return None;
    };
    let source = SourceOut::Text { media_type: PLAIN_TEXT, data: Cow::Owned(text) };
    Some(BlockOut::Document { source, title, extra })
}

/// The text of a file that contains text.
fn decoded_text(media_type: &str, data: &str) -> Option<String> {
    let is_text = media_type.starts_with("text/") || media_type == "application/json";
    let bytes = BASE64_STANDARD.decode(data).ok().filter(|_| is_text)?;
    String::from_utf8(bytes).ok()
}

fn write_source<'a>(source: &'a Source, place: &str, losses: &mut Losses) -> Option<SourceOut<'a>> {
    Some(match source {
        Source::Base64 { media_type, data } => SourceOut::Base64 { media_type, data },
        Source::Text(data) => SourceOut::Text { media_type: PLAIN_TEXT, data: Cow::Borrowed(data) },
        Source::Url(url) => SourceOut::Url { url },
        Source::File { provider, id } if *provider == ID.provider => SourceOut::File { file_id: id },
        Source::File { provider, id: _ } => {
            losses.add(place, format!("the file was uploaded to {provider}, and this host cannot access it"));
            return None;
        }
    })
}
