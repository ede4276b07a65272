//! People watch turns: every turn has one start and one end, whatever happens to it, and nothing slows it down.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use serde_json::{Value, json};
use toolgate_gateway::approval::{Rule, Rules};
use toolgate_gateway::{Clock, SystemClock};
use toolgate_model::CallId;
use toolgate_model::observed::{Observation, ObservedEvent, SessionName, Subject, TurnEnd, TurnEndKind};
use toolgate_state::{Bus, Joined, MAX_BUS_EVENTS, Subscription, UnixMillis};
use toolgate_testkit::{Script, ScriptedUpstream};

use crate::gate::{Gate, Surroundings, ask, ask_messages, backends, config, console_token};
use crate::replies;

fn subscribe(bus: &Arc<Bus>) -> Subscription {
    match bus.subscribe(None).expect("a place") {
        Joined::Continued(subscription) | Joined::Reset(subscription) => subscription,
    }
}

/// The events up to and including the next end of a turn.
async fn until_end(subscription: &mut Subscription) -> Vec<Arc<ObservedEvent>> {
    let mut events: Vec<Arc<ObservedEvent>> = Vec::new();
    while !events.iter().any(|event| matches!(event.observation, Observation::TurnEnded(_))) {
        events.extend(subscription.next().await.expect("the subscriber keeps up"));
    }
    events
}

fn kinds(events: &[Arc<ObservedEvent>]) -> Vec<&'static str> {
    events.iter().map(|event| event.observation.kind()).collect()
}

fn text(events: &[Arc<ObservedEvent>]) -> String {
    let text_of = |event: &Arc<ObservedEvent>| {
        let Observation::TextDelta { text, .. } = &event.observation else { return None };
        Some(text.clone())
    };
    events.iter().filter_map(text_of).collect()
}

#[track_caller]
fn end(events: &[Arc<ObservedEvent>]) -> TurnEnd {
    let ends = events.iter().filter_map(|event| {
        let Observation::TurnEnded(end) = &event.observation else { return None };
        Some((**end).clone())
    });
    let ends: Vec<TurnEnd> = ends.collect();
    assert_eq!(ends.len(), 1, "{events:?}");
    ends[0].clone()
}

/// Every turn starts once, then ends once, and has all its other events between.
#[track_caller]
fn check_grammar(events: &[Arc<ObservedEvent>]) {
    let mut turns: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for event in events {
        let turn = event.subject.turn.expect("a turn").0.to_string();
        turns.entry(turn).or_default().push(event.observation.kind());
    }
    for (turn, mut kinds) in turns {
        kinds.retain(|kind| *kind != "session");
        let count = |kind: &str| kinds.iter().filter(|own| **own == kind).count();
        assert_eq!((count("turn_started"), count("turn_ended")), (1, 1), "{turn}: {kinds:?}");
        assert_eq!(
            (kinds.first(), kinds.last()),
            (Some(&"turn_started"), Some(&"turn_ended")),
            "{turn}: {kinds:?}"
        );
    }
}

#[tokio::test]
async fn every_way_to_answer_has_one_start_the_text_and_one_end() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|request| {
        if request.json()["stream"] == true { replies::stream() } else { Script::json(200, replies::whole()) }
    });
    let gate = Gate::before(&upstream);
    let mut watching = subscribe(&gate.bus);
    // Relayed and translated, whole and streamed.
    for stream in [false, true] {
        for (path, body) in ask("claude", stream) {
            let answer = gate.post(path, &body).await;
            assert_eq!(answer.status(), 200);
            answer.text().await;
            let events = until_end(&mut watching).await;
            check_grammar(&events);
            assert_eq!(text(&events), "hi there", "{path} {stream}");
            let end = end(&events);
            assert_eq!((end.outcome, end.status), (TurnEndKind::Finished, 200));
            assert_eq!(end.stop_reason.as_deref(), Some("end_turn"), "{path} {stream}");
            let usage = end.usage.expect("usage");
            assert_eq!((usage.input, usage.output), (7, 3), "{path} {stream}");
            assert_eq!(end.upstream.as_deref(), Some("claude"));
        }
    }
}

