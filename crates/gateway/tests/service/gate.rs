//! A gateway in this process, and a client that talks to it over real HTTP.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_backend::config::{
    BackendConfig, ModelRoute, Retry, Target, Tools, UpstreamConfig, UpstreamName, Via,
};
use toolgate_backend::{Decider, ModelPattern};
use toolgate_gateway::config::GatewayConfig;
use toolgate_gateway::{Clock, ConsoleKey, Gateway, Parts, Running, SystemClock};
use toolgate_state::{Bus, MemoryStore, Store, UsageLog};
use toolgate_testkit::ScriptedUpstream;

/// How long a test waits for something that a working gateway does at once, on a busy machine too.
const PATIENCE: Duration = Duration::from_mins(2);

/// The gateway under test.
pub(crate) struct Gate {
    pub(crate) running: Running,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) bus: Arc<Bus>,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// The usual configuration, with short waits so that no test sleeps.
pub(crate) fn config() -> GatewayConfig {
    let mut config = GatewayConfig::new("127.0.0.1:0".parse().expect("an address"));
    config.limits.ping_every = Duration::from_millis(40);
    config.limits.commit_after = Duration::from_secs(10);
    config.limits.shutdown_grace = Duration::from_millis(200);
    config
}

/// Hosts of the three dialects at the same scripted server, each under its own model; and the demo model.
pub(crate) fn backends(upstream: &ScriptedUpstream) -> BackendConfig {
    backends_at(&upstream.base_url())
}

/// The same for a server at this URL.
pub(crate) fn backends_at(base_url: &str) -> BackendConfig {
    let mut backends =
        BackendConfig { models: vec![route("demo", &[Via::Demo])], ..BackendConfig::default() };
    for (name, dialect) in
        [("claude", "anthropic-messages"), ("gpt", "openai-chat"), ("resp", "openai-responses")]
    {
        backends.upstreams.push(host_at(name, dialect, base_url));
        backends.models.push(route(name, &[Via::Upstream(UpstreamName::new(name))]));
    }
    backends
}

pub(crate) fn host(name: &str, dialect: &'static str, upstream: &ScriptedUpstream) -> UpstreamConfig {
    host_at(name, dialect, &upstream.base_url())
}

fn host_at(name: &str, dialect: &'static str, base_url: &str) -> UpstreamConfig {
    let mut config = UpstreamConfig::new(name, dialect, base_url.parse().expect("a URL"));
    config.api_key = Some(format!("{name}-secret").into());
    config.retry =
        Retry { retries: 2, backoff: Duration::from_millis(1), longest_wait: Duration::from_secs(1) };
    config
}

pub(crate) fn route(pattern: &str, vias: &[Via]) -> ModelRoute {
    let targets = vias.iter().map(|via| Target { via: via.clone(), model: None }).collect();
    ModelRoute { pattern: ModelPattern::new(pattern), targets, tools: Tools::Native }
}

/// The gateway's dependencies: by default an empty store, the machine's clock and the operator's rules.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Decides about the agents' tools in place of the rules.
    pub(crate) decider: Option<Arc<dyn Decider>>,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self { store: Arc::new(MemoryStore::new()), clock: Arc::new(SystemClock), decider: None }
    }
}

/// The key of every gateway under test, also after a restart.
pub(crate) fn console_key() -> ConsoleKey {
    ConsoleKey::derive(&[9; 32])
}

/// A new console token as the value of `authorization`.
pub(crate) fn console_token() -> String {
    format!("Bearer {}", console_key().issue(SystemClock.now()).expect("a token"))
}

impl Gate {
    pub(crate) fn start(config: &GatewayConfig, backends: BackendConfig) -> Self {
        Self::start_in(config, backends, Surroundings::default())
    }

