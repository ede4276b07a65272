//! Side requests to a text-only model and their token usage: retries, missing values, and replies that are
//! abandoned early.

use serde_json::{Value, json};
use toolgate_prompted::{PromptedOptions, Strictness};
use toolgate_testkit::{Script, ScriptedUpstream};

use crate::gate::Gate;
use crate::text_host::{CALL, call_in, gate, omit_the_city, questions, say, streamed_arguments};

/// A host that sends `first`, and a valid call when it is asked to retry.
async fn host_that_needs_a_retry(first: &'static str) -> ScriptedUpstream {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(move |received| {
        let is_retry = String::from_utf8_lossy(&received.body).contains("Your call could not be parsed");
        say(received, if is_retry { CALL } else { first }, "stop")
    });
    upstream
}

/// The output tokens of a whole reply, or of the last frame that has any.
fn output_tokens(text: &str) -> u64 {
    let at = text.rfind("\"output_tokens\":").unwrap_or_else(|| panic!("no counts in {text}"));
    let digits = text[at + "\"output_tokens\":".len()..].trim_start();
    digits[..digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len())]
        .parse()
        .expect("a number")
}

/// Waits until this many recoveries of a kind are counted.
async fn assert_recoveries(gate: &Gate, kind: &str, count: u64) {
    assert_metric(gate, &format!("toolgate_recoveries_total{{kind=\"{kind}\"}} {count}\n")).await;
}

/// Waits for a line of the metrics: metering runs after the last byte is sent.
async fn assert_metric(gate: &Gate, row: &str) {
    const TRIES: usize = 500;
    for _ in 0..TRIES {
        if gate.get("/metrics").await.text().await.contains(row) {
            return;
        }
    }
    panic!("no {row} in {}", gate.get("/metrics").await.text().await);
}

#[tokio::test]
async fn an_invalid_call_is_retried() {
    let upstream = host_that_needs_a_retry("Hm.\n§\n<invok name=\"get_weather\">\n</invoke>\n").await;
    let gate = gate(&upstream, PromptedOptions::default());
    let [(path, body), ..] = questions(true);
    let stream = gate.post(path, &body).await.text().await;
    assert_eq!(streamed_arguments(path, &stream), json!({ "city": "Paris", "days": 3 }));
    assert!(stream.contains("Hm.") && !stream.contains("invok"), "{stream}");
    assert_eq!(output_tokens(&stream), 18, "both answers count: {stream}");
    assert_eq!(upstream.requests().len(), 2);
    assert_recoveries(&gate, "retried", 1).await;
}

#[tokio::test]
async fn in_strict_mode_a_whole_reply_has_only_the_exact_call() {
    let upstream = host_that_needs_a_retry(
        "§\n<invoke name=\"Get_Weather\">\n<parameter name=\"city\">Rome</parameter>\n</invoke>",
    )
    .await;
    let gate =
        gate(&upstream, PromptedOptions { strictness: Strictness::Strict, ..PromptedOptions::default() });
    for (path, body) in questions(false) {
        let reply = gate.post(path, &body).await.json().await;
        assert_eq!(call_in(path, &reply).2["city"], "Paris", "{reply}");
        assert!(!reply.to_string().contains("Rome"), "{reply}");
    }
    assert_eq!(upstream.requests().len(), 6);
}

#[tokio::test]
async fn a_failed_retry_leaves_the_text_as_it_was_written() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        if String::from_utf8_lossy(&received.body).contains("Your call could not be parsed") {
            return Script::json(
                400,
                json!({ "error": { "message": "no", "type": "invalid_request_error" } }),
            );
        }
        say(received, "§\n<invok name=\"get_weather\">", "stop")
    });
    let gate = gate(&upstream, PromptedOptions::default());
    let [(path, body), ..] = questions(true);
    let stream = gate.post(path, &body).await.text().await;
    assert!(
        stream.contains("<invok") && stream.contains("end_turn") && stream.contains("message_stop"),
        "{stream}"
    );
}

#[tokio::test]
async fn the_usage_of_a_side_request_is_counted() {
    let upstream = ScriptedUpstream::start().await;
    omit_the_city(&upstream);
    let gate = gate(&upstream, PromptedOptions::default());
    for stream in [false, true] {
        let [(path, body), ..] = questions(stream);
        let reply = gate.post(path, &body).await.text().await;
        assert_eq!(output_tokens(&reply), 18, "{reply}");
        assert!(!reply.contains("estimated"), "{reply}");
    }
    assert_recoveries(&gate, "value_supplied", 2).await;
}

#[tokio::test]
async fn usage_of_an_abandoned_reply_is_estimated_and_marked() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let script = say(received, &format!("{CALL}\nResult: sunny, as I made up."), "stop");
        let steps: Vec<_> = script.steps().cloned().collect();
        steps[..steps.len() - 3].iter().cloned().fold(Script::sse(), Script::step).stall()
    });
    let gate = gate(&upstream, PromptedOptions::default());
    for (path, mut body) in questions(true) {
        if path == "/v1/chat/completions" {
            body["stream_options"] = json!({ "include_usage": true });
        }
        let stream = gate.post(path, &body).await.text().await;
        assert!(stream.contains("\"estimated\":true"), "{path}: {stream}");
    }
    let [(path, body), ..] = questions(true);
    let stream = gate.post(path, &body).await.text().await;
    assert!(output_tokens(&stream) > 20, "{stream}");
    assert_recoveries(&gate, "tail_dropped", 4).await;
}

#[tokio::test]
async fn usage_that_the_host_does_not_report_is_estimated() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|_| {
        let message = json!({ "role": "assistant", "content": "Nothing to look up." });
        let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
        let reply = json!({ "id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice] });
        Script::json(200, reply)
    });
    let gate = gate(&upstream, PromptedOptions::default());
    for (path, body) in questions(false) {
        let reply: Value = gate.post(path, &body).await.json().await;
        assert_eq!(reply["usage"]["estimated"], true, "{path}: {reply}");
    }
}

#[tokio::test]
async fn the_host_reports_usage_even_if_only_the_gateway_wants_it() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        assert_eq!(received.json()["stream_options"]["include_usage"], true);
        say(received, CALL, "stop")
    });
    let gate = gate(&upstream, PromptedOptions::default());
    let [_, (path, body), _] = questions(true);
    for (options, is_shown) in [
        (json!({}), false),
        (json!({ "include_usage": false }), false),
        (json!({ "include_usage": true }), true),
    ] {
        let mut body = body.clone();
        body["stream_options"] = options;
        let stream = gate.post(path, &body).await.text().await;
        assert_eq!(stream.contains("\"completion_tokens\":9"), is_shown, "{stream}");
        assert_eq!(stream.contains("_tokens"), is_shown, "{stream}");
    }
    let mut two_answers = body;
    two_answers["n"] = json!(2);
    let stream = gate.post(path, &two_answers).await.text().await;
    assert!(!stream.contains("_tokens"), "{stream}");
    assert_metric(&gate, "toolgate_tokens_total{dialect=\"openai-chat\",kind=\"output\"} 45\n").await;
}
