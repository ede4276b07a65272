//! Reads the messages of a request.

use std::collections::HashSet;

use toolgate_model::{
    AssistantMessage, Block, CallId, CallKind, Message, SystemMessage, ToolOutcome, ToolResult, ToolResults,
    UserMessage,
};

use super::extras::extras;
use super::wire::{FunctionResultIn, MessageIn, PlainIn, ToolResultIn};
use super::{ID, content_read, content_read_assistant, marks};

/// Reads the messages in order.
pub(super) fn read(messages: Vec<MessageIn>) -> Vec<Message> {
    let mut conversation = Conversation::default();
    for message in messages {
        conversation.push(message);
    }
    conversation.messages
}

#[derive(Default)]
struct Conversation {
    messages: Vec<Message>,
    /// The ids of custom calls: a result does not say which kind of call it answers.
    custom_calls: HashSet<String>,
    /// Calls without an id: the tool's name and the generated id.
    legacy_calls: Vec<(String, CallId)>,
}

impl Conversation {
    fn push(&mut self, message: MessageIn) {
        match message {
            // T29: stays at its position.
            MessageIn::System(role, PlainIn { content, extra }) => {
                let message =
                    SystemMessage { role, content: content_read::read(content), extras: extras(extra) };
                self.messages.push(Message::System(message));
            }
            MessageIn::User(PlainIn { content, extra }) => {
                let message = UserMessage { content: content_read::read(content), extras: extras(extra) };
                self.messages.push(Message::User(message));
            }
            MessageIn::Assistant(message) => {
                let at = self.messages.len();
                let assistant = content_read_assistant::read(*message, |call| format!("call_{at}_{call}"));
                self.note_calls(&assistant.blocks);
                let message = AssistantMessage { content: assistant.blocks, extras: assistant.extras };
                self.messages.push(Message::Assistant(message));
            }
            MessageIn::Tool(ToolResultIn { tool_call_id, content, extra }) => {
                let kind = if self.custom_calls.contains(&tool_call_id) {
                    CallKind::Custom
                } else {
                    CallKind::Function
                };
                let call = self.call_for(tool_call_id);
                self.result(ToolResult {
                    call,
                    kind,
                    content: content_read::read(content),
                    outcome: ToolOutcome::Success,
                    extras: extras(extra),
                });
            }
            MessageIn::Function(FunctionResultIn { name, content, extra }) => {
                let call = self.legacy_call(&name);
                let mut extras = extras(extra);
                extras.mark(ID, marks::LEGACY);
                self.result(ToolResult {
                    call,
                    kind: CallKind::Function,
                    content: content_read::read(content),
                    outcome: ToolOutcome::Success,
                    extras,
                });
            }
        }
    }

    fn note_calls(&mut self, blocks: &[Block]) {
        for block in blocks {
            let Block::ToolCall(call) = block else { continue };
            if call.kind == CallKind::Custom {
                self.custom_calls.insert(call.id.as_str().to_owned());
            }
            if call.extras.is_marked(ID, marks::LEGACY) || call.extras.is_marked(ID, marks::NO_ID) {
                self.legacy_calls.push((call.name.as_str().to_owned(), call.id.clone()));
            }
        }
    }

    /// Consecutive results form one message.
    fn result(&mut self, result: ToolResult) {
        match self.messages.last_mut() {
            Some(Message::ToolResults(results)) => results.results.push(result),
            _ => self.messages.push(Message::ToolResults(ToolResults { results: vec![result] })),
        }
    }

    /// The call that a result answers. A result without an id answers the oldest call without one (T23).
    fn call_for(&mut self, id: String) -> CallId {
        if id.is_empty() && !self.legacy_calls.is_empty() {
            return self.legacy_calls.remove(0).1;
        }
        CallId::from(id)
    }

    fn legacy_call(&mut self, name: &str) -> CallId {
        match self.legacy_calls.iter().position(|(called, _)| called == name) {
            Some(at) => self.legacy_calls.remove(at).1,
            None => CallId::from(name),
        }
    }
}
