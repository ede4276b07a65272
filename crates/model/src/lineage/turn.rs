//! Hashes one turn: the consecutive messages of one speaker.

use serde_json::Value;

use super::canonical::{Link, TextRun, Unordered, Whitespace};
use crate::extras::Opaque;
use crate::message::{
    AssistantMessage, Block, Message, Part, Source, ToolCall, ToolOutcome, ToolResult, ToolResults,
};
use crate::tool::CallKind;

/// The last turn; the next message may belong to it.
#[derive(Clone, Debug)]
pub(super) enum OpenTurn {
    User(UserTurn),
    Assistant(AssistantTurn),
    System(Parts),
}

/// Text and results from the client.
#[derive(Clone, Debug)]
pub(super) struct UserTurn {
    /// The previous link: part of every result's hash, so that it is specific to this conversation.
    before: Link,
    results: Unordered,
    parts: Parts,
}

/// Text and calls from the model. Dialects differ in the position of text between calls, so only the order of calls
/// counts.
#[derive(Clone, Debug)]
pub(super) struct AssistantTurn {
    text: TextRun,
    refusal: TextRun,
    calls: Link,
}

impl OpenTurn {
    /// Opens the turn that starts with this message.
    pub(super) fn start(before: &Link, message: &Message) -> Self {
        match message {
            Message::User(_) | Message::ToolResults(_) => Self::User(UserTurn {
                before: before.clone(),
                results: Unordered::default(),
                parts: Parts::new(),
            }),
            Message::Assistant(_) => Self::Assistant(AssistantTurn {
                text: TextRun::new(Whitespace::Ignored),
                refusal: TextRun::new(Whitespace::Ignored),
                calls: Link::new(b'a'),
            }),
            Message::System(_) => Self::System(Parts::new()),
        }
    }

    /// True if the message belongs to this turn.
    pub(super) fn continues(&self, message: &Message) -> bool {
        match self {
            Self::User(_) => matches!(message, Message::User(_) | Message::ToolResults(_)),
            Self::Assistant(_) => matches!(message, Message::Assistant(_)),
            Self::System(_) => matches!(message, Message::System(_)),
        }
    }

    /// Adds a message that [continues](Self::continues) the turn; ignores any other.
    pub(super) fn push(&mut self, message: &Message) {
        match (self, message) {
            (Self::User(turn), Message::User(user)) => turn.parts.push_all(&user.content),
            (Self::User(turn), Message::ToolResults(ToolResults { results })) => {
                for result in results {
                    turn.results.push(&result_link(&turn.before, result));
                }
            }
            (Self::Assistant(turn), Message::Assistant(message)) => turn.push(message),
            (Self::System(parts), Message::System(message)) => parts.push_all(&message.content),
            (Self::User(_), Message::Assistant(_) | Message::System(_))
            | (Self::Assistant(_), Message::User(_) | Message::ToolResults(_) | Message::System(_))
            | (Self::System(_), Message::User(_) | Message::ToolResults(_) | Message::Assistant(_)) => {}
        }
    }

    /// The chain link after this turn so far.
    pub(super) fn link(&self, before: &Link) -> Link {
        let mut link = Link::new(match self {
            Self::User(_) => b'U',
            Self::Assistant(_) => b'A',
            Self::System(_) => b'S',
        });
        link.link(before);
        match self {
            Self::User(turn) => {
                turn.results.add_to(b'r', &mut link);
                turn.parts.add_to(&mut link);
            }
            Self::Assistant(turn) => {
                turn.text.add_to(b't', &mut link);
                turn.refusal.add_to(b'x', &mut link);
                link.link(&turn.calls);
            }
            Self::System(parts) => parts.add_to(&mut link),
        }
        link
    }
}

/// True for a message without content.
pub(super) fn is_empty(message: &Message) -> bool {
    match message {
        Message::User(message) => message.content.iter().all(is_empty_part),
        Message::System(message) => message.content.iter().all(is_empty_part),
        Message::ToolResults(results) => results.results.is_empty(),
        Message::Assistant(message) => message.content.iter().all(|block| match block {
            Block::Text(text) | Block::Refusal(text) => text.text.trim().is_empty(),
            Block::Reasoning(_) => true,
            Block::ToolCall(_) | Block::Opaque(_) => false,
        }),
    }
}

