//! The user's first words: they title a session, and they name it if no agent does.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::SessionName;
use crate::message::{Message, Part};

/// The longest title, in characters.
pub const MAX_TITLE_CHARS: usize = 80;

/// How much of the user's first text names a session.
pub const MAX_OPENING_BYTES: usize = 256;

impl SessionName {
    /// The session of a stateless conversation: the same for the same caller and the same first words, in every dialect.
    /// Two conversations that begin with the same words count as one session.
    pub fn from_opening(caller: &str, opening: &str) -> Self {
        const HASHED_BYTES: usize = 10;
        let mut hash = Sha256::new();
        hash.update(b"toolgate session 1\0");
        hash.update(caller.as_bytes());
        hash.update([0]);
        hash.update(&opening.as_bytes()[..opening.floor_char_boundary(MAX_OPENING_BYTES)]);
        let mut name = String::with_capacity("s-".len() + 2 * HASHED_BYTES);
        name.push_str("s-");
        for byte in hash.finalize().iter().take(HASHED_BYTES) {
            // Writing to a string cannot fail.
            write!(name, "{byte:02x}").unwrap_or_default();
        }
        Self::new(name)
    }
}

/// The last text of the first user message that has one; empty if none has. Clients put context in front of what the
/// user wrote.
pub fn opening_text(messages: &[Message]) -> &str {
    messages.iter().find_map(last_text).unwrap_or_default()
}

fn last_text(message: &Message) -> Option<&str> {
    let Message::User(user) = message else { return None };
    let mut texts = user.content.iter().rev().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        Part::Image(_) | Part::Document(_) | Part::Audio(_) | Part::Opaque(_) => None,
    });
    texts.find(|text| !text.trim().is_empty())
}

/// The title of a session: the first line with visible characters, without control characters, cut to
/// [`MAX_TITLE_CHARS`].
pub fn title(opening: &str) -> Option<String> {
    let is_visible = |character: &char| !character.is_control();
    let lines = opening.lines().map(|line| {
        let visible: String = line.trim().chars().filter(is_visible).take(MAX_TITLE_CHARS).collect();
        visible.trim_end().to_owned()
    });
    lines.into_iter().find(|line| !line.is_empty())
}
