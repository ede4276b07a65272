//! People watch what an agent does, also what its client never sees (C6).

use std::path::Path;
use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};
use toolgate_backend::config::Builtins;
use toolgate_gateway::approval::{ApprovalConfig, Rule, Rules};
use toolgate_model::observed::ObservedEvent;
use toolgate_state::{Joined, Subscription};

use crate::client::{Api, Client, Delivery};
use crate::gate::{Gate, console_token};
use crate::harness::{Block, Harness, message, programs, start_message};

fn subscribe(gate: &Gate) -> Subscription {
    match gate.bus.subscribe(None).expect("a place") {
        Joined::Continued(subscription) | Joined::Reset(subscription) => subscription,
    }
}

/// The events up to and including the next end of a turn, as JSON.
async fn until_end(subscription: &mut Subscription) -> Vec<Value> {
    until(subscription, |event| event["type"] == "turn_ended").await
}

async fn until(subscription: &mut Subscription, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    while !events.iter().any(&is_last) {
        let next = subscription.next().await.expect("the subscriber keeps up");
        let written = |event: &Arc<ObservedEvent>| serde_json::to_value(&**event).expect("JSON");
        events.extend(next.iter().map(written));
    }
    events
}

/// Allows the next question, and returns the events up to the end of the turn.
async fn allow_and_watch(gate: &Gate, subscription: &mut Subscription) -> Vec<Value> {
    let mut events = until(subscription, |event| event["type"] == "asked").await;
    let asked = events.iter().find(|event| event["type"] == "asked").expect("a question");
    let path = format!("/console/api/approvals/{}", asked["question"].as_str().expect("an id"));
    let token = console_token();
    let headers = [("authorization", token.as_str()), ("content-type", "application/json")];
    let answer = gate.send(Method::POST, &path, &headers, r#"{"decision":"allow"}"#).await;
    assert_eq!(answer.status(), 200);
    events.extend(until_end(subscription).await);
    events
}

/// A harness that asks about `Bash` and allows everything else.
async fn asking(program: &Path, tools: &[&str]) -> Harness {
    let rules = ["allow *", "ask Bash"].map(|rule| Rule::parse(rule).expect("a rule"));
    Harness::set(program, |config| {
        config.agent.builtins = Builtins::Only(tools.iter().map(|tool| (*tool).to_owned()).collect());
        config.config.approvals =
            ApprovalConfig { rules: Rules::new(rules.to_vec()), ..ApprovalConfig::default() };
    })
    .await
}

/// What people see of a call that a person allowed.
const ASKED_CALL: [&str; 7] =
    ["call_started", "input_delta", "input_complete", "asked", "decided", "running", "result"];

/// The types of the events about a call, in order, without repetitions.
fn kinds_of_call<'a>(events: &'a [Value], call: &str) -> Vec<&'a str> {
    let own = events.iter().filter(|event| event["call"] == call);
    let mut kinds: Vec<&str> = own.map(|event| event["type"].as_str().expect("a type")).collect();
    kinds.dedup();
    kinds
}

