//! The three client APIs and the dialects they are spoken in.

use std::sync::{Arc, LazyLock};

use http::{Request, Uri};
use toolgate_dialect::{ClientDialect, anthropic_messages, openai_chat, openai_responses};
use toolgate_state::Label;
use uuid::Uuid;

/// A client API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    /// `/v1/messages`.
    Messages,
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/responses`.
    Responses,
}

impl Api {
    /// In the order of their declaration.
    const ALL: [Self; 3] = [Self::Messages, Self::Chat, Self::Responses];

    /// The API that has its turns at this path.
    pub(crate) fn at(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.path() == path)
    }

    fn path(self) -> &'static str {
        match self {
            Self::Messages => "/v1/messages",
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
        }
    }

    /// The path of its turns.
    pub(crate) fn uri(self) -> &'static Uri {
        static URIS: LazyLock<[Uri; 3]> = LazyLock::new(|| Api::ALL.map(|api| Uri::from_static(api.path())));
        &URIS[self as usize]
    }

    /// The API a request is meant for, so that the client can read even a refusal.
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let path = request.uri().path();
        if path.starts_with("/v1/messages") || request.headers().contains_key("anthropic-version") {
            Self::Messages
        } else if path.starts_with("/v1/responses") {
            Self::Responses
        } else {
            Self::Chat
        }
    }

    /// Its dialect.
    pub(crate) fn dialect(self) -> &'static dyn ClientDialect {
        match self {
            Self::Messages => &anthropic_messages::DIALECT,
            Self::Chat => &openai_chat::DIALECT,
            Self::Responses => &openai_responses::DIALECT,
        }
    }

    /// The dialect's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Messages => "anthropic-messages",
            Self::Chat => "openai-chat",
            Self::Responses => "openai-responses",
        }
    }

    /// The dialect's name as a shared label.
    pub(crate) fn label(self) -> Label {
        static LABELS: LazyLock<[Label; 3]> = LazyLock::new(|| Api::ALL.map(|api| Label::new(api.name())));
        LABELS[self as usize].clone()
    }

    /// The dialect's name, shared.
    pub(crate) fn shared_name(self) -> Arc<str> {
        static NAMES: LazyLock<[Arc<str>; 3]> = LazyLock::new(|| Api::ALL.map(|api| Arc::from(api.name())));
        Arc::clone(&NAMES[self as usize])
    }

    /// An id for a reply in this API's format.
    pub(crate) fn reply_id(self, turn: Uuid) -> String {
        let turn = turn.simple();
        match self {
            Self::Messages => format!("msg_{turn}"),
            Self::Chat => format!("chatcmpl-{turn}"),
            Self::Responses => format!("resp_{turn}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_own_path_and_label() {
        for api in Api::ALL {
            assert_eq!(Api::at(api.uri().path()), Some(api));
            assert_eq!(api.label(), Label::new(api.name()));
        }
        assert_eq!(Api::at("/v1/messages/count_tokens"), None);
    }
}
