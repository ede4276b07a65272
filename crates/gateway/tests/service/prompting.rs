//! Tool calls for a text-only model in every API: the host sees no tools, the client sees calls.

use serde_json::{Value, json};
use toolgate_prompted::PromptedOptions;
use toolgate_testkit::{Script, ScriptedUpstream};

use crate::text_host::{
    CALL, RESULT, assert_text_only, call_in, gate, omit_the_city, questions, say, streamed_arguments,
    trigger_in, with_result,
};

#[tokio::test]
async fn a_whole_reply_of_text_becomes_a_call_and_its_result_becomes_text() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let answered = String::from_utf8_lossy(&received.body).contains(RESULT);
        say(received, if answered { "Take an umbrella." } else { CALL }, "stop")
    });
    let gate = gate(&upstream, PromptedOptions::default());
    for (path, body) in questions(false) {
        let reply = gate.post(path, &body).await.json().await;
        let (id, name, arguments) = call_in(path, &reply);
        assert_eq!(
            (name.as_str(), arguments),
            ("get_weather", json!({ "city": "Paris", "days": 3 })),
            "{path}"
        );
        let first = upstream.next_request().await;
        assert_text_only(&first);

        let reply = gate.post(path, &with_result(path, body, &id)).await.text().await;
        assert!(reply.contains("Take an umbrella."), "{path}: {reply}");
        let second = upstream.next_request().await;
        assert_text_only(&second);
        assert_eq!(trigger_in(&second), trigger_in(&first), "{path}: the prompt stays cacheable");
    }
}

#[tokio::test]
async fn a_stream_of_text_becomes_a_streamed_call() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| say(received, CALL, "stop"));
    let gate = gate(&upstream, PromptedOptions::default());
    for (path, body) in questions(true) {
        let stream = gate.post(path, &body).await.text().await;
        assert_eq!(streamed_arguments(path, &stream), json!({ "city": "Paris", "days": 3 }), "{path}");
        assert!(!stream.contains("<<CALL_") && !stream.contains("<invoke"), "{path}: {stream}");
        assert!(stream.contains("Let m"), "{path}: {stream}");
        assert_text_only(&upstream.next_request().await);
        if path == "/v1/messages" {
            assert!(stream.contains(r#""output_tokens":9"#), "the host's counts are kept: {stream}");
        }
    }
}

#[tokio::test]
async fn text_and_arguments_are_streamed() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let script = say(received, CALL, "stop");
        let steps: Vec<_> = script.steps().cloned().collect();
        // The end of the call is among the frames held back.
        let (begun, rest) = steps.split_at(steps.len() - 8);
        let held = begun.iter().cloned().fold(Script::sse(), Script::step).gate("rest");
        rest.iter().cloned().fold(held, Script::step)
    });
    let gate = gate(&upstream, PromptedOptions::default());
    let [(path, body), ..] = questions(true);
    let mut answer = gate.post(path, &body).await;
    let before = answer.until("aris").await;
    assert!(before.contains("Let m") && before.contains("get_weather"), "{before}");
    assert!(!before.contains("message_stop"), "{before}");
    upstream.open("rest");
    assert!(answer.text().await.contains("message_stop"));
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_an_error_and_no_finished_call() {
    // T17
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let script = say(received, CALL, "stop");
        let steps: Vec<_> = script.steps().cloned().collect();
        steps[..steps.len() - 6].iter().cloned().fold(Script::sse(), Script::step).cut()
    });
    let gate = gate(&upstream, PromptedOptions::default());
    let [(path, body), ..] = questions(true);
    let stream = gate.post(path, &body).await.text().await;
    assert!(stream.contains("event: error") && !stream.contains("message_stop"), "{stream}");
}

#[tokio::test]
async fn a_host_that_writes_on_after_its_calls_is_dropped() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let script = say(received, &format!("{CALL}\nResult: sunny, as I made up."), "stop");
        let steps: Vec<_> = script.steps().cloned().collect();
        // Sends everything except the finish and the end, then stalls.
        let said = steps[..steps.len() - 3].iter().cloned();
        said.fold(Script::sse(), Script::step).stall()
    });
    let gate = gate(&upstream, PromptedOptions::default());
    let [(path, body), ..] = questions(true);
    let stream = gate.post(path, &body).await.text().await;
    assert!(stream.contains("message_stop") && stream.contains("tool_use"), "{stream}");
    assert!(!stream.contains("made up"), "{stream}");
    upstream.disconnected().await;
}

#[tokio::test]
async fn a_missing_value_is_requested_once() {
    // P26
    let upstream = ScriptedUpstream::start().await;
    omit_the_city(&upstream);
    let gate = gate(&upstream, PromptedOptions::default());
    for stream in [false, true] {
        let [(path, body), ..] = questions(stream);
        let answer = gate.post(path, &body).await.text().await;
        let arguments = if stream {
            streamed_arguments(path, &answer)
        } else {
            call_in(path, &serde_json::from_str(&answer).expect("JSON")).2
        };
        assert_eq!(arguments, json!({ "days": 3, "city": "Paris" }));
    }
    assert_eq!(upstream.requests().len(), 4);
}

