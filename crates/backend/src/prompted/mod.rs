//! Adds tool calls to a back end whose model only knows text: the tools are written into the prompt, and calls are parsed
//! from the model's text while it streams.
//!
//! ```text
//!  Turn ─prepare─▶ Turn without tools ─▶ inner back end ─▶ events ─Interpreter─▶ events with calls
//!                                              ▲                       │
//!                                              └──── side requests ────┘
//! ```
//!
//! A turn without tools goes to the inner back end unchanged and may be relayed.

mod meter;
mod reply;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolgate_model::observed::BackendKind;
use toolgate_model::{Block, ErrorKind, Message, TurnError, TurnRequest};
use toolgate_prompted::{PreparedRequest, PromptedOptions, prepare};

use self::reply::PromptedReply;
use crate::config::TriggerSecret;
use crate::turn::{Answer, AnswerBody, Backend, EventStream, Recoveries, Relay, Turn};

/// A back end wrapped in the prompt layer.
pub(crate) struct Prompted {
    inner: Arc<dyn Backend>,
    options: Arc<PromptedOptions>,
    secret: TriggerSecret,
}

impl Prompted {
    pub(crate) fn new(inner: Arc<dyn Backend>, options: PromptedOptions, secret: TriggerSecret) -> Self {
        Self { inner, options: Arc::new(options), secret }
    }
}

impl Backend for Prompted {
    fn start(&self, turn: Turn) -> BoxFuture<'static, Result<Answer, TurnError>> {
        if !uses_tools(&turn.request) {
            return self.inner.start(turn);
        }
        let prepared = prepare(&turn.request, &self.options, &self.secret.0);
        let PreparedRequest { request, plan } = prepared.value;
        let turn = Turn { request: Arc::new(request), body: None, ..turn };
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let answer = inner.start(turn.clone()).await?;
            let mut losses = prepared.losses;
            let Answer { upstream, losses: more, recoveries: _, headers, body, origin, receipt } = answer;
            losses.append(more);
            let events = events_of(body)?;
            let recoveries = Recoveries::recorded();
            let reply = PromptedReply::new(inner, turn, plan, events, recoveries.clone());
            let body = AnswerBody::Events(Box::pin(reply.into_stream()));
            Ok(Answer { upstream, losses, recoveries, headers, body, origin, receipt })
        })
    }

    /// A turn without tools needs no prompt, so it may be relayed.
    fn relay_host(&self, request: Option<&TurnRequest>) -> Option<&dyn Relay> {
        let unchanged = request.filter(|request| !uses_tools(request));
        self.inner.relay_host(Some(unchanged?))
    }

    fn kind(&self) -> BackendKind {
        BackendKind::Prompted
    }

    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }
}

/// True if a request offers tools or its history contains calls or results.
fn uses_tools(request: &TurnRequest) -> bool {
    let has_tool_use = |message: &Message| match message {
        Message::ToolResults(_) => true,
        Message::Assistant(message) => {
            message.content.iter().any(|block| matches!(block, Block::ToolCall(_)))
        }
        Message::System(_) | Message::User(_) => false,
    };
    !request.tools.is_empty() || request.messages.iter().any(has_tool_use)
}

/// The events of an answer. [`Backend::start`] always parses the reply, so they exist.
fn events_of(body: AnswerBody) -> Result<EventStream, TurnError> {
    match body {
        AnswerBody::Events(events) => Ok(events),
        AnswerBody::Relay(_) | AnswerBody::Whole(_) => Err(TurnError::new(
            ErrorKind::Internal,
            "parsing calls: the back end relayed its reply instead of parsing it; please report this",
        )),
    }
}
