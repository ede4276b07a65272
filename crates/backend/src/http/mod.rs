//! A host that speaks one of our dialects over HTTP.

mod body;
mod client;
mod connect;
mod connection;
mod events;
mod failure;
mod pool;
mod prepare;
mod proxy;
mod relay;
mod request;
mod request_error;
mod response_head;
mod retry;
mod splice;
mod unsupported_field;

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio::time::timeout;
use toolgate_dialect::UpstreamDialect;
use toolgate_dialect::host::HostFacts;
use toolgate_model::{Delivery, DialectId, ErrorKind, ModelName, Translated, TurnError, TurnRequest};

use self::body::HostBody;
use self::connect::Dialer;
use self::events::HostEvents;
use self::failure::{Access, Host, Key};
use self::pool::{HostResponse, Pool};
use self::prepare::{Prepared, ReplyMode};
use self::proxy::ProxyUse;
use self::relay::HostRelay;
use self::request::{Address, HostRequest};
use self::response_head::ReplyForm;
use self::retry::AttemptError;
use self::unsupported_field::UnsupportedFields;
use crate::config::{HostDeadlines, ProxyConfig, Retry, UpstreamConfig, UsedBy};
use crate::host_headers::HostHeaders;
use crate::stats::UpstreamStats;
use crate::turn::{Answer, AnswerBody, Backend, Batch, Relay, RelayTurn, Turn, WholeBody};

pub use self::client::{AssembleError, Tls};

/// The largest whole reply that is read. Replies with generated images are tens of megabytes.
const MAX_WHOLE_BYTES: usize = 64 * 1024 * 1024;

/// The largest error body that is read.
const MAX_ERROR_BYTES: usize = 256 * 1024;

/// A host that speaks one of our dialects over HTTP.
pub(crate) struct Upstream {
    inner: Arc<Inner>,
}

struct Inner {
    host: Host,
    dialect: &'static dyn UpstreamDialect,
    facts: HostFacts,
    pool: Arc<Pool>,
    turns: Address,
    /// Where input tokens are counted, for dialects that have such a path.
    count: Option<Address>,
    /// Where conversations are compacted, for dialects that have such a path.
    compact: Option<Address>,
    deadlines: HostDeadlines,
    retry: Retry,
    stats: Arc<UpstreamStats>,
    unsupported: UnsupportedFields,
}

impl Upstream {
    /// Prepares everything that is the same for every request. Opens no connection.
    pub(crate) fn new(
        config: &UpstreamConfig,
        proxy: &ProxyConfig,
        tls: &Tls,
        stats: Arc<UpstreamStats>,
    ) -> Result<Self, AssembleError> {
        let dialect = toolgate_dialect::registry::find(config.dialect)
            .ok_or_else(|| AssembleError::UnknownDialect {
                upstream: config.name.to_string(),
                dialect: config.dialect.to_owned(),
            })?
            .upstream;
        let proxy = ProxyUse::of(proxy, &config.base_url)
            .ok_or_else(|| AssembleError::BadProxy { upstream: config.name.to_string() })?;
        let turns = client::address(config, dialect.id(), dialect.path(), &proxy)?;
        let optional = |path: Option<&str>| {
            path.map(|path| client::address(config, dialect.id(), path, &proxy)).transpose()
        };
        let (count, compact) = match config.dialect {
            "anthropic-messages" => (Some("/messages/count_tokens"), None),
            "openai-responses" => (Some("/responses/input_tokens"), Some("/responses/compact")),
            _ => (None, None),
        };
        let (count, compact) = (optional(count)?, optional(compact)?);
        let host = Host {
            name: Arc::from(config.name.as_str()),
            access: if matches!(proxy, ProxyUse::Direct) { Access::Direct } else { Access::Proxied },
            key: match (config.used_by, &config.api_key) {
                (UsedBy::Agent, _) => Key::OfAgent,
                (UsedBy::Callers, Some(_)) => Key::Configured,
                (UsedBy::Callers, None) => Key::Missing,
            },
        };
        let dialer = Dialer::new(config, tls, &proxy);
        let deadlines = config.timeouts;
        let facts = config.facts.clone();
        let pool = Pool::new(dialer, host.clone(), deadlines, Arc::clone(&stats));
        let inner = Inner {
            host,
            dialect,
            facts,
            pool,
            turns,
            count,
            compact,
            deadlines,
            retry: config.retry,
            stats,
            unsupported: UnsupportedFields::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

impl Backend for Upstream {
    fn start(&self, turn: Turn) -> BoxFuture<'static, Result<Answer, TurnError>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let prepared = prepare::translated(inner.dialect, &inner.facts, &turn)?;
            inner.answer_translated(turn.host_model(), prepared).await
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

    fn knows(&self, model: &ModelName) -> bool {
        self.inner.facts.knows(model.as_str())
    }

    fn relay(&self, turn: RelayTurn) -> BoxFuture<'static, Result<Answer, TurnError>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let prepared = prepare::relayed(inner.dialect, &inner.facts, turn)?;
            inner.answer(&prepared).await.map_err(|failed| failed.error)
        })
    }

