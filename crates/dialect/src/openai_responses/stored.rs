//! Stored conversations: a JSON array of input items, prepended to the request that continues it.

use toolgate_model::pairing::{self, host_ids};
use toolgate_model::{AssistantMessage, ErrorKind, Extras, Losses, Message, Reply, TurnError, TurnRequest};

use super::content_read;
use super::content_write::{self, Recipient};
use super::request_write::CALL_IDS;
use super::wire::{self, Item};
use crate::NameMap;

/// The conversation including this reply.
pub(super) fn remember(request: &TurnRequest, reply: &Reply) -> Option<String> {
    let mut messages = request.messages.clone();
    if !reply.blocks.is_empty() {
        append(&mut messages, vec![assistant(reply)]);
    }
    let ids = host_ids(&messages, CALL_IDS);
    // Losses were reported when the reply was written.
    let losses = &mut Losses::default();
    let items = content_write::input(&messages, &NameMap::default(), &ids, Recipient::Client, losses);
    serde_json::to_string(&items).ok()
}

/// Prepends a stored conversation to the request's messages.
pub(super) fn recall(request: &mut TurnRequest, stored: &str) -> Result<(), TurnError> {
    let stored: Vec<Item> = wire::read(stored.as_bytes()).map_err(|error| {
        TurnError::new(
            ErrorKind::Internal,
            "the stored response cannot be read: send the whole conversation instead of `previous_response_id`",
        )
        .caused_by(error)
    })?;
    let mut messages = content_read::messages(stored);
    append(&mut messages, std::mem::take(&mut request.messages));
    // Every call is present only now. A result without a call becomes user text, which loses nothing.
    pairing::repair(&mut messages, &mut Losses::default());
    request.messages = messages;
    request.previous = None;
    Ok(())
}

fn assistant(reply: &Reply) -> Message {
    Message::Assistant(AssistantMessage { content: reply.blocks.clone(), extras: Extras::NONE })
}

/// Joins two conversations. Adjacent assistant messages and adjacent results merge, as when read from one request.
pub(super) fn append(messages: &mut Vec<Message>, more: Vec<Message>) {
    let mut more = more.into_iter();
    if let Some(first) = more.next() {
        match (messages.last_mut(), first) {
            (Some(Message::Assistant(last)), Message::Assistant(first)) => last.content.extend(first.content),
            (Some(Message::ToolResults(last)), Message::ToolResults(first)) => {
                last.results.extend(first.results);
            }
            (_, first) => messages.push(first),
        }
    }
    messages.extend(more);
}
