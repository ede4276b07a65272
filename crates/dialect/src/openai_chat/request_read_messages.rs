//! Reads the messages of a request.

use serde_json::Value;
use toolgate_model::{
    AssistantMessage, Block, CallId, CallKind, Message, SystemMessage, ToolCall, ToolName, ToolOutcome,
    ToolResult, ToolResults, UserMessage,
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
    /// The calls without a result.
    open_calls: Vec<OpenCall>,
}

struct OpenCall {
    /// The index of its message.
    message: usize,
    id: CallId,
    name: ToolName,
    kind: CallKind,
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
                self.note_calls(at, &assistant.blocks);
                let message = AssistantMessage { content: assistant.blocks, extras: assistant.extras };
                self.messages.push(Message::Assistant(message));
            }
            MessageIn::Tool(ToolResultIn { tool_call_id, name, content, mut extra }) => {
                let has_id = tool_call_id.is_some();
                let (call, kind) = self.answered_call(tool_call_id, name.as_deref());
                extra.extend(name.map(|name| ("name".to_owned(), Value::from(name))));
                let mut extras = extras(extra);
                if !has_id {
                    extras.mark(ID, marks::NO_ID);
                }
                self.result(ToolResult {
                    call,
                    kind,
                    content: content_read::read(content),
                    outcome: ToolOutcome::Success,
                    extras,
                });
            }
            MessageIn::Function(FunctionResultIn { name, content, extra }) => {
                let (call, kind) = self.answered_call(None, name.as_deref());
                let mut extras = extras(extra);
                extras.mark(ID, marks::LEGACY);
                self.result(ToolResult {
                    call,
                    kind,
                    content: content_read::read(content),
                    outcome: ToolOutcome::Success,
                    extras,
                });
            }
        }
    }

    fn note_calls(&mut self, message: usize, blocks: &[Block]) {
        for block in blocks {
            let Block::ToolCall(ToolCall { id, name, kind, .. }) = block else { continue };
            self.open_calls.push(OpenCall { message, id: id.clone(), name: name.clone(), kind: *kind });
        }
    }

    /// Consecutive results form one message.
    fn result(&mut self, result: ToolResult) {
        match self.messages.last_mut() {
            Some(Message::ToolResults(results)) => results.results.push(result),
            _ => self.messages.push(Message::ToolResults(ToolResults { results: vec![result] })),
        }
    }

    /// The call that a result answers, and its kind, which a result does not state. A result without an id answers the
    /// first open call of the latest message with calls, or the first one of the tool that it names (T23).
    fn answered_call(&mut self, id: Option<String>, name: Option<&str>) -> (CallId, CallKind) {
        let id = id.filter(|id| !id.is_empty());
        let latest = self.open_calls.last().map(|call| call.message);
        let position = self.open_calls.iter().position(|call| match (&id, name) {
            (Some(id), _) => call.id.as_str() == id,
            (None, Some(name)) => Some(call.message) == latest && call.name.as_str() == name,
            (None, None) => Some(call.message) == latest,
        });
        let Some(at) = position else {
            return (CallId::from(id.as_deref().or(name).unwrap_or_default()), CallKind::Function);
        };
        let OpenCall { message: _, id, name: _, kind } = self.open_calls.remove(at);
        (id, kind)
    }
}
