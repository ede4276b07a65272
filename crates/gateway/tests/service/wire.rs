//! Requests as bytes: however they come, and whatever else is asked on the same connection, the answer is the same.

use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolgate_backend::ModelPattern;
use toolgate_backend::config::{BackendConfig, Via};
use toolgate_gateway::config::Key;
use toolgate_testkit::{Script, ScriptedUpstream};

use crate::gate::{Gate, ask, ask_messages, config, route};
use crate::replies;

/// The longest a test waits for bytes.
const PATIENCE: Duration = Duration::from_mins(2);

fn demo() -> Gate {
    let models = vec![route("demo", &[Via::Demo])];
    Gate::start(&config(), BackendConfig { models, ..BackendConfig::default() })
}

/// A client that knows no HTTP but what the test writes.
struct Raw {
    stream: TcpStream,
    received: String,
}

impl Raw {
    async fn to(gate: &Gate) -> Self {
        let stream = TcpStream::connect(gate.running.address()).await.expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        Self { stream, received: String::new() }
    }

    async fn write(&mut self, text: impl AsRef<[u8]>) {
        self.stream.write_all(text.as_ref()).await.expect("the gateway reads");
    }

    /// False at the end of the connection.
    async fn more(&mut self) -> bool {
        let mut buffer = [0; 4 * 1024];
        let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut buffer)).await;
        let count = read.expect("something comes in time").expect("no reset");
        self.received.push_str(std::str::from_utf8(&buffer[..count]).expect("text"));
        count > 0
    }

    /// Takes everything up to and with `end`.
    async fn until(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = self.received.find(end) {
                let rest = self.received.split_off(at + end.len());
                return std::mem::replace(&mut self.received, rest);
            }
            assert!(self.more().await, "`{end}` never came, only: {}", self.received);
        }
    }

    /// The next answer: its head in small letters, and its body as it came.
    async fn answer(&mut self) -> (String, String) {
        let head = self.until("\r\n\r\n").await.to_ascii_lowercase();
        let Some((_, length)) = head.split_once("content-length: ") else {
            return (head, self.until("0\r\n\r\n").await);
        };
        let length: usize = length.lines().next().unwrap().parse().expect("a length");
        while self.received.len() < length {
            assert!(self.more().await, "a body of {length} bytes never came: {}", self.received);
        }
        let rest = self.received.split_off(length);
        (head, std::mem::replace(&mut self.received, rest))
    }

    async fn ends(mut self) -> bool {
        self.received.is_empty() && !self.more().await
    }
}

fn request(path: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{fields}content-length: {length}\r\n\r\n{body}"
    )
}

fn messages(fields: &str) -> String {
    request("/v1/messages", fields, &ask_messages("demo", false).to_string())
}

#[track_caller]
fn assert_said((head, body): &(String, String)) {
    assert!(head.starts_with("http/1.1 200 ok\r\n") && head.contains("\r\nrequest-id: "), "{head}");
    assert!(head.contains("\r\ndate: "), "{head}");
    let reply: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(reply["type"], "message", "{body}");
}

#[tokio::test]
async fn a_request_may_come_in_any_two_pieces() {
    let gate = demo();
    let text = messages("");
    for cut in 1..text.len() {
        let mut client = Raw::to(&gate).await;
        client.write(&text[..cut]).await;
        // The gateway has read the first piece once it has answered somebody who came later.
        assert_eq!(gate.get("/healthz").await.status(), 200);
        client.write(&text[cut..]).await;
        assert_said(&client.answer().await);
    }
}

#[tokio::test]
async fn requests_sent_ahead_are_answered_in_order() {
    let gate = demo();
    let mut client = Raw::to(&gate).await;
    let streamed: String =
        ask("demo", true).iter().map(|(path, body)| request(path, "", &body.to_string())).collect();
    client.write(messages("") + &streamed + &messages("")).await;
    assert_said(&client.answer().await);
    for end in ["message_stop", "[DONE]", "response.completed"] {
        let (head, body) = client.answer().await;
        assert!(head.contains("transfer-encoding: chunked") && body.contains(end), "{head}{body}");
    }
    assert_said(&client.answer().await);
}

#[tokio::test]
async fn other_requests_are_answered_on_the_same_connection() {
    let gate = demo();
    let body = ask_messages("demo", false).to_string();
    let chunked = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    for other in ["GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(), chunked] {
        let mut client = Raw::to(&gate).await;
        client.write(messages("")).await;
        assert_said(&client.answer().await);
        client.write(other + &messages("")).await;
        assert!(client.answer().await.0.starts_with("http/1.1 200"));
        assert_said(&client.answer().await);
    }
}

