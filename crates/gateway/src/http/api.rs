//! The three client APIs and the dialects they are spoken in.

use std::sync::LazyLock;

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
    /// The API whose turns are asked for at this path.
    pub(crate) fn at(path: &str) -> Option<Self> {
        match path {
            "/v1/messages" => Some(Self::Messages),
            "/v1/chat/completions" => Some(Self::Chat),
            "/v1/responses" => Some(Self::Responses),
            _ => None,
        }
    }

    /// Where its turns are asked for.
    pub(crate) fn uri(self) -> &'static Uri {
        static URIS: LazyLock<[Uri; 3]> =
            LazyLock::new(|| ["/v1/messages", "/v1/chat/completions", "/v1/responses"].map(Uri::from_static));
        let [messages, chat, responses] = &*URIS;
        match self {
            Self::Messages => messages,
            Self::Chat => chat,
            Self::Responses => responses,
        }
    }

    /// The API a request means, so that even a refusal speaks its language.
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

    /// How it is spoken.
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

    /// The dialect's name as a label, which all share.
    pub(crate) fn label(self) -> Label {
        static LABELS: LazyLock<[Label; 3]> =
            LazyLock::new(|| [Api::Messages, Api::Chat, Api::Responses].map(|api| Label::new(api.name())));
        let [messages, chat, responses] = &*LABELS;
        match self {
            Self::Messages => messages.clone(),
            Self::Chat => chat.clone(),
            Self::Responses => responses.clone(),
        }
    }

    /// An id for a reply, as this API's ids look.
    pub(crate) fn reply_id(self, turn: Uuid) -> String {
        let turn = turn.simple();
        match self {
            Self::Messages => format!("msg_{turn}"),
            Self::Chat => format!("chatcmpl-{turn}"),
            Self::Responses => format!("resp_{turn}"),
        }
    }
}