#[tokio::test]
async fn a_relayed_turn_that_nobody_watches_has_a_title_and_its_usage() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(replies::stream());
    let gate = Gate::before(&upstream);
    gate.post("/v1/messages", &ask_messages("claude", true)).await.text().await;
    // The end is published after the last byte.
    while gate.bus.published() < 3 {
        tokio::task::yield_now().await;
    }
    let sessions = gate.bus.snapshot().sessions;
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].description.title.as_deref(), Some("hello"));
    assert_eq!(&*sessions[0].description.caller, "local");
    assert_eq!(sessions[0].usage.map(|usage| usage.output), Some(3));
    assert_eq!(gate.bus.published(), 3, "session, start and end");
}

#[tokio::test]
async fn one_conversation_is_one_session_in_every_dialect() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|_| Script::json(200, replies::whole()));
    let gate = Gate::before(&upstream);
    let mut watching = subscribe(&gate.bus);
    let mut sessions = Vec::new();
    for (path, body) in ask("claude", false) {
        gate.post(path, &body).await.text().await;
        sessions.push(until_end(&mut watching).await[0].subject.session.clone());
    }
    let longer = json!({ "model": "claude", "max_tokens": 5, "messages": [
        { "role": "user", "content": "hello" },
        { "role": "assistant", "content": "hi there" },
        { "role": "user", "content": "more" },
    ] });
    gate.post("/v1/messages", &longer).await.text().await;
    let events = until_end(&mut watching).await;
    assert_eq!(kinds(&events)[0], "turn_started", "a known session is not described again");
    sessions.push(events[0].subject.session.clone());
    assert!(sessions.iter().all(|session| *session == sessions[0]), "{sessions:?}");
}

#[tokio::test]
async fn a_call_and_its_result_are_watched() {
    // C6
    let upstream = ScriptedUpstream::start().await;
    let call = json!({ "type": "tool_use", "id": "toolu_1", "name": "get_time", "input": {} });
    let frames = [
        json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message", "role": "assistant",
            "model": "m", "content": [], "stop_reason": null, "usage": { "input_tokens": 7, "output_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": call }),
        json!({ "type": "content_block_delta", "index": 0,
            "delta": { "type": "input_json_delta", "partial_json": "{\"zone\":\"UTC\"}" } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 3 } }),
        json!({ "type": "message_stop" }),
    ];
    upstream.on(frames
        .iter()
        .fold(Script::sse(), |script, frame| script.frame(frame["type"].as_str().expect("a type"), frame)));
    upstream.on(replies::stream());
    let gate = Gate::before(&upstream);
    let mut watching = subscribe(&gate.bus);
    let tools = json!([{ "type": "function", "function": { "name": "get_time", "parameters": { "type": "object" } } }]);
    let first = json!({ "model": "claude", "stream": true, "tools": tools,
        "messages": [{ "role": "user", "content": "what time is it?" }] });
    gate.post("/v1/chat/completions", &first).await.text().await;
    let events = until_end(&mut watching).await;
    let mut shown = kinds(&events);
    shown.retain(|kind| !matches!(*kind, "usage" | "losses"));
    assert_eq!(
        shown,
        ["session", "turn_started", "call_started", "input_delta", "input_complete", "turn_ended"]
    );
    let started = events.iter().find(|event| event.observation.kind() == "call_started").expect("a call");
    let written = serde_json::to_value(&**started).expect("JSON");
    assert_eq!((&written["tool"], &written["runs_in"]), (&json!("get_time"), &json!("client")));
    assert_eq!(end(&events).stop_reason.as_deref(), Some("tool_use"));

    let calls = json!([{ "id": "toolu_1", "type": "function", "function": { "name": "get_time", "arguments": "{\"zone\":\"UTC\"}" } }]);
    let second = json!({ "model": "claude", "stream": true, "tools": tools, "messages": [
        { "role": "user", "content": "what time is it?" },
        { "role": "assistant", "content": null, "tool_calls": calls },
        { "role": "tool", "tool_call_id": "toolu_1", "content": "12:00" },
    ] });
    gate.post("/v1/chat/completions", &second).await.text().await;
    let events = until_end(&mut watching).await;
    assert_eq!(kinds(&events)[..2], ["turn_started", "result"]);
    assert_eq!(serde_json::to_value(&*events[1]).expect("JSON")["text"], "12:00");
    check_grammar(&events);
}

