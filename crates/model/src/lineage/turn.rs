//! One turn of a conversation as it is hashed: what somebody said until somebody else spoke.

use serde_json::Value;

use super::canonical::{Link, Spaces, TextRun, Unordered};
use crate::extras::Opaque;
use crate::message::{
    AssistantMessage, Block, Message, Part, Source, ToolCall, ToolOutcome, ToolResult, ToolResults,
};
use crate::tool::CallKind;

/// The turn that was begun last; the next message may still belong to it.
#[derive(Clone, Debug)]
pub(super) enum OpenTurn {
    Asked(Asked),
    Answered(Answered),
    Instructed(Parts),
}

/// From the client: text and results.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// What came before: makes every result's hash one of this conversation only.
    before: Link,
    results: Unordered,
    parts: Parts,
}

/// From the model. Dialects differ in where text stands between calls, so only the order of calls counts.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    text: TextRun,
    refusal: TextRun,
    acts: Link,
}

impl OpenTurn {
    /// Begins the turn that this message is the first of.
    pub(super) fn begin(before: &Link, message: &Message) -> Self {
        match message {
            Message::User(_) | Message::ToolResults(_) => Self::Asked(Asked {
                before: before.clone(),
                results: Unordered::default(),
                parts: Parts::new(),
            }),
            Message::Assistant(_) => Self::Answered(Answered {
                text: TextRun::new(Spaces::Nowhere),
                refusal: TextRun::new(Spaces::Nowhere),
                acts: Link::begin(b'a'),
            }),
            Message::System(_) => Self::Instructed(Parts::new()),
        }
    }

    /// True if this message is the same turn.
    pub(super) fn continues(&self, message: &Message) -> bool {
        match self {
            Self::Asked(_) => matches!(message, Message::User(_) | Message::ToolResults(_)),
            Self::Answered(_) => matches!(message, Message::Assistant(_)),
            Self::Instructed(_) => matches!(message, Message::System(_)),
        }
    }

    /// Adds a message that [continues](Self::continues) the turn; another one adds nothing.
    pub(super) fn push(&mut self, message: &Message) {
        match (self, message) {
            (Self::Asked(turn), Message::User(user)) => turn.parts.push_all(&user.content),
            (Self::Asked(turn), Message::ToolResults(ToolResults { results })) => {
                for result in results {
                    turn.results.push(&result_link(&turn.before, result));
                }
            }
            (Self::Answered(turn), Message::Assistant(message)) => turn.push(message),
            (Self::Instructed(parts), Message::System(message)) => parts.push_all(&message.content),
            (Self::Asked(_), Message::Assistant(_) | Message::System(_))
            | (Self::Answered(_), Message::User(_) | Message::ToolResults(_) | Message::System(_))
            | (Self::Instructed(_), Message::User(_) | Message::ToolResults(_) | Message::Assistant(_)) => {}
        }
    }

    /// The chain with this turn at its end, as far as it has come.
    pub(super) fn link(&self, before: &Link) -> Link {
        let mut link = Link::begin(match self {
            Self::Asked(_) => b'U',
            Self::Answered(_) => b'A',
            Self::Instructed(_) => b'S',
        });
        link.link(before);
        match self {
            Self::Asked(turn) => {
                turn.results.add_to(b'r', &mut link);
                turn.parts.add_to(&mut link);
            }
            Self::Answered(turn) => {
                turn.text.add_to(b't', &mut link);
                turn.refusal.add_to(b'x', &mut link);
                link.link(&turn.acts);
            }
            Self::Instructed(parts) => parts.add_to(&mut link),
        }
        link
    }
}

/// True for a message in which nothing is said.
pub(super) fn is_silent(message: &Message) -> bool {
    match message {
        Message::User(message) => message.content.iter().all(is_silent_part),
        Message::System(message) => message.content.iter().all(is_silent_part),
        Message::ToolResults(results) => results.results.is_empty(),
        Message::Assistant(message) => message.content.iter().all(|block| match block {
            Block::Text(text) | Block::Refusal(text) => text.text.trim().is_empty(),
            Block::Reasoning(_) => true,
            Block::ToolCall(_) | Block::Opaque(_) => false,
        }),
    }
}

fn is_silent_part(part: &Part) -> bool {
    match part {
        Part::Text(text) => text.text.trim().is_empty() || is_reminder(&text.text),
        Part::Image(_) | Part::Document(_) | Part::Audio(_) | Part::Opaque(_) => false,
    }
}

/// Some clients put a block of this form into a message, and into another one in the next request.
fn is_reminder(text: &str) -> bool {
    const CLOSING: &str = "</system-reminder>";
    let text = text.trim();
    text.starts_with("<system-reminder>") && text.find(CLOSING) == text.len().checked_sub(CLOSING.len())
}

/// Texts, pictures and files in their order.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// What stands before the last run of text.
    settled: Link,
    run: TextRun,
}

impl Parts {
    fn new() -> Self {
        Self { settled: Link::begin(b'p'), run: TextRun::new(Spaces::Inside) }
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
        let run = std::mem::replace(&mut self.run, TextRun::new(Spaces::Inside));
        run.add_to(b't', &mut self.settled);
        match part {
            Part::Text(_) => {}
            Part::Image(image) => {
                self.settled.tag(b'i');
                add_source(&mut self.settled, &image.source);
            }
            Part::Document(document) => {
                self.settled.tag(b'd');
                add_source(&mut self.settled, &document.source);
                self.settled.text(document.name.as_deref().unwrap_or_default());
            }
            Part::Audio(audio) => {
                self.settled.tag(b's');
                self.settled.text(&audio.format);
                self.settled.text(&audio.data);
            }
            Part::Opaque(opaque) => add_opaque(&mut self.settled, opaque),
        }
    }

    fn add_to(&self, link: &mut Link) {
        let mut all = self.settled.clone();
        self.run.add_to(b't', &mut all);
        link.tag(b'p');
        link.link(&all);
    }
}

impl Answered {
    fn push(&mut self, message: &AssistantMessage) {
        for block in &message.content {
            match block {
                Block::Text(text) => self.text.push(&text.text),
                Block::Refusal(text) => self.refusal.push(&text.text),
                // Clients drop it, shorten it or seal it.
                Block::Reasoning(_) => {}
                Block::ToolCall(call) => add_call(&mut self.acts, call),
                Block::Opaque(opaque) => add_opaque(&mut self.acts, opaque),
            }
        }
    }
}

fn add_call(link: &mut Link, call: &ToolCall) {
    link.tag(b'c');
    link.text(call.id.as_str());
    link.text(call.name.as_str());
    match call.kind {
        // As dialects without free text write it.
        CallKind::Custom => link.value(&serde_json::json!({ "input": call.arguments })),
        CallKind::Function => add_arguments(link, &call.arguments),
    }
}

fn add_arguments(link: &mut Link, arguments: &str) {
    match serde_json::from_str::<Value>(arguments) {
        // T9: a call without arguments is a call with none.
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
    let mut link = Link::begin(b'R');
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
