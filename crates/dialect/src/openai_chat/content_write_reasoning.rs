//! Writes the reasoning of an assistant message, for a client or for a host.

use std::borrow::Cow;

use serde_json::Value;
use toolgate_model::{Losses, Reasoning};

use super::content_read_assistant::is_part;
use super::content_write::{PartOut, ThinkingText, TypedPart};
use super::content_write_assistant::{AssistantOut, ContentBuilder, PARAGRAPH, WriteContext, append};
use super::reasoning_details::REASONING_DETAILS;
use super::{ID, marks, reasoning_details};
use crate::host::{HostProfile, ReasoningField, ThoughtSignatures};

/// Who reads a message.
#[derive(Clone, Copy)]
pub(super) enum MessageReader<'a> {
    /// A client, or a host of the client's own choice: everything is written.
    Client,
    /// A host with these rules.
    Host(&'a HostProfile),
}

impl MessageReader<'_> {
    /// Whether calls carry Gemini's thought signature.
    pub(super) fn thought_signatures(self) -> ThoughtSignatures {
        match self {
            Self::Client => ThoughtSignatures::IfPresent,
            Self::Host(profile) => profile.thought_signatures,
        }
    }
}

/// Writes reasoning. A host gets its own reasoning back where it expects it (T27), and no other.
pub(super) fn write<'a>(
    reasoning: &'a Reasoning,
    context: WriteContext<'a>,
    out: &mut AssistantOut<'a>,
    body: &mut ContentBuilder<'a>,
    losses: &mut Losses,
) {
    let extra = reasoning.extras.write(ID, context.place, losses);
    let field = match context.reader {
        MessageReader::Client => None,
        MessageReader::Host(_) if reasoning.seal.as_ref().is_some_and(|seal| !seal.came_from(ID)) => {
            Some(ReasoningField::None)
        }
        MessageReader::Host(profile) => Some(profile.reasoning_field),
    };
    if field == Some(ReasoningField::None) {
        return losses.add(format!("{}.reasoning", context.place), "a host gets only its own reasoning back");
    }
    let is_own = reasoning.seal.as_ref().is_some_and(|seal| seal.belongs_to(ID));
    let foreign = |seal| reasoning_details::foreign(seal, &reasoning.text(), out.foreign_seals());
    let foreign = reasoning.seal.as_ref().filter(|_| field.is_none()).and_then(foreign);
    let text = match reasoning.parts.as_slice() {
        [] if !is_own && foreign.is_none() => {
            return losses.add(format!("{}.reasoning", context.place), "it is sealed and has no text");
        }
        [] => Cow::Borrowed(""),
        [part] => Cow::Borrowed(part.text.as_str()),
        _ => Cow::Owned(reasoning.text()),
    };
    let takes_details = matches!(field, None | Some(ReasoningField::Details));
    let details = reasoning.seal.as_ref().and_then(reasoning_details::of_seal);
    if details.is_some() && !takes_details {
        losses.add(format!("{}.reasoning.seal", context.place), "the host has no field for it");
    }
    if let Some(details) = details.filter(|_| takes_details) {
        match (out.extra.get_mut(REASONING_DETAILS), details) {
            (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
            (_, details) => {
                out.extra.insert(REASONING_DETAILS.to_owned(), details);
            }
        }
        if text.is_empty() || reasoning.extras.is_marked(ID, marks::REASONING_DETAILS) {
            return;
        }
    } else if let Some(foreign) = foreign {
        out.add_foreign_seal(foreign);
        if text.is_empty() {
            return;
        }
    }
    if is_part(reasoning) || field == Some(ReasoningField::ThinkingPart) {
        let thinking = [ThinkingText::new(text)];
        return body.parts.push(PartOut::Typed(TypedPart::Thinking { thinking, extra }));
    }
    match field {
        Some(ReasoningField::ThinkTags) => return body.thought(&text),
        Some(ReasoningField::Reasoning | ReasoningField::Details) => {
            return append(&mut out.reasoning, text, PARAGRAPH);
        }
        Some(_) => return append(&mut out.reasoning_content, text, PARAGRAPH),
        None => {}
    }
    if reasoning.extras.is_marked(ID, marks::REASONING_TEXT) {
        return append(&mut out.reasoning_text, text, PARAGRAPH);
    }
    let both = reasoning.extras.is_marked(ID, marks::REASONING_BOTH);
    if both || reasoning.extras.is_marked(ID, marks::REASONING) {
        append(&mut out.reasoning, text.clone(), PARAGRAPH);
    }
    if both || !reasoning.extras.is_marked(ID, marks::REASONING) {
        append(&mut out.reasoning_content, text, PARAGRAPH);
    }
}