    pub(crate) fn start_in(
        config: &GatewayConfig,
        backends: BackendConfig,
        surroundings: Surroundings,
    ) -> Self {
        let Surroundings { store, clock, decider } = surroundings;
        let (usage, worker) = UsageLog::new(Arc::clone(&store) as _);
        #[expect(
            clippy::disallowed_methods,
            reason = "the test's runtime ends with the test, and the task with it"
        )]
        drop(tokio::task::spawn(worker.run()));
        let listener = TcpListener::bind(config.listen).expect("a free port");
        let bus = Bus::new();
        let parts = Parts {
            store: Arc::clone(&store),
            usage,
            bus: Arc::clone(&bus),
            clock,
            dropped_log_lines: Arc::default(),
            console: console_key(),
        };
        let gateway = match decider {
            None => Gateway::new(config, backends, parts),
            Some(decider) => Gateway::decided_by(config, backends, parts, |_| Arc::clone(&decider)),
        };
        let gateway = gateway.expect("a gateway");
        let running = gateway.start(&listener, CancellationToken::new()).expect("it starts");
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { running, store, bus, client }
    }

    /// The same gateway with an HTTP/2 client, over one connection.
    pub(crate) fn over_http2(mut self) -> Self {
        self.client = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
        self
    }

    /// A gateway with the usual configuration in front of the scripted server.
    pub(crate) fn before(upstream: &ScriptedUpstream) -> Self {
        Self::start(&config(), backends(upstream))
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let uri = format!("http://{}{path}", self.running.address());
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).expect("a request");
        let response = within("the head of a response", self.client.request(request)).await;
        Answer(response.expect("a response"))
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, &[("content-type", "application/json")], body.to_string()).await
    }

    /// Sends a GET with a console token.
    pub(crate) async fn get_console(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let token = console_token();
        let headers = [&[("authorization", token.as_str())], headers].concat();
        self.send(Method::GET, path, &headers, "").await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], "").await
    }
}

/// A response whose body is still to be read.
pub(crate) struct Answer(pub(crate) Response<Incoming>);

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.0.headers().get(name).map_or("", |value| value.to_str().expect("a text header"))
    }

    /// The next bytes of the body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Option<String> {
        let frame = within("more of a body", self.0.body_mut().frame()).await?;
        let bytes = frame.expect("the body goes on").into_data().expect("data");
        Some(String::from_utf8(bytes.to_vec()).expect("text"))
    }

    /// Reads until `wanted` has come, and returns everything received.
    pub(crate) async fn until(&mut self, wanted: &str) -> String {
        let mut seen = String::new();
        while !seen.contains(wanted) {
            let more = self.chunk().await;
            seen.push_str(&more.unwrap_or_else(|| panic!("`{wanted}` never came, only: {seen}")));
        }
        seen
    }

    pub(crate) async fn text(self) -> String {
        let body = within("the rest of a body", self.0.into_body().collect()).await;
        String::from_utf8(body.expect("a whole body").to_bytes().to_vec()).expect("text")
    }

    pub(crate) async fn json(self) -> Value {
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

/// The same request for each API: (path, body).
pub(crate) fn ask(model: &str, stream: bool) -> [(&'static str, Value); 3] {
    let hello = json!([{ "role": "user", "content": "hello" }]);
    [
        ("/v1/messages", json!({ "model": model, "max_tokens": 100, "messages": hello, "stream": stream })),
        ("/v1/chat/completions", json!({ "model": model, "messages": hello, "stream": stream })),
        ("/v1/responses", json!({ "model": model, "input": "hello", "stream": stream })),
    ]
}

/// A request to `/v1/messages`.
pub(crate) fn ask_messages(model: &str, stream: bool) -> Value {
    let [(_, body), ..] = ask(model, stream);
    body
}

/// The message of an API's error.
pub(crate) fn error_message(path: &str, body: &Value) -> String {
    let is_anthropic = path.starts_with("/v1/messages");
    assert_eq!(body["type"] == "error", is_anthropic, "{path} tells errors in its own format: {body}");
    body["error"]["message"].as_str().unwrap_or_else(|| panic!("no message in {body}")).to_owned()
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("waited {PATIENCE:?} for {what}"))
}
