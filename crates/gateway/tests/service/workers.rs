//! Several workers: each has its own connections, and together they are one gateway.

use crate::gate::{Gate, ask_messages, backends, config};
use crate::replies;
use std::time::Duration;
use toolgate_testkit::{Script, ScriptedUpstream};

/// Enough that each worker has some.
const STREAMS: usize = 24;

async fn streams(
    gate: &Gate,
    upstream: &ScriptedUpstream,
    script: impl Fn() -> Script,
) -> Vec<crate::gate::Answer> {
    let mut answers = Vec::new();
    for _ in 0..STREAMS {
        upstream.on(script());
        let mut answer = gate.post("/v1/messages", &ask_messages("claude", true)).await;
        answer.until("hi there").await;
        answers.push(answer);
    }
    answers
}

#[tokio::test]
async fn open_streams_of_all_workers_finish_and_are_counted_once() {
    let upstream = ScriptedUpstream::start().await;
    let mut config = config();
    config.workers = 2;
    config.limits.shutdown_grace = Duration::from_secs(10);
    let gate = Gate::start(&config, backends(&upstream));
    let answers =
        streams(&gate, &upstream, || replies::tail(replies::head(Script::sse()).gate("rest"))).await;
    upstream.open("rest");
    for answer in answers {
        assert!(answer.text().await.contains("message_stop"));
    }
    let metrics = gate.get("/metrics").await.text().await;
    let total: u64 = metrics
        .lines()
        .filter(|line| line.starts_with("toolgate_requests_total"))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum();
    assert_eq!(total, STREAMS as u64, "{metrics}");
    gate.running.stop().await.expect("all workers stop in order");
}

#[tokio::test]
async fn all_workers_end_their_streams_when_the_gateway_stops() {
    let upstream = ScriptedUpstream::start().await;
    let mut config = config();
    config.workers = 2;
    let gate = Gate::start(&config, backends(&upstream));
    let answers = streams(&gate, &upstream, || replies::head(Script::sse()).stall()).await;
    gate.running.stop().await.expect("all workers stop in order");
    for answer in answers {
        let text = answer.text().await;
        assert!(text.contains("event: error\n") && text.contains("shutting down"), "{text}");
    }
}
