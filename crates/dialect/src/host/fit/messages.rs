//! The order of messages.

use toolgate_model::{
    Block, Extras, Losses, Message, Part, SystemMessage, SystemRole, TurnRequest, UserMessage,
};

use super::super::{HostProfile, Prefill, SystemMessages};

/// What a model reads where the host requires a user message and the client sent none.
const CONTINUE: &str = "Continue.";

/// Fits the order of messages.
pub(super) fn fit(request: &mut TurnRequest, profile: &HostProfile, losses: &mut Losses) {
    place_system_messages(&mut request.messages, profile, losses);
    if !profile.assistant_first {
        let first = request.messages.iter().position(|message| !matches!(message, Message::System(_)));
        if let Some(at) = first.filter(|at| matches!(request.messages[*at], Message::Assistant(_))) {
            losses.add("messages[0]", "the host requires a user message first: one was added");
            request.messages.insert(at, user_text(CONTINUE));
        }
    }
    fit_last(&mut request.messages, profile, losses);
}

/// Instructions where the host does not accept them are sent as a user message.
fn place_system_messages(messages: &mut [Message], profile: &HostProfile, losses: &mut Losses) {
    let mut is_start = true;
    for at in 0..messages.len() {
        let follows_user = at.checked_sub(1).is_some_and(|before| is_user(&messages[before]));
        let precedes_assistant =
            messages.get(at + 1).is_none_or(|after| matches!(after, Message::Assistant(_)));
        let Message::System(message) = &mut messages[at] else {
            is_start = false;
            continue;
        };
        if !profile.developer_role {
            message.role = SystemRole::System;
        }
        let is_accepted = is_start
            || match profile.system_messages {
                SystemMessages::Anywhere => true,
                SystemMessages::AfterUser => follows_user && precedes_assistant,
                SystemMessages::First => false,
            };
        if !is_accepted {
            losses.add(
                "messages[].system",
                "the host accepts instructions only at the start: sent as the user's",
            );
            let SystemMessage { role: _, content, extras } = message;
            let (content, extras) = (std::mem::take(content), std::mem::take(extras));
            messages[at] = Message::User(UserMessage { content, extras });
        }
    }
}

fn is_user(message: &Message) -> bool {
    matches!(message, Message::User(_) | Message::ToolResults(_))
}

/// A final assistant message is the beginning of the reply.
fn fit_last(messages: &mut Vec<Message>, profile: &HostProfile, losses: &mut Losses) {
    let Some(Message::Assistant(last)) = messages.last_mut() else { return };
    match profile.prefill {
        Prefill::Refused => {
            losses.add("messages[]", "the host does not continue a reply: a user message asks for it");
            messages.push(user_text(CONTINUE));
        }
        Prefill::Accepted | Prefill::Marked if !profile.blank_text => {
            if let Some(Block::Text(text)) = last.content.last_mut() {
                text.text.truncate(text.text.trim_end().len());
            }
        }
        Prefill::Accepted | Prefill::Marked => {}
    }
}

fn user_text(text: &str) -> Message {
    Message::User(UserMessage { content: vec![Part::text(text)], extras: Extras::NONE })
}
