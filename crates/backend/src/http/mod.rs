//! A host that speaks one of our dialects over HTTP.

mod alarms;
mod answer_head;
mod ask;
mod body;
mod calls;
mod client;
mod events;
mod failure;
mod h1;
mod pool;
mod prepare;
mod relay;
mod retry;
mod splice;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::StatusCode;
use serde::Deserialize;
use toolgate_dialect::UpstreamDialect;
use toolgate_model::{Delivery, DialectId, Translated, TurnError, TurnRequest};

use self::alarms::Alarms;
use self::answer_head::ReplyForm;
use self::ask::{Address, Ask};
use self::body::HostBody;
use self::events::HostEvents;
use self::failure::Host;
use self::pool::{Answered, Pool};
use self::prepare::{Mode, Prepared};
use self::relay::HostRelay;
use crate::config::{HostDeadlines, Retry, UpstreamConfig};
use crate::host_headers::HostHeaders;
use crate::turn::{Answer, AnswerBody, Backend, Batch, Recoveries, Relay, RelayTurn, Turn, WholeBody};

pub(crate) use self::calls::ClientCalls;
pub use self::client::{AssembleError, Tls};

/// The largest whole reply that is read. Replies with generated images are tens of megabytes.
const MAX_WHOLE_BYTES: usize = 64 * 1024 * 1024;

/// The largest error body that is read; what follows is of no use to anybody.
const MAX_ERROR_BYTES: usize = 256 * 1024;

/// A host that speaks one of our dialects over HTTP.
pub(crate) struct Upstream {
    inner: Arc<Inner>,
}

struct Inner {
    host: Host,
    dialect: &'static dyn UpstreamDialect,
    pool: Arc<Pool>,
    turns: Address,
    /// Where input tokens are counted, for dialects that can.
    count: Option<Address>,
    /// Bound the wait for a first event.
    alarms: Alarms,
    timeouts: HostDeadlines,
    retry: Retry,
}

impl Upstream {
    /// Prepares everything that is the same for every request.
    pub(crate) fn new(config: &UpstreamConfig, tls: &Tls) -> Result<Self, AssembleError> {
        let dialect = toolgate_dialect::registry::find(config.dialect)
            .ok_or_else(|| AssembleError::UnknownDialect {
                upstream: config.name.to_string(),
                dialect: config.dialect.to_owned(),
            })?
            .upstream;
        let turns = client::address(config, dialect.id(), dialect.path())?;
        let count = match config.dialect {
            "anthropic-messages" => Some(client::address(config, dialect.id(), "/messages/count_tokens")?),
            _ => None,
        };
        let inner = Inner {
            host: Host { name: Arc::from(config.name.as_str()) },
            dialect,
            pool: client::pool(config, tls),
            turns,
            count,
            alarms: Alarms::new(config.timeouts.first_byte),
            timeouts: config.timeouts,
            retry: config.retry,
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

impl Backend for Upstream {
    fn start(&self, turn: Turn) -> BoxFuture<'static, Result<Answer, TurnError>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let prepared = prepare::translated(inner.dialect, &turn)?;
            inner.answer(&prepared).await
        })
    }

    fn relay_host(&self, _request: Option<&TurnRequest>) -> Option<&dyn Relay> {
        Some(self)
    }

    fn name(&self) -> &Arc<str> {
        &self.inner.host.name
    }
}

impl Relay for Upstream {
    fn dialect(&self) -> DialectId {
        self.inner.dialect.id()
    }

    fn relay(&self, turn: RelayTurn) -> BoxFuture<'static, Result<Answer, TurnError>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { inner.answer(&prepare::relayed(turn)?).await })
    }

    fn count_tokens(&self, turn: RelayTurn) -> BoxFuture<'static, Option<Result<u64, TurnError>>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let address = inner.count.as_ref()?;
            Some(inner.count_tokens(address, turn).await)
        })
    }
}

impl Inner {
    /// Tries until there is a first event, the tries are used up or trying again makes no sense.
    async fn answer(&self, asked: &Prepared) -> Result<Answer, TurnError> {
        let mut tried = 0;
        loop {
            let attempt = self.alarms.bound(pin!(self.attempt(asked))).await;
            let error = match attempt.unwrap_or_else(|| Err(self.host.silent_for(self.alarms.limit()))) {
                Ok((body, headers)) => {
                    let upstream = Arc::clone(&self.host.name);
                    let recoveries = Recoveries::default();
                    return Ok(Answer {
                        upstream,
                        losses: body.losses,
                        recoveries,
                        headers,
                        body: body.value,
                    });
                }
                Err(error) => error,
            };
            let Some(wait) = retry::wait(&self.retry, tried, &error) else { return Err(error) };
            tracing::debug!(id = %asked.id, upstream = %self.host.name, %error, ?wait, "trying again");
            tokio::time::sleep(wait).await;
            tried += 1;
        }
    }

