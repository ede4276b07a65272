//! Talks to the console API of a running gateway.

use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::console::Console;

/// Longer than the longest poll.
const TIMEOUT: Duration = Duration::from_secs(90);

/// A thousand questions with long inputs.
const MAX_ANSWER_BYTES: usize = 256 * 1024 * 1024;

/// A client of the console API, with a token of its own.
pub(crate) struct GatewayClient {
    base: String,
    authorization: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// An answer of the gateway.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

impl Answer {
    /// The body of a success; an error with the gateway's message otherwise.
    pub(crate) fn success(self) -> anyhow::Result<Value> {
        anyhow::ensure!(self.status.is_success(), "{}", self.message());
        Ok(self.body)
    }

    /// The gateway's error message.
    pub(crate) fn message(&self) -> String {
        let message = self.body["error"]["message"].as_str();
        message.map_or_else(|| format!("the gateway answered {}", self.status), str::to_owned)
    }
}

impl GatewayClient {
    pub(crate) fn new(console: &Console) -> anyhow::Result<Self> {
        Ok(Self {
            base: format!("http://{}/console/api", console.address()),
            authorization: format!("Bearer {}", console.token()?),
            client: Client::builder(TokioExecutor::new()).build_http(),
        })
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        self.send(Method::POST, path, Some(body)).await
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Answer> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(AUTHORIZATION, &self.authorization)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(body))
            .context("making a request")?;
        let unreachable = || {
            format!(
                "cannot reach the gateway at {}: start it with `toolgate`, or name its address with --listen",
                self.base
            )
        };
        let answering = async {
            let response = self.client.request(request).await.with_context(unreachable)?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
            let body =
                body.map_err(|error| anyhow::anyhow!("reading the gateway's answer: {error}"))?.to_bytes();
            let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
            Ok(Answer { status, body })
        };
        tokio::time::timeout(TIMEOUT, answering)
            .await
            .map_err(|_| anyhow::anyhow!("the gateway did not answer within {TIMEOUT:?}"))?
    }
}