    fn count_tokens(&self, turn: RelayTurn) -> BoxFuture<'static, Option<Result<u64, TurnError>>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let address = inner.count.as_ref()?;
            Some(inner.count_tokens(address, turn).await)
        })
    }

    fn compact(&self, turn: RelayTurn) -> BoxFuture<'static, Option<Result<Answer, TurnError>>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let address = inner.compact.as_ref()?;
            Some(inner.compact(address, turn).await)
        })
    }
}

impl Inner {
    /// Sends a request that was written here. A field that the host refuses is left out, and remembered if that helped.
    async fn answer_translated(&self, model: &str, mut prepared: Prepared) -> Result<Answer, TurnError> {
        for field in self.unsupported.known_in(model, &prepared.body) {
            prepared.leave_out(&field);
        }
        let mut dropped = Vec::new();
        loop {
            let failed = match self.answer(&prepared).await {
                Ok(answer) => {
                    if !dropped.is_empty() {
                        self.unsupported.remember(model, dropped);
                    }
                    return Ok(answer);
                }
                Err(failed) => failed,
            };
            let named = unsupported_field::named(self.dialect.id(), &prepared.body, &failed.refusal);
            let Some(field) = named.filter(|_| dropped.len() < unsupported_field::MAX_DROPPED) else {
                return Err(failed.error);
            };
            tracing::warn!(
                id = %prepared.id, upstream = %self.host.name, model, %field, error = %failed.error,
                "the host refuses this field; sending the request again without it"
            );
            self.stats.add_retry();
            prepared.leave_out(&field);
            dropped.push(field);
        }
    }

    /// Sends the request until there is a first event, or it must not be sent again.
    async fn answer(&self, prepared: &Prepared) -> Result<Answer, AttemptError> {
        let mut retries = 0;
        loop {
            let failed = match self.attempt(prepared).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            let Some(wait) = retry::wait(&self.retry, retries, &failed) else { return Err(failed) };
            tracing::debug!(
                id = %prepared.id, upstream = %self.host.name, error = %failed.error, ?wait, "sending the request again"
            );
            tokio::time::sleep(wait).await;
            self.stats.add_retry();
            retries += 1;
        }
    }

    /// One request, up to the first event of its reply.
    async fn attempt(&self, prepared: &Prepared) -> Result<Answer, AttemptError> {
        let accept = match prepared.delivery {
            Delivery::Whole => "application/json",
            Delivery::Stream(_) => "text/event-stream",
        };
        let mut response = self.send(&self.turns, prepared, accept).await?;
        let headers = std::mem::take(&mut response.head.headers);
        match self.begin(response, prepared).await {
            Ok(Translated { value: body, losses }) => {
                Ok(Answer { losses, headers, ..Answer::new(Arc::clone(&self.host.name), body) })
            }
            Err(error) => Err(AttemptError::last(with_headers(error, headers))),
        }
    }

