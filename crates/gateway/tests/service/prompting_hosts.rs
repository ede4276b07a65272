//! Tool calls for text-only models at hosts of every dialect, from every API: the calls are always the same.

use serde_json::{Value, json};
use toolgate_prompted::PromptedOptions;
use toolgate_testkit::{Line, Pieces, Received, Script, ScriptedUpstream, Step, say};

use crate::gate::Gate;
use crate::text_host::{
    RESULT, call_in, gate_before, questions, streamed_arguments, trigger_in, with_result,
};

const HOSTS: [&str; 3] = ["anthropic-messages", "openai-chat", "openai-responses"];

/// A sentence and a call; U+E000 stands for the trigger.
const CALLS: &str = "Let me look.\n\u{E000}\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Paris</parameter>\n\
                     <parameter name=\"days\">3</parameter>\n</invoke>\n";

/// A single red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

fn arguments() -> Value {
    json!({ "city": "Paris", "days": 3 })
}

fn line(text: &str) -> Line {
    Line::new(text, Pieces::Of(4))
}

/// Asserts that a host received no tools, calls or results except as text.
fn assert_text_only(host: &str, received: &Received) {
    let body = received.json();
    assert!(body.get("tools").is_none() && body.get("tool_choice").is_none(), "{host}: {body}");
    let said = body.to_string();
    for native in
        ["\"tool_use\"", "\"tool_result\"", "\"tool_calls\"", "\"function_call", "\"role\":\"tool\""]
    {
        assert!(!said.contains(native), "{host}: {native} in {said}");
    }
}

/// Runs a check with each host and each API.
async fn at_each_host(
    stream: bool,
    options: &PromptedOptions,
    answer: impl Fn(&Received) -> Script + Clone + Send + Sync + 'static,
    check: impl AsyncFn(&ScriptedUpstream, &Gate, &str, &str, Value),
) {
    for host in HOSTS {
        let upstream = ScriptedUpstream::start().await;
        upstream.always(answer.clone());
        let gate = gate_before(&upstream, host, options.clone());
        for (path, body) in questions(stream) {
            check(&upstream, &gate, host, path, body).await;
        }
    }
}

/// A host that calls first, and sends text once it has the result.
fn calls_then_text(received: &Received) -> Script {
    let answered = String::from_utf8_lossy(&received.body).contains(RESULT);
    say(received, &line(if answered { "Take an umbrella." } else { CALLS }))
}