#[tokio::test]
async fn a_failed_turn_has_one_end() {
    let cases = [
        ("an error status", Script::json(400, json!({ "error": { "message": "no" } })), TurnEndKind::Failed),
        ("a cut stream", replies::head(Script::sse()).cut(), TurnEndKind::Failed),
        ("not a reply", Script::json(200, "nothing"), TurnEndKind::Failed),
    ];
    for (name, script, outcome) in cases {
        let upstream = ScriptedUpstream::start().await;
        upstream.on(script);
        let gate = Gate::before(&upstream);
        let mut watching = subscribe(&gate.bus);
        let [_, (path, body), _] = ask("claude", true);
        gate.post(path, &body).await.text().await;
        let events = until_end(&mut watching).await;
        check_grammar(&events);
        let end = end(&events);
        assert_eq!(end.outcome, outcome, "{name}");
        assert!(end.error.is_some(), "{name}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_interrupts_its_turn() {
    for model in ["claude", "gpt"] {
        let upstream = ScriptedUpstream::start().await;
        let host = crate::hosts::HOSTS.iter().find(|host| host.model == model).expect("a host");
        upstream.on(host.begun().stall());
        let gate = Gate::before(&upstream);
        let mut watching = subscribe(&gate.bus);
        let mut answer = gate.post("/v1/messages", &ask_messages(model, true)).await;
        answer.until("hi there").await;
        drop(answer);
        let events = until_end(&mut watching).await;
        check_grammar(&events);
        assert_eq!((end(&events).outcome, end(&events).status), (TurnEndKind::Interrupted, 499));
    }
}

#[tokio::test]
async fn a_stopping_gateway_ends_its_turns() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(replies::head(Script::sse()).stall());
    let gate = Gate::start(&config(), backends(&upstream));
    let mut watching = subscribe(&gate.bus);
    let mut answer = gate.post("/v1/messages", &ask_messages("claude", true)).await;
    answer.until("hi there").await;
    let (stopped, _) = tokio::join!(gate.running.stop(), answer.text());
    stopped.expect("it stops in order");
    let events = until_end(&mut watching).await;
    check_grammar(&events);
    assert_eq!((end(&events).outcome, end(&events).status), (TurnEndKind::Failed, 503));
}

/// Panics once when armed.
struct FaultyClock(AtomicBool);

impl Clock for FaultyClock {
    fn now(&self) -> UnixMillis {
        assert!(!self.0.swap(false, Ordering::SeqCst), "the test wants a panic");
        SystemClock.now()
    }
}

#[tokio::test]
async fn a_panic_ends_its_turn() {
    let upstream = ScriptedUpstream::start().await;
    let more =
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "!" } });
    let first = replies::head(Script::sse()).gate("rest");
    upstream.on(replies::tail(first.frame("content_block_delta", more)));
    let clock = Arc::new(FaultyClock(AtomicBool::new(false)));
    let surroundings = Surroundings { clock: Arc::clone(&clock) as _, ..Surroundings::default() };
    let gate = Gate::start_in(&config(), backends(&upstream), surroundings);
    let mut watching = subscribe(&gate.bus);
    let [_, (path, body), _] = ask("claude", true);
    let mut answer = gate.post(path, &body).await;
    answer.until("hi there").await;
    clock.0.store(true, Ordering::SeqCst);
    upstream.open("rest");
    let events = until_end(&mut watching).await;
    check_grammar(&events);
    assert_eq!((end(&events).outcome, end(&events).status), (TurnEndKind::Failed, 500));
}

