//! Recognises a conversation by what was said in it (A2): a chain of hashes, one after each message, in which how a
//! client wraps its words counts for nothing.
//!
//! ```text
//! scope ──▶ turn ──▶ turn ──▶ turn       each link: H(kind, link before, what was said)
//!           who asks:  results by call, then texts and pictures in order
//!           who answers: texts, then calls in order
//! ```
//!
//! Messages of one speaker that follow one another are one turn, since dialects cut turns differently: Chat has a
//! message for every result, Messages one for all of them. Not part of it: instructions above the conversation and
//! tools (both may change from request to request), reasoning, and the extra fields of a dialect.
//!
//! The hashes stand in stores: change [`VERSION`] with any change of what they cover.

mod canonical;
mod turn;

use std::fmt;

use canonical::Link;
use turn::OpenTurn;

use crate::message::Message;

/// Goes into every hash.
const VERSION: &str = "toolgate lineage 1";

/// The hash of a conversation up to some message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrefixHash([u8; 32]);

impl PrefixHash {
    /// Takes the bytes of a hash made earlier.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads what `Display` wrote; `None` for anything else.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }
}

/// Only as `Display` writes it, so that a hash has one spelling.
fn digit(letter: u8) -> Option<u8> {
    match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for PrefixHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PrefixHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The hashes of a conversation, one after each message. Equal hashes mean that the same was said.
#[derive(Clone, Debug)]
pub struct Lineage {
    /// After no message, after one, after two, …: never empty.
    prefixes: Vec<PrefixHash>,
    chain: Chain,
}

impl Lineage {
    /// Hashes a conversation, in one pass. The scope keeps callers and models apart: equal words in another scope
    /// give other hashes.
    pub fn of(scope: &str, messages: &[Message]) -> Self {
        let mut chain = Chain::new(scope);
        let mut prefixes = Vec::with_capacity(messages.len() + 1);
        prefixes.push(chain.now());
        for message in messages {
            chain.push(message);
            prefixes.push(chain.now());
        }
        Self { prefixes, chain }
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.prefixes.len() - 1
    }

    /// True where nobody has said anything yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hash of the first `count` messages; of all, where there are fewer. None gives the scope's own hash.
    pub fn at(&self, count: usize) -> PrefixHash {
        self.prefixes.get(count).copied().unwrap_or_else(|| self.whole())
    }

    /// The hash of all messages.
    pub fn whole(&self) -> PrefixHash {
        self.chain.now()
    }

    /// The hash of all messages and one more.
    pub fn then(&self, message: &Message) -> PrefixHash {
        let mut chain = self.chain.clone();
        chain.push(message);
        chain.now()
    }
}

/// The closed turns as one link, and the turn that may still grow.
#[derive(Clone, Debug)]
struct Chain {
    closed: Link,
    open: Option<OpenTurn>,
}

impl Chain {
    fn new(scope: &str) -> Self {
        let mut link = Link::begin(b'L');
        link.text(VERSION);
        link.text(scope);
        Self { closed: link.finished(), open: None }
    }

    fn push(&mut self, message: &Message) {
        if let Some(open) = &mut self.open
            && open.continues(message)
        {
            return open.push(message);
        }
        // Clients leave out messages that say nothing, or add them: they neither count nor part two turns.
        if turn::is_silent(message) || (self.is_above_the_conversation() && is_instruction(message)) {
            return;
        }
        if let Some(open) = self.open.take() {
            self.closed = open.link(&self.closed);
        }
        let mut open = OpenTurn::begin(&self.closed, message);
        open.push(message);
        self.open = Some(open);
    }

    fn now(&self) -> PrefixHash {
        let link = self.open.as_ref().map_or_else(|| self.closed.clone(), |open| open.link(&self.closed));
        PrefixHash(link.bytes())
    }

    fn is_above_the_conversation(&self) -> bool {
        self.open.is_none()
    }
}

/// Before the first turn it is what other dialects keep apart as the system prompt. // T29
fn is_instruction(message: &Message) -> bool {
    matches!(message, Message::System(_))
}

#[cfg(test)]
mod tests;