    /// Reads a successful response up to its first event.
    async fn begin(
        &self,
        HostResponse { head, mut body }: HostResponse,
        prepared: &Prepared,
    ) -> Result<Translated<AnswerBody>, TurnError> {
        let mut losses = prepared.losses.clone();
        let value = match (head.form(prepared.delivery), prepared.reply) {
            (ReplyForm::Html, _) => return Err(Box::pin(self.host.sent_a_page(&mut body)).await),
            (ReplyForm::Stream, ReplyMode::Relay) if prepared.is_stream() => {
                let mut relay = Box::new(HostRelay::new(body, self.dialect.meter()));
                poll_fn(|cx| relay.poll_first(cx)).await?;
                AnswerBody::Relay(relay)
            }
            (ReplyForm::Stream, _) => {
                let mut events = Box::pin(HostEvents::new(body, prepared.translation.reply()));
                poll_fn(|cx| events.poll_first(cx)).await?;
                AnswerBody::Events(events)
            }
            (ReplyForm::Whole, ReplyMode::Relay) if !prepared.is_stream() => {
                self.relay_whole(&mut body).await?
            }
            (ReplyForm::Whole, _) => {
                let bytes = body.collect(MAX_WHOLE_BYTES).await?;
                let reply = prepared.translation.whole_reply(&bytes)?;
                losses.append(reply.losses);
                let batch = Batch::from(reply.value);
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
            // The meter found no complete reply; the reader says why.
            self.dialect.read_reply(&bytes)?;
        }
        Ok(AnswerBody::Whole(WholeBody { bytes, usage: reading.usage }))
    }

    async fn count_tokens(&self, to: &Address, turn: RelayTurn) -> Result<u64, TurnError> {
        let limit = self.deadlines.count_tokens;
        let counted = timeout(limit, self.count_tokens_unbounded(to, turn)).await;
        counted.unwrap_or_else(|_| Err(self.host.silent_for(limit)))
    }

    async fn count_tokens_unbounded(&self, to: &Address, turn: RelayTurn) -> Result<u64, TurnError> {
        #[derive(Deserialize)]
        struct TokenCount {
            input_tokens: u64,
        }
        let prepared = prepare::relayed(self.dialect, &self.facts, turn)?;
        let sent = self.send(to, &prepared, "application/json").await;
        let mut response = sent.map_err(|failed| failed.error)?;
        let bytes = response.body.collect(MAX_ERROR_BYTES).await?;
        let count: TokenCount = serde_json::from_slice(&bytes)
            .map_err(|error| self.host.malformed_reply("a token count").caused_by(error))?;
        Ok(count.input_tokens)
    }

    async fn compact(&self, to: &Address, turn: RelayTurn) -> Result<Answer, TurnError> {
        let prepared = prepare::relayed(self.dialect, &self.facts, turn)?;
        let sent = self.send(to, &prepared, "application/json").await;
        let mut response = sent.map_err(|failed| failed.error)?;
        let bytes = response.body.collect(MAX_WHOLE_BYTES).await?;
        let usage = self.dialect.measure(&bytes).usage;
        let body = AnswerBody::Whole(WholeBody { bytes, usage });
        let (losses, headers) = (prepared.losses, response.head.headers);
        Ok(Answer { losses, headers, ..Answer::new(Arc::clone(&self.host.name), body) })
    }

    /// Sends a request and returns a successful response whose body can be read. Everything else is an error.
    async fn send(
        &self,
        to: &Address,
        prepared: &Prepared,
        accept: &'static str,
    ) -> Result<HostResponse, AttemptError> {
        let request = HostRequest { to, accept, forwarded: prepared.headers(), body: prepared.body.clone() };
        let response = match self.pool.request(&request).await {
            Ok(response) => response,
            Err(failed) => {
                let is_unprocessed = failed.is_unprocessed();
                let error = self.host.unanswered(failed, &self.deadlines);
                return Err(if is_unprocessed {
                    AttemptError::refused(error)
                } else {
                    AttemptError::last(error)
                });
            }
        };
        let status = response.head.status;
        match (status, &response.head.encoding) {
            (204 | 205 | 304 | ..200, _) => {
                let error = self.host.without_reply(status);
                Err(unusable(response, error))
            }
            (200..300, Some(encoding)) => {
                let error = self.host.compressed(encoding);
                Err(unusable(response, error))
            }
            (200..300, None) => Ok(response),
            (300..400, _) => {
                let error = self.host.redirected(response.head.location.as_deref());
                Err(unusable(response, error))
            }
            (400.., _) => Err(Box::pin(self.refused(response)).await),
        }
    }

    /// Reads a response with an error status.
    async fn refused(&self, HostResponse { head, mut body }: HostResponse) -> AttemptError {
        let read = timeout(failure::MAX_ERROR_WAIT, body.collect(MAX_ERROR_BYTES)).await;
        // The status alone says enough if the body is incomplete or compressed.
        let bytes = read.ok().and_then(Result::ok).filter(|_| head.encoding.is_none()).unwrap_or_default();
        let mut error = self.dialect.read_error(head.status, &bytes);
        error.retry_after = error.retry_after.or_else(|| head.retry_after());
        let failed = match (head.status, error.kind) {
            (407, _) => AttemptError::last(self.host.proxy_rejected()),
            (401, _) | (403, ErrorKind::Authentication) => AttemptError::last(self.host.key_rejected(&error)),
            _ => AttemptError::refused(error),
        };
        let refusal = if matches!(head.status, 400 | 422) { bytes } else { Bytes::new() };
        AttemptError { error: with_headers(failed.error, head.headers), refusal, ..failed }
    }
}

fn unusable(response: HostResponse, error: TurnError) -> AttemptError {
    AttemptError::last(with_headers(error, response.head.headers))
}

fn with_headers(mut error: TurnError, headers: HostHeaders) -> TurnError {
    error.host_headers = headers.into_texts();
    error
}

/// How long the host may keep the connection open once its reply is complete. Token counts may still follow.
const MAX_CLOSING: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests;