#[tokio::test]
async fn a_refused_request_is_no_turn() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    for body in ["{", r#"{"model":"unknown","messages":[]}"#] {
        let answer =
            gate.send(Method::POST, "/v1/messages", &[("content-type", "application/json")], body).await;
        assert!(answer.status() >= 400);
        answer.text().await;
    }
    assert_eq!(gate.bus.published(), 0);
}

#[tokio::test]
async fn a_subscriber_that_never_reads_does_not_slow_a_turn() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(replies::stream());
    let gate = Gate::before(&upstream);
    let mut stuck = subscribe(&gate.bus);
    let session = Subject::session(SessionName::new("other"));
    for number in 0..=MAX_BUS_EVENTS {
        let call = CallId::new(number.to_string());
        gate.bus.publish(UnixMillis(0), session.clone(), Observation::InputComplete { call });
    }
    let [_, (path, body), _] = ask("claude", true);
    assert!(gate.post(path, &body).await.text().await.contains("[DONE]"));
    assert!(stuck.next().await.is_none(), "it has fallen behind and is closed");
}

/// One event of a stream.
#[derive(Debug)]
struct Frame {
    id: String,
    event: String,
    data: Value,
}

fn read_frames(text: &str) -> Vec<Frame> {
    let frames = text.split("\n\n").filter(|frame| frame.contains("data: "));
    let field = |frame: &str, name: &str| {
        let line = frame.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_default().to_owned()
    };
    let read = |frame: &str| Frame {
        id: field(frame, "id"),
        event: field(frame, "event"),
        data: serde_json::from_str(&field(frame, "data")).expect("JSON"),
    };
    frames.map(read).collect()
}

#[tokio::test]
async fn the_stream_says_hello_and_resumes_after_the_last_event() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|_| replies::stream());
    let gate = Gate::before(&upstream);
    let mut first = gate.get_console("/console/api/events", &[]).await;
    assert_eq!(first.status(), 200);
    assert_eq!(first.header("content-type"), "text/event-stream; charset=utf-8");
    assert_eq!((first.header("cache-control"), first.header("x-accel-buffering")), ("no-store", "no"));
    let mut seen = first.until("\n\n").await;
    let hello = read_frames(&seen).pop().expect("a frame");
    assert_eq!((hello.event.as_str(), &hello.data["seq"]), ("hello", &json!(0)));
    gate.post("/v1/messages", &ask_messages("claude", true)).await.text().await;
    seen.push_str(&first.until("turn_ended").await);
    let events = read_frames(&seen);
    let delta = events.iter().find(|frame| frame.event == "text_delta").expect("a delta");
    assert_eq!((&delta.data["text"], &delta.data["type"]), (&json!("hi there"), &json!("text_delta")));
    let position = format!("{}:{}", hello.data["epoch"].as_str().expect("an epoch"), delta.data["seq"]);
    assert_eq!(delta.id, position);
    drop(first);

    let headers = [("last-event-id", position.as_str())];
    let mut resumed = gate.get_console("/console/api/events", &headers).await;
    let rest = read_frames(&resumed.until("\"turn_ended\"").await);
    let expected: Vec<&str> = events
        .iter()
        .skip_while(|frame| frame.id != delta.id)
        .skip(1)
        .map(|frame| frame.id.as_str())
        .collect();
    let got: Vec<&str> = rest.iter().skip(1).map(|frame| frame.id.as_str()).collect();
    assert!(!got.is_empty() && got.starts_with(&expected), "{got:?} {expected:?}");
}

#[tokio::test]
async fn an_unknown_position_is_answered_with_a_reset() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    for position in ["0000000000000001:7", "nonsense", ""] {
        let headers = [("last-event-id", position)];
        let mut stream = gate.get_console("/console/api/events", &headers).await;
        let frames = read_frames(&stream.until("reset").await);
        assert_eq!(frames[0].event, "hello", "{position}");
    }
}

