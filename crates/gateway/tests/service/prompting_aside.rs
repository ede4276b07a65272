//! What is asked of a text-only model besides its answer, and what that costs: a call written again, a value fetched, a
//! host left early. All of it is counted.

use serde_json::{Value, json};
use toolgate_prompted::{Options, Strictness};
use toolgate_testkit::{Script, ScriptedUpstream};

use crate::gate::Gate;
use crate::text_host::{CALL, call_in, forget_the_city, gate, questions, say, streamed_arguments};

/// Says this first, and a good call when told that it cannot be read.
async fn host_that_errs(first: &'static str) -> ScriptedUpstream {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(move |received| {
        let told = String::from_utf8_lossy(&received.body).contains("Your call could not be parsed");
        say(received, if told { CALL } else { first }, "stop")
    });
    upstream
}

/// The output tokens of a reply or of the last frame that counts them.
fn output_tokens(text: &str) -> u64 {
    let at = text.rfind("\"output_tokens\":").unwrap_or_else(|| panic!("no counts in {text}"));
    let digits = text[at + "\"output_tokens\":".len()..].trim_start();
    digits[..digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len())]
        .parse()
        .expect("a number")
}

/// Waits until so many recoveries of a kind are counted: a turn is accounted for right after its last byte.
async fn assert_recoveries(gate: &Gate, kind: &str, count: u64) {
    const TRIES: usize = 500;
    let row = format!("toolgate_recoveries_total{{kind=\"{kind}\"}} {count}\n");
    for _ in 0..TRIES {
        if gate.get("/metrics").await.text().await.contains(&row) {
            return;
        }
    }
    panic!("no {row} in {}", gate.get("/metrics").await.text().await);
}

#[tokio::test]
async fn a_call_that_cannot_be_understood_is_written_again() {
    let upstream = host_that_errs("Hm.\n§\n<invok name=\"get_weather\">\n</invoke>\n").await;
    let gate = gate(&upstream, Options::default());
    let [(path, body), ..] = questions(true);
    let stream = gate.post(path, &body).await.text().await;
    assert_eq!(streamed_arguments(path, &stream), json!({ "city": "Paris", "days": 3 }));
    assert!(stream.contains("Hm.") && !stream.contains("invok"), "{stream}");
    assert_eq!(output_tokens(&stream), 18, "both answers are paid for: {stream}");
    assert_eq!(upstream.requests().len(), 2);
    assert_recoveries(&gate, "retried", 1).await;
}

#[tokio::test]
async fn strict_and_whole_the_client_sees_only_the_exact_call() {
    let upstream = host_that_errs(
        "§\n<invoke name=\"Get_Weather\">\n<parameter name=\"city\">Rome</parameter>\n</invoke>",
    )
    .await;
    let gate = gate(&upstream, Options { strictness: Strictness::Strict, ..Options::default() });
    for (path, body) in questions(false) {
        let reply = gate.post(path, &body).await.json().await;
        assert_eq!(call_in(path, &reply).2["city"], "Paris", "{reply}");
        assert!(!reply.to_string().contains("Rome"), "{reply}");
    }
    assert_eq!(upstream.requests().len(), 6);
}

#[tokio::test]
async fn a_retry_that_fails_leaves_the_text_as_it_was_written() {
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
    let gate = gate(&upstream, Options::default());
    let [(path, body), ..] = questions(true);
    let stream = gate.post(path, &body).await.text().await;
    assert!(
        stream.contains("<invok") && stream.contains("end_turn") && stream.contains("message_stop"),
        "{stream}"
    );
}

#[tokio::test]
async fn a_value_that_was_fetched_is_paid_for() {
    let upstream = ScriptedUpstream::start().await;
    forget_the_city(&upstream);
    let gate = gate(&upstream, Options::default());
    for stream in [false, true] {
        let [(path, body), ..] = questions(stream);
        let reply = gate.post(path, &body).await.text().await;
        assert_eq!(output_tokens(&reply), 18, "{reply}");
        assert!(!reply.contains("estimated"), "{reply}");
    }
    assert_recoveries(&gate, "value_supplied", 2).await;
}

#[tokio::test]
async fn a_host_that_is_left_before_it_counts_is_estimated_and_the_reply_says_so() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let script = say(received, &format!("{CALL}\nResult: sunny, as I made up."), "stop");
        let steps: Vec<_> = script.steps().cloned().collect();
        steps[..steps.len() - 3].iter().cloned().fold(Script::sse(), Script::step).stall()
    });
    let gate = gate(&upstream, Options::default());
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
async fn a_host_that_never_counts_is_estimated() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|_| {
        let message = json!({ "role": "assistant", "content": "Nothing to look up." });
        let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
        let reply = json!({ "id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice] });
        Script::json(200, reply)
    });
    let gate = gate(&upstream, Options::default());
    for (path, body) in questions(false) {
        let reply: Value = gate.post(path, &body).await.json().await;
        assert_eq!(reply["usage"]["estimated"], true, "{path}: {reply}");
    }
}
