//! A gateway between a raw client and a raw host, and the bytes they usually exchange.

use serde_json::json;
use toolgate_testkit::{RawClient, RawHost, RawMessage, RawStep, Script};

use crate::gate::{Gate, backends_at, config};
use crate::replies;

/// How a reply is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    Whole,
    Stream,
}

/// A gateway with the usual configuration in front of a raw host. Its hosts retry twice, so a request that must not be
/// sent again would be.
pub(crate) fn gate_before(host: &RawHost) -> Gate {
    Gate::start(&config(), backends_at(&host.base_url()))
}

pub(crate) async fn client_of(gate: &Gate) -> RawClient {
    RawClient::connect(gate.running.address()).await
}

/// The body of a turn for the model `claude`.
pub(crate) fn turn_body(ask: Ask, content: &str) -> String {
    let messages = json!([{ "role": "user", "content": content }]);
    let stream = ask == Ask::Stream;
    json!({ "model": "claude", "max_tokens": 100, "stream": stream, "messages": messages }).to_string()
}

/// A POST with a body of known length. `fields` are further header lines, each with its line end.
pub(crate) fn post(path: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{fields}content-length: {length}\r\n\r\n{body}"
    )
}

/// The usual request.
pub(crate) fn turn(ask: Ask) -> String {
    post("/v1/messages", "", &turn_body(ask, "hello"))
}

/// A response with a JSON body of known length.
pub(crate) fn response(status: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{fields}content-length: {length}\r\n\r\n{body}"
    )
}

/// The usual whole reply, which says `hi there`.
pub(crate) fn good_reply() -> String {
    response("200 OK", "", &replies::whole().to_string())
}

/// The head of a streamed reply, sent in chunks.
pub(crate) const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// The usual events: all of them, or only the first ones, up to `hi there`.
pub(crate) fn all_events() -> String {
    replies::bytes_of(&replies::stream())
}

pub(crate) fn first_events() -> String {
    replies::bytes_of(&replies::head(Script::sse()))
}

/// One chunk of a chunked body.
pub(crate) fn chunk(bytes: &str) -> String {
    format!("{:x}\r\n{bytes}\r\n", bytes.len())
}

/// The usual reply to `ask`.
pub(crate) fn good_reply_to(ask: Ask) -> String {
    match ask {
        Ask::Whole => good_reply(),
        Ask::Stream => format!("{STREAM_HEAD}{}0\r\n\r\n", chunk(&all_events())),
    }
}

/// What a client got from a gateway whose host behaved as scripted.
pub(crate) struct Outcome {
    pub(crate) response: RawMessage,
    pub(crate) host: RawHost,
}

impl Outcome {
    #[track_caller]
    pub(crate) fn assert_status(&self, status: u16) -> &Self {
        let RawMessage { head, .. } = &self.response;
        assert_eq!(self.response.status(), status, "{head}\n\n{}", self.response.text());
        self
    }

    /// The response is an error with this status whose message contains `part`.
    #[track_caller]
    pub(crate) fn assert_error(&self, status: u16, part: &str) -> &Self {
        self.assert_status(status);
        let body = self.response.json();
        let message = body["error"]["message"].as_str().unwrap_or_default();
        assert!(!message.is_empty() && message.contains(part), "`{part}` is not in: {body}");
        self
    }

    #[track_caller]
    pub(crate) fn assert_says(&self, part: &str) -> &Self {
        assert!(self.response.text().contains(part), "`{part}` is not in: {}", self.response.text());
        self
    }

    /// How many requests the host saw. The last one is the next request of [`exchange`].
    #[track_caller]
    pub(crate) fn assert_requests(&self, count: usize) -> &Self {
        let requests = self.host.requests();
        assert_eq!(requests.len(), count, "{requests:#?}");
        self
    }
}

/// Lets a host play `steps` on its first connection, sends it a request through a gateway, and after that another one,
/// which must succeed. Further connections are answered well.
pub(crate) async fn exchange(ask: Ask, steps: impl IntoIterator<Item = RawStep>) -> Outcome {
    let host = RawHost::start().await;
    host.on(steps);
    host.always([RawStep::answer_all(good_reply())]);
    let gate = gate_before(&host);
    let response = request(&gate, &turn(ask)).await;
    assert_next_request_works(&gate).await;
    Outcome { response, host }
}

/// Sends one request on a connection of its own and reads the response to its end.
pub(crate) async fn request(gate: &Gate, bytes: &str) -> RawMessage {
    let mut client = client_of(gate).await;
    client.send(bytes).await;
    client.response().await
}

pub(crate) async fn assert_next_request_works(gate: &Gate) {
    let response = request(gate, &turn(Ask::Whole)).await;
    assert_eq!(response.status(), 200, "the next request fails: {}", response.text());
    assert_eq!(response.json(), replies::whole(), "the next request gets a reply that is not its own");
}
