//! Images and files that the host cannot take, and text without content.

use serde_json::Value;
use toolgate_model::{Block, Document, Fields, Image, Losses, Message, Opaque, Part, Source, TurnRequest};

use super::super::{HostProfile, Images};
use crate::openai_chat;

/// Fits the parts of every message.
pub(super) fn fit(request: &mut TurnRequest, profile: &HostProfile, losses: &mut Losses) {
    fit_parts(&mut request.system, profile, losses);
    for message in &mut request.messages {
        match message {
            Message::System(message) => fit_parts(&mut message.content, profile, losses),
            Message::User(message) => fit_parts(&mut message.content, profile, losses),
            Message::ToolResults(results) => {
                for result in &mut results.results {
                    fit_parts(&mut result.content, profile, losses);
                }
            }
            Message::Assistant(message) if !profile.blank_text => {
                message.content.retain(|block| !is_blank_block(block));
            }
            Message::Assistant(_) => {}
        }
    }
    if !profile.blank_text {
        request.messages.retain(|message| !is_empty(message));
    }
}

fn fit_parts(parts: &mut Vec<Part>, profile: &HostProfile, losses: &mut Losses) {
    if !profile.blank_text {
        parts.retain(|part| !matches!(part, Part::Text(text) if text.text.trim().is_empty()));
    }
    for part in parts {
        let replacement = match part {
            Part::Image(image) if profile.images == Images::Inline => remote_image(image, losses),
            Part::Document(document) if profile.document_urls => match document_url(document) {
                Some(opaque) => {
                    *part = Part::Opaque(opaque);
                    None
                }
                None => Some(refused_document(document, losses)),
            },
            Part::Document(document) if !profile.files => Some(refused_document(document, losses)),
            Part::Text(_) | Part::Image(_) | Part::Document(_) | Part::Audio(_) | Part::Opaque(_) => None,
        };
        if let Some(text) = replacement {
            *part = Part::text(text);
        }
    }
}

fn remote_image(image: &Image, losses: &mut Losses) -> Option<String> {
    let Source::Url(url) = &image.source else { return None };
    losses.add("image", "the host accepts inline images only: its URL is sent as text");
    Some(format!("[image at {url}]"))
}

/// A document in Mistral's form.
fn document_url(document: &Document) -> Option<Opaque> {
    let url = match &document.source {
        Source::Base64 { media_type, data } => Source::data_url(media_type, data),
        Source::Url(url) => url.clone(),
        Source::Text(_) | Source::File { .. } => return None,
    };
    let kind = "document_url".to_owned();
    let mut fields = Fields::new();
    fields.insert("type".to_owned(), Value::from(kind.as_str()));
    fields.insert(kind.clone(), Value::from(url));
    fields.extend(document.name.iter().map(|name| ("document_name".to_owned(), Value::from(name.as_str()))));
    Some(Opaque { dialect: openai_chat::ID, kind, fields })
}

fn refused_document(document: &Document, losses: &mut Losses) -> String {
    let name = document.name.as_deref().unwrap_or("document");
    match &document.source {
        Source::Text(text) => format!("{name}:\n\n{text}"),
        Source::Url(url) => {
            losses.add("document", "the host accepts no files: its URL is sent as text");
            format!("[{name} at {url}]")
        }
        Source::Base64 { .. } | Source::File { .. } => {
            losses.add("document", "the host accepts no files");
            format!("[{name} cannot be shown]")
        }
    }
}

fn is_blank_block(block: &Block) -> bool {
    match block {
        Block::Text(text) | Block::Refusal(text) => text.text.trim().is_empty(),
        Block::Reasoning(_) | Block::ToolCall(_) | Block::Opaque(_) => false,
    }
}

fn is_empty(message: &Message) -> bool {
    match message {
        Message::System(message) => message.content.is_empty(),
        Message::User(message) => message.content.is_empty(),
        Message::Assistant(message) => message.content.is_empty(),
        Message::ToolResults(results) => results.results.is_empty(),
    }
}
