//! Clients that speak HTTP/2 to the gateway with prior knowledge.

use crate::gate::{Gate, ask, ask_messages, error_message};
use crate::replies;
use http::Version;
use toolgate_testkit::{Script, ScriptedUpstream};

#[tokio::test]
async fn every_api_answers_whole_and_streamed() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream).over_http2();
    for stream in [false, true] {
        for (path, body) in ask("claude", stream) {
            upstream.on(if stream { replies::stream() } else { Script::json(200, replies::whole()) });
            let answer = gate.post(path, &body).await;
            assert_eq!((answer.0.version(), answer.status()), (Version::HTTP_2, 200), "{path}");
            assert!(answer.text().await.contains("hi there"), "{path}");
        }
    }
    let answer = gate.post("/v1/messages", &ask_messages("nobody", false)).await;
    assert_eq!(answer.status(), 404);
    error_message("/v1/messages", &answer.json().await);
}

#[tokio::test]
async fn cancelling_one_stream_does_not_disturb_another_on_the_same_connection() {
    // T20
    let upstream = ScriptedUpstream::start().await;
    upstream.on(replies::head(Script::sse()).stall());
    upstream.on(replies::tail(replies::head(Script::sse()).gate("rest")));
    let gate = Gate::before(&upstream).over_http2();
    let mut cancelled = gate.post("/v1/messages", &ask_messages("claude", true)).await;
    cancelled.until("hi there").await;
    let mut other = gate.post("/v1/messages", &ask_messages("claude", true)).await;
    other.until("hi there").await;
    drop(cancelled);
    upstream.disconnected().await;
    upstream.open("rest");
    assert!(other.text().await.contains("message_stop"));
}

#[tokio::test]
async fn a_stream_in_the_middle_ends_with_an_error_event_when_the_gateway_does() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(replies::head(Script::sse()).stall());
    let gate = Gate::before(&upstream).over_http2();
    let mut answer = gate.post("/v1/messages", &ask_messages("claude", true)).await;
    answer.until("hi there").await;
    let (stopped, text) = tokio::join!(gate.running.stop(), answer.text());
    stopped.expect("it stops in order");
    assert!(text.contains("event: error\n") && text.contains("shutting down"), "{text}");
}
