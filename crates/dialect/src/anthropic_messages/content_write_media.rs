//! Writes images and documents.

use toolgate_model::{Document, Image, Losses, Source};

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
    let source = write_source(&document.source, "document", losses)?;
    Some(BlockOut::Document { source, title: document.name.as_deref(), extra })
}

fn write_source<'a>(source: &'a Source, place: &str, losses: &mut Losses) -> Option<SourceOut<'a>> {
    Some(match source {
        Source::Base64 { media_type, data } => SourceOut::Base64 { media_type, data },
        Source::Text(data) => SourceOut::Text { media_type: PLAIN_TEXT, data },
        Source::Url(url) => SourceOut::Url { url },
        Source::File { provider, id } if *provider == ID.provider => SourceOut::File { file_id: id },
        Source::File { provider, id: _ } => {
            losses.add(place, format!("the file was uploaded to {provider}, and this host cannot access it"));
            return None;
        }
    })
}