#[tokio::test]
async fn a_whole_reply_and_its_result_work_with_every_host() {
    at_each_host(
        false,
        &PromptedOptions::default(),
        calls_then_text,
        async |upstream, gate, host, path, body| {
            let reply = gate.post(path, &body).await.json().await;
            let (id, name, input) = call_in(path, &reply);
            assert_eq!((name.as_str(), input), ("get_weather", arguments()), "{host} {path}");
            assert!(reply.to_string().contains("Let me look."), "{host} {path}: {reply}");
            let first = upstream.next_request().await;
            assert_text_only(host, &first);

            let reply = gate.post(path, &with_result(path, body, &id)).await.text().await;
            assert!(reply.contains("Take an umbrella."), "{host} {path}: {reply}");
            let second = upstream.next_request().await;
            assert_text_only(host, &second);
            assert_eq!(trigger_in(&second), trigger_in(&first), "{host} {path}");
            let said = String::from_utf8_lossy(&second.body).into_owned();
            // The history contains the call as the model wrote it, and the result in its own tag.
            assert!(said.contains(r#"<parameter name=\"days\">3</parameter>"#), "{host} {path}: {said}");
            assert!(said.contains("<tool_result_"), "{host} {path}: {said}");
        },
    )
    .await;
}

#[tokio::test]
async fn a_stream_of_every_host_becomes_a_streamed_call() {
    at_each_host(
        true,
        &PromptedOptions::default(),
        calls_then_text,
        async |upstream, gate, host, path, body| {
            let stream = gate.post(path, &body).await.text().await;
            assert_eq!(streamed_arguments(path, &stream), arguments(), "{host} {path}");
            assert!(!stream.contains("<<CALL_") && !stream.contains("<invoke"), "{host} {path}: {stream}");
            assert!(stream.contains("Let "), "{host} {path}: {stream}");
            assert_text_only(host, &upstream.next_request().await);
        },
    )
    .await;
}

#[tokio::test]
async fn every_host_is_dropped_once_its_calls_are_complete() {
    // P27
    let answer = |received: &Received| {
        let script = say(received, &line(&format!("{CALLS}\nThe result is: sunny, as I made up.")));
        let is_end = |step: &Step| match step {
            Step::Send(bytes) => {
                let said = String::from_utf8_lossy(bytes);
                ["block_stop", "\"finish_reason\":\"stop\"", "text.done"].iter().any(|end| said.contains(end))
            }
            Step::Gate(_) | Step::Stall | Step::Cut => true,
        };
        // The stream never ends, so the gateway must stop reading.
        let said = script.steps().take_while(|step| !is_end(step)).cloned();
        said.fold(Script::sse(), Script::step).stall()
    };
    at_each_host(true, &PromptedOptions::default(), answer, async |upstream, gate, host, path, body| {
        let stream = gate.post(path, &body).await.text().await;
        assert_eq!(streamed_arguments(path, &stream), arguments(), "{host} {path}");
        assert!(!stream.contains("made up"), "{host} {path}: {stream}");
        upstream.disconnected().await;
    })
    .await;
}

/// The call, cut inside a value.
fn cut_calls() -> (&'static str, &'static str) {
    CALLS.split_at(CALLS.find("ris<").expect("a place to cut"))
}

/// Whether the reply says that the token limit was reached.
fn reports_token_limit(path: &str, reply: &str) -> bool {
    let word = match path {
        "/v1/messages" => r#""stop_reason":"max_tokens""#,
        "/v1/chat/completions" => r#""finish_reason":"length""#,
        _ => r#""status":"incomplete""#,
    };
    reply.contains(word)
}

#[tokio::test]
async fn a_truncated_call_is_continued_at_every_host() {
    // P28
    let answer = |received: &Received| {
        let (start, rest) = cut_calls();
        let goes_on = String::from_utf8_lossy(&received.body).contains("Your answer was cut off");
        say(received, &if goes_on { line(rest) } else { line(start).out_of_tokens() })
    };
    for stream in [false, true] {
        at_each_host(
            stream,
            &PromptedOptions::default(),
            answer,
            async |upstream, gate, host, path, body| {
                let reply = gate.post(path, &body).await.text().await;
                let input = if stream {
                    streamed_arguments(path, &reply)
                } else {
                    call_in(path, &serde_json::from_str(&reply).expect("JSON")).2
                };
                assert_eq!(input, arguments(), "{host} {path}");
                assert!(!reports_token_limit(path, &reply), "{host} {path}: {reply}");
                assert_text_only(host, &upstream.next_request().await);
                assert_text_only(host, &upstream.next_request().await);
            },
        )
        .await;
    }
}

#[tokio::test]
async fn a_call_that_stays_truncated_is_not_finished() {
    // P28
    let options = PromptedOptions { continuations: 0, ..PromptedOptions::default() };
    let answer = |received: &Received| say(received, &line(cut_calls().0).out_of_tokens());
    for stream in [false, true] {
        at_each_host(stream, &options, answer, async |_, gate, host, path, body| {
            let reply = gate.post(path, &body).await.text().await;
            assert!(reports_token_limit(path, &reply), "{host} {path}: {reply}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_inside_a_call_is_an_error() {
    // T17
    let answer = |received: &Received| {
        let script = say(received, &line(CALLS));
        let count = script.steps().count();
        let said: Vec<Step> = script.steps().take(count - 6).cloned().collect();
        said.into_iter().fold(Script::sse(), Script::step).cut()
    };
    at_each_host(true, &PromptedOptions::default(), answer, async |_, gate, host, path, body| {
        let stream = gate.post(path, &body).await.text().await;
        let ended = ["message_stop", "\"finish_reason\":\"tool_calls\"", "response.completed"];
        assert!(
            stream.contains("error") && !ended.iter().any(|end| stream.contains(end)),
            "{host} {path}: {stream}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_history_with_pictures_and_a_failed_call_reaches_every_host() {
    let picture =
        json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": PNG } });
    let call = |id: &str, city: &str| json!({ "type": "tool_use", "id": id, "name": "get_weather", "input": { "city": city } });
    let history = json!([
        { "role": "user", "content": [{ "type": "text", "text": "Where is this?" }, picture] },
        { "role": "assistant", "content": [{ "type": "text", "text": "Two tries." }, call("a", "Paris"), call("b", "Tokyo")] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "a", "content": [{ "type": "text", "text": RESULT }, picture] },
            { "type": "tool_result", "tool_use_id": "b", "is_error": true, "content": "no such station" },
            { "type": "text", "text": "And now?" },
        ] },
    ]);
    at_each_host(
        false,
        &PromptedOptions::default(),
        calls_then_text,
        async |upstream, gate, host, path, mut body| {
            if path != "/v1/messages" {
                return;
            }
            body["messages"] = history.clone();
            let reply = gate.post(path, &body).await.text().await;
            assert!(reply.contains("Take an umbrella."), "{host}: {reply}");
            let received = upstream.next_request().await;
            assert_text_only(host, &received);
            let said = String::from_utf8_lossy(&received.body).into_owned();
            assert_eq!(said.matches(PNG).count(), 2, "{host}: images are lost: {said}");
            let places: Vec<usize> =
                ["Where is this?", "Two tries.", ">Paris<", ">Tokyo<", RESULT, "no such station", "And now?"]
                    .iter()
                    .map(|word| said.find(word).unwrap_or_else(|| panic!("{host}: no `{word}` in {said}")))
                    .collect();
            assert!(places.is_sorted(), "{host}: {places:?} in {said}");
            assert!(said.contains(r#"id=\"b\" error=\"true\""#), "{host}: {said}");
            assert_eq!(said.matches("<invoke name=\\\"get_weather\\\">").count(), 2, "{host}: {said}");
        },
    )
    .await;
}
