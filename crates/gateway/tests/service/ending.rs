//! Shutdown: open streams may finish within the grace period, then end with an error event.

use crate::gate::{Gate, ask_messages, backends, config};
use crate::replies;
use std::time::Duration;
use toolgate_testkit::{Script, ScriptedUpstream};

#[tokio::test]
async fn an_open_stream_may_finish() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(replies::tail(replies::head(Script::sse()).gate("rest")));
    let mut config = config();
    config.limits.shutdown_grace = Duration::from_secs(10);
    let gate = Gate::start(&config, backends(&upstream));
    let mut answer = gate.post("/v1/messages", &ask_messages("claude", true)).await;
    answer.until("hi there").await;
    let stopping = gate.running.stop();
    upstream.open("rest");
    let (stopped, text) = tokio::join!(stopping, answer.text());
    stopped.expect("it stops in order");
    assert!(text.contains("message_stop"), "{text}");
}

#[tokio::test]
async fn a_stream_without_end_gets_an_error_event() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(replies::head(Script::sse()).stall());
    let gate = Gate::start(&config(), backends(&upstream));
    let mut answer = gate.post("/v1/messages", &ask_messages("claude", true)).await;
    answer.until("hi there").await;
    let (stopped, text) = tokio::join!(gate.running.stop(), answer.text());
    stopped.expect("it stops in order");
    assert!(text.contains("event: error\n") && text.contains("shutting down"), "{text}");
}

#[tokio::test]
async fn a_stopped_gateway_takes_no_more_connections() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let address = gate.running.address();
    gate.running.stop().await.expect("it stops in order");
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
