//! What is recorded of a turn whose end the client did not wait for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use toolgate_gateway::{Clock, SystemClock};
use toolgate_state::UnixMillis;
use toolgate_testkit::{RawHost, RawStep};

use crate::gate::{Gate, Surroundings, ask, backends_at, config};
use crate::replies;
use crate::service_hosts::HOSTS;
use crate::stage::{Ask, STREAM_HEAD, chunk, client_of, first_events, gate_before, post, turn};

/// Waits until one turn is recorded, and gives its line of the metrics.
async fn recorded(gate: &Gate) -> String {
    loop {
        let metrics = gate.get("/metrics").await.text().await;
        let line = metrics.lines().find(|line| line.starts_with("toolgate_requests_total{"));
        if let Some(line) = line {
            return line.to_owned();
        }
        tokio::task::yield_now().await;
    }
}

/// The last event of a stream, by the path of its API.
fn last_event(path: &str) -> &'static str {
    match path {
        "/v1/messages" => "event: message_stop\n",
        "/v1/chat/completions" => "data: [DONE]",
        _ => "event: response.completed\n",
    }
}

#[tokio::test]
async fn a_client_that_leaves_after_the_last_event_got_a_complete_reply() {
    for host in &HOSTS {
        for (path, body) in ask(host.model, true) {
            let raw = RawHost::start().await;
            // The last event, without the end of the body.
            let events = replies::bytes_of(&(host.tail)(host.begun()));
            let bytes = format!("{STREAM_HEAD}{}", chunk(&events));
            raw.on([RawStep::ReadMessage, RawStep::send(bytes), RawStep::ReadToEnd]);
            let gate = gate_before(&raw);
            let mut client = client_of(&gate).await;
            client.send(post(path, "", &body.to_string())).await;
            client.read_until(last_event(path)).await;
            client.read_until("\n\n").await;
            drop(client);
            let line = recorded(&gate).await;
            assert!(line.contains("status=\"200\""), "{path} at {}: {line}", host.model);
        }
    }
}

#[tokio::test]
async fn a_client_that_leaves_before_the_last_event_has_left() {
    let host = RawHost::start().await;
    let bytes = format!("{STREAM_HEAD}{}", chunk(&first_events()));
    host.on([RawStep::ReadMessage, RawStep::send(bytes), RawStep::ReadToEnd]);
    let gate = gate_before(&host);
    let mut client = client_of(&gate).await;
    client.send(turn(Ask::Stream)).await;
    client.read_until("hi there").await;
    drop(client);
    let line = recorded(&gate).await;
    assert!(line.contains("status=\"499\""), "{line}");
    host.until("the gateway to leave too", |all| all[0].end.is_some()).await;
}

/// Panics when it is read for the second time: in the middle of a turn whose reply is stored.
#[derive(Default)]
struct BrokenClock(AtomicUsize);

impl Clock for BrokenClock {
    fn now(&self) -> UnixMillis {
        let reads = self.0.fetch_add(1, Ordering::Relaxed);
        assert!(reads != 1, "a bug in the middle of a turn");
        SystemClock.now()
    }
}

#[tokio::test]
async fn a_panic_is_an_internal_error_and_recorded_as_one() {
    let surroundings = Surroundings { clock: Arc::new(BrokenClock::default()), ..Surroundings::default() };
    let host = RawHost::start().await;
    let gate = Gate::start_in(&config(), backends_at(&host.base_url()), surroundings);
    let mut client = client_of(&gate).await;
    client.send(post("/v1/responses", "", r#"{"model":"demo","input":"hello"}"#)).await;
    let answer = client.response().await;
    assert_eq!(answer.status(), 500, "{}", answer.text());
    assert!(answer.text().contains("please report this"), "{}", answer.text());
    let line = recorded(&gate).await;
    assert!(line.contains("status=\"500\""), "{line}");
    // The worker goes on.
    client = client_of(&gate).await;
    client.send(post("/v1/responses", "", r#"{"model":"demo","input":"hello"}"#)).await;
    assert_eq!(client.response().await.status(), 200);
}