#[tokio::test]
async fn a_snapshot_has_the_sessions_and_what_is_open() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(replies::head(Script::sse()).stall());
    let gate = Gate::before(&upstream);
    // What is being written is kept only while somebody watches.
    let mut watching = gate.get_console("/console/api/events", &[]).await;
    watching.until("hello").await;
    let [_, (path, body), _] = ask("claude", true);
    let mut answer = gate.post(path, &body).await;
    answer.until("hi there").await;
    let response = gate.get_console("/console/api/snapshot", &[]).await;
    assert_eq!(response.header("cache-control"), "no-store");
    let snapshot = response.json().await;
    assert_eq!(snapshot["sessions"][0]["title"], "hello");
    assert_eq!(snapshot["sessions"][0]["state"], "running");
    assert_eq!(snapshot["pending"], json!([]));
    let open = snapshot["open"].as_array().expect("events");
    assert!(
        open.iter().any(|event| event["type"] == "text_delta" && event["text"] == "hi there"),
        "{snapshot}"
    );
    assert_eq!(open.last().expect("events")["seq"], snapshot["seq"]);
}

#[tokio::test]
async fn a_stopping_gateway_closes_the_stream() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let mut stream = gate.get_console("/console/api/events", &[]).await;
    stream.until("hello").await;
    let (stopped, rest) = tokio::join!(gate.running.stop(), stream.text());
    stopped.expect("it stops in order");
    assert!(!rest.contains("event:"), "{rest}");
}

#[tokio::test]
async fn watching_is_counted() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let mut stream = gate.get_console("/console/api/events", &[]).await;
    stream.until("hello").await;
    let metrics = gate.get("/metrics").await.text().await;
    for line in [
        "toolgate_event_subscribers 1",
        "toolgate_event_subscribers_dropped_total 0",
        "toolgate_events_published_total 0",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

#[tokio::test]
async fn a_question_of_an_agent_elsewhere_is_watched_and_in_the_snapshot() {
    let upstream = ScriptedUpstream::start().await;
    let mut config = config();
    config.approvals.rules = Rules::new(vec![Rule::parse("ask *").expect("a rule")]);
    let gate = Gate::start(&config, backends(&upstream));
    let mut watching = subscribe(&gate.bus);
    let hook = json!({
        "hook_event_name": "PermissionRequest", "session_id": "elsewhere", "cwd": "/w", "permission_mode": "default",
        "tool_name": "Bash", "tool_input": { "command": "touch x" },
    });
    let (answer, ()) = tokio::join!(gate.post("/hooks/permission-request", &hook), async {
        let mut events = Vec::new();
        while !kinds(&events).contains(&"asked") {
            events.extend(watching.next().await.expect("the subscriber keeps up"));
        }
        assert_eq!(kinds(&events), ["session", "asked"]);
        let asked = serde_json::to_value(&*events[1]).expect("JSON");
        let snapshot = gate.get_console("/console/api/snapshot", &[]).await.json().await;
        let session = &snapshot["sessions"][0];
        assert_eq!((&session["session"], &session["backend"]), (&json!("elsewhere"), &json!("external")));
        assert_eq!(
            (&session["state"], &session["questions"]),
            (&json!("waiting"), &json!([asked["question"]]))
        );
        let pending = &snapshot["pending"][0];
        assert_eq!((&pending["id"], &pending["tool"]), (&asked["question"], &json!("Bash")));
        let path = format!("/console/api/approvals/{}", asked["question"].as_str().expect("an id"));
        let token = console_token();
        let headers = [("authorization", token.as_str()), ("content-type", "application/json")];
        let decided = gate.send(Method::POST, &path, &headers, r#"{"decision":"deny","message":"no"}"#).await;
        assert_eq!(decided.status(), 200);
    });
    assert_eq!(answer.status(), 200);
    let events = watching.next().await.expect("the subscriber keeps up");
    assert_eq!(serde_json::to_value(&*events[0]).expect("JSON")["outcome"], "denied");
}