fn event_of<'a>(events: &'a [Value], call: &str, kind: &str) -> &'a Value {
    let found = events.iter().find(|event| event["call"] == call && event["type"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} of {call} in {events:#?}"))
}

#[tokio::test]
async fn a_builtin_call_is_watched_from_its_start_to_its_result() {
    for program in programs() {
        let harness = asking(&program, &["Bash"]).await;
        let mut watching = subscribe(&harness.gate);
        let mut client = Client::new(Api::Chat, Delivery::Streamed);
        let input = json!({ "command": "mkdir -v made-by-bash", "description": "d" });
        harness.queue(message(&[Block::Text("First."), Block::Call("toolu_b", "Bash", input.clone())]));
        harness.queue(message(&[Block::Text("Done.")]));
        let said = client.say(&harness.gate, "Say something\nplease");
        let (reply, events) = tokio::join!(said, allow_and_watch(&harness.gate, &mut watching));
        assert_eq!(reply.calls.len(), 0, "the client does not see the call");

        assert_eq!((&events[0]["type"], &events[1]["type"]), (&json!("session"), &json!("turn_started")));
        assert_eq!((&events[0]["title"], &events[0]["backend"]), (&json!("Say something"), &json!("agent")));
        assert!(events.iter().all(|event| event["session"] == reply.session.as_str()), "{events:#?}");
        assert_eq!(kinds_of_call(&events, "toolu_b"), ASKED_CALL);
        let decided = event_of(&events, "toolu_b", "decided");
        assert_eq!(decided["outcome"], "allowed");
        assert_eq!(decided["question"], event_of(&events, "toolu_b", "asked")["question"]);
        let started = event_of(&events, "toolu_b", "call_started");
        assert_eq!((&started["tool"], &started["runs_in"]), (&json!("Bash"), &json!("agent")));
        let written =
            event_of(&events, "toolu_b", "input_delta")["text"].as_str().expect("a text").to_owned();
        assert_eq!(serde_json::from_str::<Value>(&written).expect("JSON"), input);
        let result = event_of(&events, "toolu_b", "result");
        assert_eq!(result["outcome"], "ok");
        assert!(result["text"].as_str().is_some_and(|text| text.contains("made-by-bash")), "{result}");
        let texts: String = events
            .iter()
            .filter(|event| event["type"] == "text_delta")
            .map(|event| event["text"].as_str().expect("a text"))
            .collect();
        assert_eq!(texts, "First.Done.");
        let end = events.last().expect("an end");
        assert_eq!((&end["outcome"], &end["stop_reason"]), (&json!("finished"), &json!("end_turn")));
        assert_eq!(end["usage"]["output"], 14);
    }
}

#[tokio::test]
async fn a_denied_call_has_an_error_result_and_does_not_run() {
    for program in programs() {
        let harness = Harness::with_rules(&program, &["Bash"], &["deny Bash"]).await;
        let mut watching = subscribe(&harness.gate);
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        let input = json!({ "command": "touch made", "description": "d" });
        harness.queue(message(&[Block::Call("toolu_b", "Bash", input)]));
        harness.queue(message(&[Block::Text("Then not.")]));
        client.say(&harness.gate, "go").await;
        let events = until_end(&mut watching).await;
        assert!(!kinds_of_call(&events, "toolu_b").contains(&"running"), "{events:#?}");
        assert_eq!(event_of(&events, "toolu_b", "result")["outcome"], "error");
    }
}

#[tokio::test]
async fn the_steps_of_a_sub_agent_name_the_call_that_started_it() {
    for program in programs() {
        let harness = asking(&program, &["Task", "Bash"]).await;
        let mut watching = subscribe(&harness.gate);
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        let task = json!({ "description": "d", "prompt": "p", "subagent_type": "general-purpose", "run_in_background": false });
        let input = json!({ "command": "mkdir -v made-below", "description": "d" });
        harness.queue(message(&[Block::Call("toolu_s", "Task", task)]));
        harness.queue(message(&[Block::Call("toolu_b", "Bash", input.clone())]));
        harness.queue(message(&[Block::Text("It said so.")]));
        harness.queue(message(&[Block::Text("Done.")]));
        let said = client.say(&harness.gate, "go");
        let (reply, events) = tokio::join!(said, allow_and_watch(&harness.gate, &mut watching));
        assert_eq!(reply.text, "Done.");

        let task = kinds_of_call(&events, "toolu_s");
        assert_eq!(task[..3], ["call_started", "input_delta", "input_complete"], "{events:#?}");
        assert_eq!(task.last(), Some(&"result"), "{events:#?}");
        let below: Vec<Value> = events.iter().filter(|event| event["parent"] == "toolu_s").cloned().collect();
        let kinds = kinds_of_call(&below, "toolu_b");
        assert_eq!(
            kinds,
            ["call_started", "input_delta", "input_complete", "running", "result"],
            "{events:#?}"
        );
        assert_eq!(kinds_of_call(&events, "toolu_b"), ASKED_CALL);
        let result = event_of(&below, "toolu_b", "result");
        assert!(result["text"].as_str().is_some_and(|text| text.contains("made-below")), "{result}");
        let written = event_of(&below, "toolu_b", "input_delta")["text"].as_str().expect("a text").to_owned();
        assert_eq!(serde_json::from_str::<Value>(&written).expect("JSON"), input);
    }
}

#[tokio::test]
async fn client_calls_and_their_results_are_watched_once() {
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut watching = subscribe(&harness.gate);
        let mut client = Client::new(Api::Responses, Delivery::Streamed);
        harness.queue(message(&[Block::Call("toolu_t", "mcp__client__get_time", json!({ "zone": "UTC" }))]));
        client.say(&harness.gate, "go").await;
        let events = until_end(&mut watching).await;
        assert_eq!(kinds_of_call(&events, "toolu_t"), ["call_started", "input_delta", "input_complete"]);
        let started = event_of(&events, "toolu_t", "call_started");
        assert_eq!((&started["tool"], &started["runs_in"]), (&json!("get_time"), &json!("client")));
        assert_eq!(events.last().expect("an end")["stop_reason"], "tool_use");
        harness.queue(message(&[Block::Text("Done.")]));
        client.answer(&harness.gate, &[("toolu_t", "12:00")]).await;
        let events = until_end(&mut watching).await;
        assert_eq!(events[0]["type"], "turn_started", "the session is known");
        let results = events.iter().filter(|event| event["type"] == "result");
        let results: Vec<&Value> = results.map(|event| &event["text"]).collect();
        assert_eq!(results, [&json!("12:00")]);
    }
}

#[tokio::test]
async fn a_killed_process_ends_its_turn_once() {
    for program in programs() {
        let harness = Harness::with(&program, |agent| agent.pool.warm = 0).await;
        let mut watching = subscribe(&harness.gate);
        harness.queue(start_message().stall());
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        client.push(json!({ "role": "user", "content": "go" }));
        let mut answer = harness.gate.post("/v1/messages", &client.body()).await;
        answer.until("message_start").await;
        harness.kill_all();
        assert!(answer.text().await.contains("error"));
        let events = until_end(&mut watching).await;
        let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
        assert_eq!((count("turn_started"), count("turn_ended")), (1, 1), "{events:#?}");
        assert_eq!(events.last().expect("an end")["outcome"], "failed");
    }
}

#[tokio::test]
async fn a_client_that_leaves_interrupts_its_turn() {
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut watching = subscribe(&harness.gate);
        harness.queue(start_message().stall());
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        client.push(json!({ "role": "user", "content": "go" }));
        let mut answer = harness.gate.post("/v1/messages", &client.body()).await;
        answer.until("message_start").await;
        drop(answer);
        let events = until_end(&mut watching).await;
        let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
        assert_eq!((count("turn_started"), count("turn_ended")), (1, 1), "{events:#?}");
        assert_eq!(events.last().expect("an end")["outcome"], "interrupted");
    }
}