#[tokio::test]
async fn only_one_value_is_requested_per_turn() {
    // P26
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let is_side_request =
            String::from_utf8_lossy(&received.body).contains("is missing the required parameter");
        let incomplete = "<invoke name=\"get_weather\">\n<parameter name=\"days\">3</parameter>\n</invoke>\n";
        if is_side_request {
            say(received, "Paris", "stop")
        } else {
            say(received, &format!("§\n{incomplete}{incomplete}"), "stop")
        }
    });
    let gate = gate(&upstream, PromptedOptions::default());
    let [(path, body), ..] = questions(false);
    let reply = gate.post(path, &body).await.json().await;
    let inputs: Vec<&Value> =
        reply["content"].as_array().expect("blocks").iter().map(|call| &call["input"]).collect();
    assert_eq!(inputs, [&json!({ "days": 3, "city": "Paris" }), &json!({ "days": 3 })]);
    assert_eq!(upstream.requests().len(), 2);
}

#[tokio::test]
async fn a_truncated_call_is_continued() {
    // P28
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let (start, rest) = CALL.split_at(CALL.find("ris<").expect("a place to cut"));
        if String::from_utf8_lossy(&received.body).contains("Your answer was cut off") {
            say(received, rest, "stop")
        } else {
            say(received, start, "length")
        }
    });
    let gate = gate(&upstream, PromptedOptions::default());
    let [(path, body), ..] = questions(true);
    let stream = gate.post(path, &body).await.text().await;
    assert_eq!(streamed_arguments(path, &stream), json!({ "city": "Paris", "days": 3 }));
    assert!(stream.contains("\"tool_use\""), "{stream}");
    assert_eq!(upstream.requests().len(), 2);
}

#[tokio::test]
async fn a_continuation_that_fails_leaves_the_reply_as_it_is() {
    // P28
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        if String::from_utf8_lossy(&received.body).contains("Your answer was cut off") {
            return Script::json(
                400,
                json!({ "error": { "message": "no", "type": "invalid_request_error" } }),
            );
        }
        say(received, &CALL[..CALL.find("ris<").expect("a place to cut")], "length")
    });
    let gate = gate(&upstream, PromptedOptions::default());
    let [(path, body), ..] = questions(true);
    let stream = gate.post(path, &body).await.text().await;
    assert!(stream.contains("\"max_tokens\"") && stream.contains("message_stop"), "{stream}");
}

#[tokio::test]
async fn a_model_that_skips_a_required_call_is_nudged_once() {
    // P32
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let is_nudge = String::from_utf8_lossy(&received.body).contains("You did not call a function");
        say(received, if is_nudge { CALL } else { "I would rather not." }, "stop")
    });
    let gate = gate(&upstream, PromptedOptions::default());
    let [(path, mut body), ..] = questions(false);
    body["tool_choice"] = json!({ "type": "any" });
    let reply = gate.post(path, &body).await.json().await;
    assert_eq!(call_in(path, &reply).1, "get_weather");
    assert_eq!(upstream.requests().len(), 2);
}

#[tokio::test]
async fn a_call_to_a_tool_that_was_not_offered_reaches_the_client_with_the_call_before_it() {
    let both = format!("{CALL}<invoke name=\"fly\">\n<parameter name=\"to\">Rome</parameter>\n</invoke>");
    let upstream = ScriptedUpstream::start().await;
    upstream.always(move |received| say(received, &both, "stop"));
    let gate = gate(&upstream, PromptedOptions::default());
    for (path, body) in questions(false) {
        let reply = gate.post(path, &body).await.json().await;
        assert_eq!(call_in(path, &reply).2, json!({ "city": "Paris", "days": 3 }), "{path}: {reply}");
        let reply = reply.to_string();
        assert!(reply.contains("\"fly\"") && reply.contains("Rome"), "{path}: {reply}");
    }
    assert_eq!(upstream.requests().len(), 3, "no model is asked again");
}

#[tokio::test]
async fn a_request_without_tools_is_relayed_byte_for_byte() {
    const REPLY: &str = r#"{"id":"c1", "object":"chat.completion","created":1,"model":"m","odd":1.50,"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}"#;
    let upstream = ScriptedUpstream::start().await;
    upstream.accept_anything();
    upstream.on(Script::json(200, REPLY));
    let gate = gate(&upstream, PromptedOptions::default());
    let body = json!({ "model": "text", "messages": [{ "role": "user", "content": "hello" }], "odd": 1.50 });
    assert_eq!(gate.post("/v1/chat/completions", &body).await.text().await, REPLY);
    assert_eq!(upstream.next_request().await.body, body.to_string());
}

#[tokio::test]
async fn an_error_of_the_host_is_forwarded() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|_| {
        Script::json(400, json!({ "error": { "message": "too long", "type": "invalid_request_error" } }))
    });
    let gate = gate(&upstream, PromptedOptions::default());
    let [(path, body), ..] = questions(true);
    let answer = gate.post(path, &body).await;
    assert_eq!(answer.status(), 400);
    assert_eq!(answer.json().await["error"]["message"], "too long");
}