    /// One request, up to its first event.
    async fn attempt(&self, asked: &Prepared) -> Result<(Translated<AnswerBody>, HostHeaders), TurnError> {
        let accept = match asked.delivery {
            Delivery::Whole => "application/json",
            Delivery::Stream(_) => "text/event-stream",
        };
        let mut answered = self.send(&self.turns, asked, accept).await?;
        let headers = std::mem::take(&mut answered.head.headers);
        match self.begin(answered, asked).await {
            Ok(body) => Ok((body, headers)),
            Err(mut error) => {
                error.host_headers = headers.into_texts();
                Err(error)
            }
        }
    }

    /// An answer up to its first event. A step of its own, so that its state takes the place of the last one's.
    async fn begin(
        &self,
        Answered { head, body }: Answered,
        asked: &Prepared,
    ) -> Result<Translated<AnswerBody>, TurnError> {
        let mut losses = asked.losses.clone();
        let form = head.form(asked.delivery);
        let mut body = HostBody::new(body, &self.host, self.timeouts.idle);
        let value = match (form, &asked.mode) {
            (ReplyForm::Html, _) => return Err(Box::pin(self.host.sent_a_page(&mut body)).await),
            (ReplyForm::Stream, Mode::Relay) if asked.is_stream() => {
                let mut relay = Box::new(HostRelay::new(body, self.dialect.meter()));
                poll_fn(|cx| relay.poll_first(cx)).await?;
                AnswerBody::Relay(relay)
            }
            (ReplyForm::Stream, mode) => {
                let mut events = Box::pin(HostEvents::new(body, self.dialect.reply_reader(), mode.calls()));
                poll_fn(|cx| events.poll_first(cx)).await?;
                AnswerBody::Events(events)
            }
            (ReplyForm::Whole, Mode::Relay) if !asked.is_stream() => self.relay_whole(&mut body).await?,
            (ReplyForm::Whole, mode) => {
                let bytes = body.collect(MAX_WHOLE_BYTES).await?;
                let reply = self.dialect.read_reply(&bytes)?;
                losses.append(reply.losses);
                let mut batch = Batch::from(reply.value.into_events());
                mode.calls().restore(&mut batch.events);
                AnswerBody::Events(Box::pin(futures_util::stream::iter([Ok(batch)])))
            }
        };
        Ok(Translated { value, losses })
    }

    async fn relay_whole(&self, body: &mut HostBody) -> Result<AnswerBody, TurnError> {
        let bytes = body.collect(MAX_WHOLE_BYTES).await?;
        let reading = self.dialect.measure(&bytes);
        if let Some(error) = reading.error {
            return Err(error);
        }
        if !reading.complete {
            // The meter could not make sense of it; the reader says why.
            self.dialect.read_reply(&bytes)?;
        }
        Ok(AnswerBody::Whole(WholeBody { bytes, usage: reading.usage }))
    }

    async fn count_tokens(&self, to: &Address, turn: RelayTurn) -> Result<u64, TurnError> {
        #[derive(Deserialize)]
        struct Counted {
            input_tokens: u64,
        }
        let prepared = prepare::relayed(turn)?;
        let answered = self.send(to, &prepared, "application/json").await?;
        let mut body = HostBody::new(answered.body, &self.host, self.timeouts.idle);
        let bytes = body.collect(MAX_ERROR_BYTES).await?;
        let counted: Counted = serde_json::from_slice(&bytes)
            .map_err(|error| self.host.spoke_rubbish("a token count").caused_by(error))?;
        Ok(counted.input_tokens)
    }

    /// Sends a request and gives the head of a successful answer; every other answer is read as an error.
    async fn send(
        &self,
        to: &Address,
        asked: &Prepared,
        accept: &'static str,
    ) -> Result<Answered, TurnError> {
        let ask = Ask { to, accept, forwarded: asked.headers(), body: asked.body.clone() };
        let answered = self.pool.request(&ask).await.map_err(|error| self.host.unreachable(error))?;
        if answered.head.status == StatusCode::OK {
            return Ok(answered);
        }
        Err(Box::pin(self.refused(answered)).await)
    }

    async fn refused(&self, Answered { head, body }: Answered) -> TurnError {
        if head.status.is_redirection() {
            return self.host.redirected(head.location.as_deref());
        }
        let mut body = HostBody::new(body, &self.host, failure::MAX_ERROR_WAIT);
        // A body that breaks off still leaves the status, which says the most.
        let bytes = body.collect(MAX_ERROR_BYTES).await.unwrap_or_default();
        let mut error = self.dialect.read_error(head.status.as_u16(), &bytes);
        error.host_headers = head.headers.clone().into_texts();
        error.retry_after = error.retry_after.or_else(|| head.asked_wait());
        error
    }
}

/// How long the host may keep the connection open once its reply is complete. Token counts may still follow.
const MAX_CLOSING: Duration = Duration::from_secs(20);