#[tokio::test]
async fn a_client_that_asks_before_it_sends_its_body_is_told_to_go_on() {
    let gate = demo();
    let mut client = Raw::to(&gate).await;
    let text = messages("expect: 100-continue\r\n");
    let (head, body) = text.split_at(text.find("\r\n\r\n").expect("a head") + 4);
    client.write(head).await;
    assert_eq!(client.until("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.write(body).await;
    assert_said(&client.answer().await);
}

#[tokio::test]
async fn a_request_whose_end_is_not_plain_is_refused() {
    let gate = demo();
    for fields in ["content-length: 3\r\n", "transfer-encoding: gzip\r\n", "content-length: x\r\n"] {
        let mut client = Raw::to(&gate).await;
        client.write(messages(fields)).await;
        assert!(client.until("\r\n").await.starts_with("HTTP/1.1 400"), "{fields}");
    }
}

#[tokio::test]
async fn a_client_that_wants_no_more_gets_its_answer_and_the_end() {
    let gate = demo();
    let mut client = Raw::to(&gate).await;
    client.write(messages("connection: close\r\n")).await;
    let answer = client.answer().await;
    assert!(answer.0.contains("connection: close"), "{}", answer.0);
    assert_said(&answer);
    assert!(client.ends().await);
}

#[tokio::test]
async fn whoever_is_refused_may_ask_better() {
    let gate = demo();
    let mut client = Raw::to(&gate).await;
    client.write(messages("").replace("localhost", "evil.example")).await;
    let (head, body) = client.answer().await;
    assert!(head.starts_with("http/1.1 403") && body.contains("evil.example"), "{head}{body}");
    client.write(messages("")).await;
    assert_said(&client.answer().await);
    // A large body is not waited for.
    let length = 10_000_000;
    client
        .write(format!(
            "POST /v1/messages HTTP/1.1\r\nhost: evil.example\r\ncontent-length: {length}\r\n\r\n{{"
        ))
        .await;
    assert!(client.until("\r\n").await.starts_with("HTTP/1.1 403"));
}

#[tokio::test]
async fn each_request_on_a_connection_speaks_for_itself() {
    let key = |name: &str, models: &str| Key {
        name: name.to_owned(),
        sha256: Sha256::digest(name).into(),
        models: vec![ModelPattern::new(models)],
    };
    let mut config = config();
    config.keys = vec![key("one", "*"), key("two", "other")];
    let models = vec![route("demo", &[Via::Demo])];
    let gate = Gate::start(&config, BackendConfig { models, ..BackendConfig::default() });
    let mut client = Raw::to(&gate).await;
    // All heads are of one length, and differ in a word.
    let answers =
        [("one", "200"), ("one", "200"), ("two", "403"), ("one", "200"), ("new", "401"), ("one", "200")];
    for (key, status) in answers {
        client.write(messages(&format!("x-api-key: {key}\r\n"))).await;
        let (head, body) = client.answer().await;
        assert!(head.starts_with(&format!("http/1.1 {status} ")), "{key}: {head}{body}");
    }
    client.write(messages("x-api-key: one\r\n").replace("application/json", "application/yaml")).await;
    assert!(client.answer().await.0.starts_with("http/1.1 415 "));
    client.write(messages("x-api-key: one\r\n")).await;
    assert_said(&client.answer().await);
}

#[tokio::test]
async fn large_requests_and_replies_come_whole() {
    let upstream = ScriptedUpstream::start().await;
    let said = "word ".repeat(200_000);
    let reply = json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "gpt",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": said }, "finish_reason": "stop" }],
    });
    for _ in 0..2 {
        upstream.on(Script::json(200, &reply));
    }
    let gate = Gate::before(&upstream);
    let mut client = Raw::to(&gate).await;
    let asked = json!({ "model": "gpt", "messages": [{ "role": "user", "content": said }] }).to_string();
    for _ in 0..2 {
        client.write(request("/v1/chat/completions", "", &asked)).await;
        let (head, body) = client.answer().await;
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert_eq!(serde_json::from_str::<Value>(&body).expect("JSON"), reply);
    }
}

#[tokio::test]
async fn a_client_that_leaves_while_it_waits_ends_the_turn_at_the_host() {
    for stream in [false, true] {
        let upstream = ScriptedUpstream::start().await;
        upstream.on(Script::sse().stall());
        let gate = Gate::before(&upstream);
        let mut client = Raw::to(&gate).await;
        client.write(request("/v1/messages", "", &ask_messages("claude", stream).to_string())).await;
        upstream.next_request().await;
        drop(client);
        upstream.disconnected().await;
    }
}

#[tokio::test]
async fn an_idle_connection_ends_with_the_gateway() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(replies::tail(replies::head(Script::sse())));
    let gate = Gate::before(&upstream);
    let mut client = Raw::to(&gate).await;
    client.write(request("/v1/messages", "", &ask_messages("claude", true).to_string())).await;
    let (_, body) = client.answer().await;
    assert!(body.contains("message_stop"), "{body}");
    gate.running.stop().await.expect("it ends well");
    assert!(client.ends().await);
}
