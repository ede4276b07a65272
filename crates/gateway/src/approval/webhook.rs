//! Signed webhooks: tells another program what is asked and decided. A decision never waits for it.
//!
//! The headers are those of Standard Webhooks: `webhook-id` (the same for every attempt), `webhook-timestamp` and
//! `webhook-signature: v1,BASE64(HMAC-SHA256(secret, "ID.TIMESTAMP.BODY"))`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::header::CONTENT_TYPE;
use http::{HeaderName, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolgate_backend::Tls;
use uuid::Uuid;

use crate::clock::Clock;
use crate::signature::sign;

/// Messages that wait to be sent for the first time. Further ones are dropped with a warning.
const QUEUED: usize = 1_000;

/// Messages whose delivery is tried at the same time, those that wait for their next attempt included.
const IN_FLIGHT: usize = 64;

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(10);

/// The waits between attempts. After the last one the message is given up.
const BACKOFF: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30), Duration::from_mins(2)];

/// How long the last messages may take when the gateway stops.
const GRACE: Duration = Duration::from_secs(2);

/// Marks a secret that is written in base64, as the libraries of Standard Webhooks expect it.
const BASE64_SECRET: &str = "whsec_";

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Where messages are sent.
#[derive(Clone)]
pub struct WebhookConfig {
    /// The address, `http://` or `https://`.
    pub url: Uri,
    /// Signs every message.
    pub secret: SecretString,
}

impl fmt::Debug for WebhookConfig {
    // The path may be a secret, too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookConfig({})", self.url.host().unwrap_or_default())
    }
}

/// Takes messages for the webhook. Never waits.
#[derive(Clone, Debug)]
pub(super) struct Webhook(mpsc::Sender<Message>);

#[derive(Debug)]
struct Message {
    id: Uuid,
    body: Bytes,
}

impl Webhook {
    /// The sender of messages, and the worker that delivers them.
    pub(super) fn new(config: WebhookConfig, tls: &Tls, clock: Arc<dyn Clock>) -> (Self, WebhookWorker) {
        let (queue, messages) = mpsc::channel(QUEUED);
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls.config()).https_or_http().enable_http1().build();
        let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        let key = signing_key(&config.secret);
        (Self(queue), WebhookWorker { messages, delivery: Delivery { url: config.url, key, client, clock } })
    }

    /// Queues a message. If the receiver is so slow that the queue is full, the message is dropped.
    pub(super) fn send(&self, body: String) {
        let message = Message { id: Uuid::now_v7(), body: Bytes::from(body) };
        if self.0.try_send(message).is_err() {
            tracing::warn!("a webhook message was dropped: {QUEUED} others wait to be sent");
        }
    }
}

fn signing_key(secret: &SecretString) -> Vec<u8> {
    let secret = secret.expose_secret();
    let decoded = secret.strip_prefix(BASE64_SECRET).and_then(|encoded| STANDARD.decode(encoded).ok());
    decoded.unwrap_or_else(|| secret.as_bytes().to_vec())
}

/// Delivers messages, several at a time, so that one that is retried does not delay the others.
pub(super) struct WebhookWorker {
    messages: mpsc::Receiver<Message>,
    delivery: Delivery,
}

impl WebhookWorker {
    /// Runs until `stop` is cancelled; what is not delivered a little later is given up.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut in_flight = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(message) = self.messages.recv(), if in_flight.len() < IN_FLIGHT => {
                    in_flight.push(self.delivery.deliver(message));
                }
                Some(()) = in_flight.next() => {}
                () = stop.cancelled() => break,
            }
        }
        while let Ok(message) = self.messages.try_recv() {
            in_flight.push(self.delivery.deliver(message));
        }
        let last = async { while in_flight.next().await.is_some() {} };
        if tokio::time::timeout(GRACE, last).await.is_err() {
            tracing::warn!("the gateway stops: some webhook messages were not delivered");
        }
    }
}

struct Delivery {
    url: Uri,
    key: Vec<u8>,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    clock: Arc<dyn Clock>,
}

/// The outcome of one attempt.
enum Attempt {
    Delivered,
    /// The receiver refused the message; sending it again would not help.
    Refused(StatusCode),
    Failed(String),
}

impl Delivery {
    async fn deliver(&self, message: Message) {
        let mut waits = BACKOFF.iter();
        loop {
            let why = match self.attempt(&message).await {
                Attempt::Delivered => return,
                Attempt::Refused(status) => format!("it answered {status}"),
                Attempt::Failed(why) => match waits.next() {
                    Some(wait) => {
                        tokio::time::sleep(*wait).await;
                        continue;
                    }
                    None => why,
                },
            };
            let host = self.url.host().unwrap_or_default();
            tracing::warn!(host, why, id = %message.id, "a webhook message could not be delivered");
            return;
        }
    }

    async fn attempt(&self, message: &Message) -> Attempt {
        let request = match self.request(message) {
            Ok(request) => request,
            Err(error) => return Attempt::Failed(error.to_string()),
        };
        match tokio::time::timeout(ATTEMPT, self.client.request(request)).await {
            Err(_) => Attempt::Failed(format!("it did not answer within {ATTEMPT:?}")),
            Ok(Err(error)) => Attempt::Failed(error.to_string()),
            Ok(Ok(response)) => judge(response.status()),
        }
    }

    fn request(&self, message: &Message) -> http::Result<Request<Full<Bytes>>> {
        let id = message.id.to_string();
        let seconds = (self.clock.now().0 / 1_000).to_string();
        let signed = sign(&self.key, &[id.as_bytes(), b".", seconds.as_bytes(), b".", &message.body]);
        Request::post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(WEBHOOK_ID, id)
            .header(WEBHOOK_TIMESTAMP, seconds)
            .header(WEBHOOK_SIGNATURE, format!("v1,{}", STANDARD.encode(signed)))
            .body(Full::new(message.body.clone()))
    }
}

fn judge(status: StatusCode) -> Attempt {
    let may_pass = status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT;
    if status.is_success() {
        Attempt::Delivered
    } else if may_pass {
        Attempt::Failed(format!("it answered {status}"))
    } else {
        Attempt::Refused(status)
    }
}