fn is_empty_part(part: &Part) -> bool {
    match part {
        Part::Text(text) => text.text.trim().is_empty() || is_reminder(&text.text),
        Part::Image(_) | Part::Document(_) | Part::Audio(_) | Part::Opaque(_) => false,
    }
}

/// Some clients add a block of this form to a message, and to a different message in the next request.
fn is_reminder(text: &str) -> bool {
    const CLOSING: &str = "</system-reminder>";
    let text = text.trim();
    text.starts_with("<system-reminder>") && text.find(CLOSING) == text.len().checked_sub(CLOSING.len())
}

/// Texts, images and files in order.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// The parts before the last run of text.
    closed: Link,
    run: TextRun,
}

impl Parts {
    fn new() -> Self {
        Self { closed: Link::new(b'p'), run: TextRun::new(Whitespace::Trimmed) }
    }

    fn push_all(&mut self, parts: &[Part]) {
        for part in parts {
            self.push(part);
        }
    }

    fn push(&mut self, part: &Part) {
        if let Part::Text(text) = part {
            if !is_reminder(&text.text) {
                self.run.push(&text.text);
            }
            return;
        }
        let run = std::mem::replace(&mut self.run, TextRun::new(Whitespace::Trimmed));
        run.add_to(b't', &mut self.closed);
        match part {
            Part::Text(_) => {}
            Part::Image(image) => {
                self.closed.tag(b'i');
                add_source(&mut self.closed, &image.source);
            }
            Part::Document(document) => {
                self.closed.tag(b'd');
                add_source(&mut self.closed, &document.source);
                self.closed.text(document.name.as_deref().unwrap_or_default());
            }
            Part::Audio(audio) => {
                self.closed.tag(b's');
                self.closed.text(&audio.format);
                self.closed.text(&audio.data);
            }
            Part::Opaque(opaque) => add_opaque(&mut self.closed, opaque),
        }
    }

    fn add_to(&self, link: &mut Link) {
        let mut all = self.closed.clone();
        self.run.add_to(b't', &mut all);
        link.tag(b'p');
        link.link(&all);
    }
}

impl AssistantTurn {
    fn push(&mut self, message: &AssistantMessage) {
        for block in &message.content {
            match block {
                Block::Text(text) => self.text.push(&text.text),
                Block::Refusal(text) => self.refusal.push(&text.text),
                // Clients may drop, shorten or seal it.
                Block::Reasoning(_) => {}
                Block::ToolCall(call) => add_call(&mut self.calls, call),
                Block::Opaque(opaque) => add_opaque(&mut self.calls, opaque),
            }
        }
    }
}

fn add_call(link: &mut Link, call: &ToolCall) {
    link.tag(b'c');
    link.text(call.id.as_str());
    link.text(call.name.as_str());
    match call.kind {
        // The form in dialects without custom tools.
        CallKind::Custom => link.value(&serde_json::json!({ "input": call.arguments })),
        CallKind::Function => add_arguments(link, &call.arguments),
    }
}

fn add_arguments(link: &mut Link, arguments: &str) {
    match serde_json::from_str::<Value>(arguments) {
        // T9: no arguments equal an empty object.
        Ok(Value::Null) => link.object(&serde_json::Map::new()),
        Err(_) if arguments.trim().is_empty() => link.object(&serde_json::Map::new()),
        Ok(value) => link.value(&value),
        Err(_) => {
            link.tag(b'!');
            link.text(arguments);
        }
    }
}

fn result_link(before: &Link, result: &ToolResult) -> Link {
    let mut link = Link::new(b'R');
    link.link(before);
    link.text(result.call.as_str());
    link.tag(match result.outcome {
        ToolOutcome::Success => b'+',
        ToolOutcome::Error => b'-',
    });
    let mut parts = Parts::new();
    parts.push_all(&result.content);
    parts.add_to(&mut link);
    link
}

fn add_source(link: &mut Link, source: &Source) {
    match source {
        Source::Base64 { media_type, data } => {
            link.tag(b'b');
            link.text(media_type);
            link.text(data);
        }
        Source::Text(text) => {
            link.tag(b't');
            link.text(text);
        }
        Source::Url(url) => {
            link.tag(b'u');
            link.text(url);
        }
        Source::File { provider, id } => {
            link.tag(b'f');
            link.text(provider);
            link.text(id);
        }
    }
}

fn add_opaque(link: &mut Link, opaque: &Opaque) {
    link.tag(b'o');
    link.text(opaque.dialect.provider);
    link.text(&opaque.kind);
    link.object(&opaque.fields);
}
