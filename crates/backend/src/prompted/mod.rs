//! Gives tools to a back end whose model only knows text: they are written into the prompt, and what the model
//! answers is read back into calls while it streams.
//!
//! ```text
//!  Turn ─prepare─▶ Turn without tools ─▶ inner back end ─▶ events ─Interpreter─▶ events with calls
//!                                              ▲                       │
//!                                              └──── side requests ────┘
//! ```
//!
//! A turn that has nothing to do with tools goes to the inner back end untouched, and may be relayed there.

mod meter;
mod reply;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolgate_model::{Block, DialectId, ErrorKind, Message, TurnError, TurnRequest};
use toolgate_prompted::{Options, Prepared, prepare};

use self::reply::PromptedReply;
use crate::config::TriggerSecret;
use crate::turn::{Answer, AnswerBody, Backend, EventStream, Rescues, Turn};

/// A back end inside the prompt layer.
pub(crate) struct Prompted {
    inner: Arc<dyn Backend>,
    options: Arc<Options>,
    secret: TriggerSecret,
}

impl Prompted {
    pub(crate) fn new(inner: Arc<dyn Backend>, options: Options, secret: TriggerSecret) -> Self {
        Self { inner, options: Arc::new(options), secret }
    }
}

impl Backend for Prompted {
    fn start(&self, turn: Turn) -> BoxFuture<'static, Result<Answer, TurnError>> {
        if !concerns_tools(&turn.request) {
            return self.inner.start(turn);
        }
        let prepared = prepare(&turn.request, &self.options, &self.secret.0);
        let Prepared { request, plan } = prepared.value;
        let turn = Turn { request: Arc::new(request), original: None, ..turn };
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let answer = inner.start(turn.clone()).await?;
            let mut losses = prepared.losses;
            losses.append(answer.losses);
            let events = events_of(answer.body)?;
            let rescues = Rescues::kept();
            let reply = PromptedReply::new(inner, turn, plan, events, rescues.clone());
            let body = AnswerBody::Events(Box::pin(reply.into_stream()));
            Ok(Answer { upstream: answer.upstream, losses, rescues, headers: answer.headers, body })
        })
    }

    /// The host would count a request that it is never sent.
    fn count_tokens(&self, _turn: Turn) -> BoxFuture<'static, Option<Result<u64, TurnError>>> {
        Box::pin(std::future::ready(None))
    }

    /// None, whatever the inner one speaks: a turn with tools cannot go on unread.
    fn dialect(&self) -> Option<DialectId> {
        None
    }

    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }
}

/// True where a request offers tools or its history used some.
fn concerns_tools(request: &TurnRequest) -> bool {
    let used = |message: &Message| match message {
        Message::ToolResults(_) => true,
        Message::Assistant(message) => {
            message.content.iter().any(|block| matches!(block, Block::ToolCall(_)))
        }
        Message::System(_) | Message::User(_) => false,
    };
    !request.tools.is_empty() || request.messages.iter().any(used)
}

/// The events of an answer. A turn without its original bytes is never relayed, so there is always a stream of them.
fn events_of(body: AnswerBody) -> Result<EventStream, TurnError> {
    match body {
        AnswerBody::Events(events) => Ok(events),
        AnswerBody::Relay(_) | AnswerBody::Whole(_) => Err(TurnError::new(
            ErrorKind::Internal,
            "reading calls from a model's text: its reply came unread; please report this",
        )),
    }
}
