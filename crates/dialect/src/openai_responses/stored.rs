//! Stored conversations: a JSON array of input items, prepended to the request that continues it.

use std::borrow::Cow;

use toolgate_model::pairing::{self, host_ids};
use toolgate_model::{
    AssistantMessage, Block, ErrorKind, Extras, Losses, Message, Reply, TurnError, TurnRequest,
};

use super::ID;
use super::client_tools::{self, CallForms};
use super::content_read::{self, Conversation};
use super::content_write::{self, Recipient};
use super::request_write::CALL_IDS;
use super::wire::{self, Item};
use crate::NameMap;

/// The conversation including this reply.
pub(super) fn remember(request: &TurnRequest, reply: &Reply) -> Option<String> {
    let mut messages = request.messages.clone();
    if !reply.blocks.is_empty() {
        let blocks = CallForms::of(&request.tools).applied(Cow::Borrowed(&reply.blocks));
        append(&mut messages, vec![assistant(blocks.into_owned())]);
    }
    let ids = host_ids(&messages, CALL_IDS);
    // Losses were reported when the reply was written.
    let losses = &mut Losses::default();
    let mut items =
        client_tools::take_additional(&mut request.extras.known_to(ID).cloned().unwrap_or_default());
    items.extend(content_write::input(&messages, &NameMap::default(), &ids, Recipient::Client, losses));
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
    let Conversation { mut messages, loaded_tools, additional_tools: _ } = content_read::conversation(stored);
    client_tools::offer(&mut request.tools, loaded_tools);
    append(&mut messages, std::mem::take(&mut request.messages));
    // Every call is present only now. A result without a call becomes user text, which loses nothing.
    pairing::repair(&mut messages, &mut Losses::default());
    request.messages = messages;
    request.previous = None;
    Ok(())
}

fn assistant(content: Vec<Block>) -> Message {
    Message::Assistant(AssistantMessage { content, extras: Extras::NONE })
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
