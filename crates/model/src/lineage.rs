//! Identifies a conversation by its content (A2): a chain of hashes, one per message, independent of how a client
//! formats the messages.
//!
//! ```text
//! scope ──▶ turn ──▶ turn ──▶ turn       each link: H(kind, previous link, content)
//!           user turn:      results by call, then texts and images in order
//!           assistant turn: texts, then calls in order
//! ```
//!
//! Consecutive messages of one speaker form one turn, because dialects split turns differently: Chat Completions has one
//! message per result, Messages has one for all of them. Not hashed: system prompt and tools (both may change between
//! requests), reasoning, and the extra fields of a dialect.
//!
//! The hashes are stored: change [`VERSION`] whenever the hashed content changes.

mod canonical;
mod turn;

use std::fmt;

use canonical::Link;
use turn::OpenTurn;

use crate::message::Message;

/// Part of every hash.
const VERSION: &str = "toolgate lineage 1";

/// The hash of a conversation up to some message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrefixHash([u8; 32]);

impl PrefixHash {
    /// A hash from its bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Parses the output of `Display`; `None` for anything else.
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

/// Accepts lower case only, so that a hash has one spelling.
fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
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

/// The hashes of a conversation, one per prefix. Equal hashes mean equal content.
#[derive(Clone, Debug)]
pub struct Lineage {
    /// The hashes after 0, 1, 2, … messages: never empty.
    prefixes: Vec<PrefixHash>,
    chain: Chain,
}

impl Lineage {
    /// Hashes a conversation in one pass. The scope separates callers and models: the same content has a different hash
    /// in another scope.
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

    /// The number of messages.
    pub fn len(&self) -> usize {
        self.prefixes.len() - 1
    }

    /// True if there are no messages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hash of the first `count` messages, or of all if there are fewer. Zero gives the scope's hash.
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

/// The closed turns as one link, and the open turn.
#[derive(Clone, Debug)]
struct Chain {
    closed: Link,
    open: Option<OpenTurn>,
}

impl Chain {
    fn new(scope: &str) -> Self {
        let mut link = Link::new(b'L');
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
        // Clients drop or add empty messages: they are not hashed and do not separate turns.
        if turn::is_empty(message) || (self.is_before_first_turn() && is_instruction(message)) {
            return;
        }
        if let Some(open) = self.open.take() {
            self.closed = open.link(&self.closed);
        }
        let mut open = OpenTurn::start(&self.closed, message);
        open.push(message);
        self.open = Some(open);
    }

    fn now(&self) -> PrefixHash {
        let link = self.open.as_ref().map_or_else(|| self.closed.clone(), |open| open.link(&self.closed));
        PrefixHash(link.bytes())
    }

    fn is_before_first_turn(&self) -> bool {
        self.open.is_none()
    }
}

/// Before the first turn, a system message is what other dialects send as the system prompt (T29).
fn is_instruction(message: &Message) -> bool {
    matches!(message, Message::System(_))
}

#[cfg(test)]
mod tests;
