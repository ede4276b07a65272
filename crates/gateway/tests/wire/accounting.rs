//! What is recorded of a turn whose end the client did not wait for.

use toolgate_testkit::{RawHost, RawStep};

use crate::gate::Gate;
use crate::stage::{Ask, STREAM_HEAD, all_events, chunk, client_of, first_events, gate_before, turn};

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

#[tokio::test]
async fn a_client_that_leaves_after_the_last_event_got_a_complete_reply() {
    let host = RawHost::start().await;
    // The last event, without the end of the body.
    let bytes = format!("{STREAM_HEAD}{}", chunk(&all_events()));
    host.on([RawStep::ReadMessage, RawStep::send(bytes), RawStep::ReadToEnd]);
    let gate = gate_before(&host);
    let mut client = client_of(&gate).await;
    client.send(turn(Ask::Stream)).await;
    client.read_until("event: message_stop").await;
    client.read_until("\n\n").await;
    drop(client);
    let line = recorded(&gate).await;
    assert!(line.contains("status=\"200\""), "{line}");
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
