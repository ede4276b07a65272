//! The list of dialects.

use crate::{ClientDialect, UpstreamDialect, anthropic_messages, openai_chat, openai_responses};

/// A dialect in both of its roles.
pub struct Dialect {
    /// Towards clients.
    pub client: &'static dyn ClientDialect,
    /// Towards hosts.
    pub upstream: &'static dyn UpstreamDialect,
}

/// Every dialect, by its name in the configuration.
pub const ALL: [(&str, Dialect); 3] = [
    (
        "anthropic-messages",
        Dialect { client: &anthropic_messages::DIALECT, upstream: &anthropic_messages::DIALECT },
    ),
    ("openai-chat", Dialect { client: &openai_chat::DIALECT, upstream: &openai_chat::DIALECT }),
    (
        "openai-responses",
        Dialect { client: &openai_responses::DIALECT, upstream: &openai_responses::DIALECT },
    ),
];

/// The dialect with this name.
pub fn find(name: &str) -> Option<&'static Dialect> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, dialect)| dialect)
}
