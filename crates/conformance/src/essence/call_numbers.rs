//! Numbers the calls of a conversation, so that pairs of calls and results can be compared where ids must change.

use toolgate_model::{Block, Message, ToolCall, ToolResult};

/// The calls of one conversation.
pub(super) struct CallNumbers<'a> {
    /// The ids that every dialect accepts and that occur once: these must not change.
    stable: Vec<&'a str>,
    /// The id of every call so far, and whether it was answered.
    calls: Vec<(&'a str, bool)>,
}

impl<'a> CallNumbers<'a> {
    pub(super) fn of(messages: &'a [Message]) -> Self {
        let mut ids: Vec<&str> = messages
            .iter()
            .filter_map(|message| match message {
                Message::Assistant(message) => Some(&message.content),
                Message::System(_) | Message::User(_) | Message::ToolResults(_) => None,
            })
            .flatten()
            .filter_map(|block| match block {
                Block::ToolCall(call) => Some(call.id.as_str()),
                Block::Text(_) | Block::Refusal(_) | Block::Reasoning(_) | Block::Opaque(_) => None,
            })
            .collect();
        ids.sort_unstable();
        let mut stable = ids.clone();
        stable.dedup();
        stable.retain(|id| is_plain_id(id) && ids.iter().filter(|other| *other == id).count() == 1);
        Self { stable, calls: Vec::new() }
    }

    pub(super) fn call(&mut self, call: &'a ToolCall) -> String {
        let id = call.id.as_str();
        self.calls.push((id, false));
        let shown = if self.stable.contains(&id) { id } else { "-" };
        format!("{} {shown}", self.calls.len())
    }

    /// The number of the call that a result answers: the first open one with its id.
    pub(super) fn result(&mut self, result: &ToolResult) -> Option<usize> {
        let at = self.calls.iter().position(|(id, answered)| *id == result.call.as_str() && !answered)?;
        self.calls[at].1 = true;
        Some(at + 1)
    }
}

/// The longest id that every dialect accepts.
const MAX_ID_CHARS: usize = 40;

fn is_plain_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=MAX_ID_CHARS).contains(&id.len()) && id.chars().all(is_plain)
}
