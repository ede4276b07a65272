//! Questions of agents elsewhere, which come through their hooks, and the console's API that answers them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use toolgate_backend::config::BackendConfig;
use toolgate_gateway::approval::{Rule, Rules};
use toolgate_gateway::config::{GatewayConfig, Key};
use toolgate_model::approval::Outcome;
use toolgate_state::{MemoryStore, Store};

use crate::gate::{Answer, Gate, Surroundings, config, console_key, console_token};

const HOOK: &str = "/hooks/permission-request";

fn start(rules: &[&str]) -> Gate {
    start_with(rules, |_| ())
}

fn start_with(rules: &[&str], change: impl FnOnce(&mut GatewayConfig)) -> Gate {
    start_in(rules, Surroundings::default().store, change)
}

fn start_in(rules: &[&str], store: Arc<dyn Store>, change: impl FnOnce(&mut GatewayConfig)) -> Gate {
    let mut config = config();
    config.approvals.rules =
        Rules::new(rules.iter().map(|rule| Rule::parse(rule).expect("a rule")).collect());
    change(&mut config);
    let surroundings = Surroundings { store, ..Surroundings::default() };
    Gate::start_in(&config, BackendConfig::default(), surroundings)
}

async fn api(gate: &Gate, method: Method, path: &str, body: &Value) -> Answer {
    let (path, token) = (format!("/console/api{path}"), console_token());
    let headers = [("authorization", token.as_str()), ("content-type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    gate.send(method, &path, &headers, body).await
}

async fn get(gate: &Gate, path: &str) -> Value {
    let answer = api(gate, Method::GET, path, &Value::Null).await;
    assert_eq!(answer.status(), 200, "{path}");
    answer.json().await
}

async fn post(gate: &Gate, path: &str, body: Value) -> (u16, Value) {
    let answer = api(gate, Method::POST, path, &body).await;
    (answer.status(), answer.json().await)
}

/// What Claude Code sends.
fn claude(command: &str) -> Value {
    json!({
        "session_id": "s1", "transcript_path": "/t.jsonl", "cwd": "/w", "permission_mode": "default",
        "hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "tool_input": { "command": command, "description": "Does it" },
        "permission_suggestions": [
            { "type": "addRules", "rules": [{ "toolName": "Bash", "ruleContent": "touch:*" }], "behavior": "allow", "destination": "localSettings" },
            { "type": "setMode", "mode": "acceptEdits", "destination": "session" },
            { "type": "aNewType", "x": 1 },
        ],
    })
}

/// What Codex sends.
fn codex(command: &str) -> Value {
    json!({
        "session_id": "c1", "turn_id": "t1", "transcript_path": null, "cwd": "/w", "model": "gpt-5", "permission_mode": "default",
        "hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": { "command": command },
    })
}

/// The decision in the hook's output; null if there is none.
async fn hook(gate: &Gate, input: &Value) -> Value {
    let answer = gate.post(HOOK, input).await;
    assert_eq!(answer.status(), 200);
    let mut output = answer.json().await;
    if output != json!({}) {
        assert_eq!(output["hookSpecificOutput"]["hookEventName"], "PermissionRequest");
    }
    output["hookSpecificOutput"]["decision"].take()
}

/// The question that is asked next.
async fn next_question(gate: &Gate) -> Value {
    let mut cursor = String::new();
    loop {
        let mut news = get(gate, &format!("/approvals/wait?after={cursor}")).await;
        if news["approvals"][0].is_object() {
            return news["approvals"][0].take();
        }
        news["cursor"].as_str().expect("a cursor").clone_into(&mut cursor);
    }
}

/// Asks through a hook and answers over the API; returns the hook's decision and the API's answer.
async fn ask_and(gate: &Gate, input: Value, answer: Value) -> (Value, (u16, Value)) {
    tokio::join!(hook(gate, &input), async {
        let question = next_question(gate).await;
        post(gate, &format!("/approvals/{}", question["id"].as_str().expect("an id")), answer).await
    })
}

#[tokio::test]
async fn a_question_shows_everything_and_is_answered_once() {
    let gate = start(&["ask *"]);
    let input = claude("touch a");
    let (decision, ()) = tokio::join!(hook(&gate, &input), async {
        let question = next_question(&gate).await;
        let id = question["id"].as_str().expect("an id");
        for (field, expected) in [
            ("tool", json!("Bash")),
            ("input", input["tool_input"].clone()),
            ("agent", json!("claude-code (hook)")),
            ("session", json!("s1")),
            ("caller", json!("local")),
            ("description", json!("Does it")),
            ("folder", json!("/w")),
            ("why", json!("the rule `ask *` requires a person's approval")),
            ("state", json!("waiting")),
            ("resolution", Value::Null),
        ] {
            assert_eq!(question[field], expected, "{field}");
        }
        assert_eq!(question["suggestions"].as_array().map(Vec::len), Some(2), "unknown updates are left out");
        assert!(question["deadline"].as_i64() > question["asked_at"].as_i64());
        assert_eq!(get(&gate, &format!("/approvals/{id}")).await, question);
        let (status, body) = post(&gate, &format!("/approvals/{id}"), json!({ "decision": "allow" })).await;
        assert_eq!(
            (status, &body["outcome"], &body["decision"], &body["by"]),
            (200, &json!("decided"), &json!("allow"), &json!("api"))
        );
        let (status, body) = post(&gate, &format!("/approvals/{id}"), json!({ "decision": "deny" })).await;
        assert_eq!((status, &body["resolution"]["decision"]), (409, &json!("allow")), "the winner");
        assert_eq!(get(&gate, "/approvals").await["approvals"], json!([]));
        let decided = get(&gate, "/approvals?state=decided&limit=5").await;
        assert_eq!(
            (&decided["approvals"][0]["id"], &decided["approvals"][0]["state"]),
            (&json!(id), &json!("decided"))
        );
        assert_eq!(get(&gate, "/approvals?state=decided&before=1").await["approvals"], json!([]));
    });
    assert_eq!(decision, json!({ "behavior": "allow" }));
}

#[tokio::test]
async fn rules_decide_for_hooks_too() {
    let gate = start(&["allow Bash(ls:*)", "deny Bash(rm:*)", "ask *"]);
    for input in [claude, codex] {
        assert_eq!(hook(&gate, &input("ls -l")).await, json!({ "behavior": "allow" }));
        let denied = hook(&gate, &input("rm x")).await;
        assert_eq!(denied["behavior"], "deny");
        assert!(denied["message"].as_str().expect("a message").contains("deny Bash(rm:*)"));
    }
}

#[tokio::test]
async fn every_kind_of_answer_reaches_the_agent() {
    let gate = start(&["deny Bash(rm:*)", "ask *"]);
    let (decision, (status, _)) = ask_and(
        &gate,
        claude("touch a"),
        json!({ "decision": "deny", "message": "Not now.", "interrupt": true }),
    )
    .await;
    assert_eq!(status, 200);
    assert_eq!((&decision["behavior"], &decision["interrupt"]), (&json!("deny"), &json!(true)));
    assert!(decision["message"].as_str().expect("a message").ends_with("Not now."));

    let (decision, _) =
        ask_and(&gate, claude("curl x"), json!({ "decision": "answer", "text": "It says 42." })).await;
    assert_eq!(decision["behavior"], "deny");
    assert!(decision["message"].as_str().expect("a message").ends_with("It says 42."));

    let edited = json!({ "command": "touch b", "description": "Does it" });
    let (decision, _) =
        ask_and(&gate, claude("touch a"), json!({ "decision": "allow", "updated_input": edited })).await;
    assert_eq!(decision, json!({ "behavior": "allow", "updatedInput": edited }));
}

#[tokio::test]
async fn codex_gets_no_edited_input() {
    let gate = start(&["ask *"]);
    let (decision, ()) = tokio::join!(async { hook(&gate, &codex("touch a")).await }, async {
        let question = next_question(&gate).await;
        assert_eq!(question["agent"], "codex (hook)");
        let path = format!("/approvals/{}", question["id"].as_str().expect("an id"));
        let edit = json!({ "decision": "allow", "updated_input": { "command": "touch b" } });
        let (status, body) = post(&gate, &path, edit).await;
        assert_eq!(status, 422, "{body}");
        let (status, _) = post(&gate, &path, json!({ "decision": "deny", "interrupt": true })).await;
        assert_eq!(status, 200);
    });
    assert_eq!(
        decision.as_object().map(|fields| fields.keys().cloned().collect()),
        Some(vec!["behavior".to_owned(), "message".to_owned()])
    );
}

#[tokio::test]
async fn a_ticked_suggestion_is_a_rule_that_can_be_revoked() {
    let gate = start(&["deny Bash(rm:*)", "ask *"]);
    let rule = claude("")["permission_suggestions"][0].clone();
    let always = json!({ "decision": "allow", "permissions": [rule], "scope": "project", "by": "console" });
    let (decision, (_, answered)) = ask_and(&gate, claude("touch a"), always).await;
    assert_eq!(decision, json!({ "behavior": "allow" }), "the gateway keeps the rule, not the program");
    let made = &answered["rules"][0];
    assert_eq!(
        (&made["rule"], &made["scope"], &made["folder"]),
        (&json!("allow Bash(touch:*)"), &json!("project"), &json!("/w"))
    );
    assert_eq!(hook(&gate, &claude("touch b")).await["behavior"], "allow", "not asked again");
    let rules = get(&gate, "/rules").await["rules"].clone();
    let origins: Vec<_> =
        rules.as_array().expect("rules").iter().map(|rule| rule["origin"].clone()).collect();
    assert_eq!(origins, ["config", "config", "person"]);
    assert_eq!((&rules[2]["by"], &rules[2]["question"]), (&json!("console"), &answered["id"]));
    assert!(rules[2]["last_used_at"].is_i64(), "{rules}");
    let tried = json!({ "tool": "Bash", "input": { "command": "touch c" }, "folder": "/w" });
    let (_, verdict) = post(&gate, "/rules/try", tried.clone()).await;
    assert_eq!((&verdict["decision"], &verdict["rule"]), (&json!("allow"), &json!("allow Bash(touch:*)")));
    let path = format!("/rules/{}", rules[2]["id"].as_str().expect("an id"));
    assert_eq!(api(&gate, Method::DELETE, &path, &Value::Null).await.status(), 200);
    assert_eq!(api(&gate, Method::DELETE, &path, &Value::Null).await.status(), 404);
    let (_, verdict) = post(&gate, "/rules/try", tried).await;
    assert_eq!((&verdict["decision"], &verdict["rule"]), (&json!("ask"), &json!("ask *")));
}

#[tokio::test]
async fn a_grant_is_a_rule_with_an_end() {
    let gate = start(&["ask *"]);
    let grant = json!({ "rule": "allow Read(src/**)", "minutes": 15, "scope": "session", "session": "s1" });
    let (status, rule) = post(&gate, "/grants", grant.clone()).await;
    assert_eq!(status, 200, "{rule}");
    assert_eq!(
        rule["expires_at"].as_i64().zip(rule["created_at"].as_i64()).map(|(end, begin)| end - begin),
        Some(15 * 60 * 1000)
    );
    let (_, verdict) = post(
        &gate,
        "/rules/try",
        json!({ "tool": "Read", "input": { "file_path": "/w/src/a" }, "folder": "/w", "session": "s1" }),
    )
    .await;
    assert_eq!(verdict["decision"], "allow");
    for (field, value) in [
        ("minutes", json!(0)),
        ("minutes", json!(100_000)),
        ("rule", json!("deny Bash")),
        ("rule", json!("allow")),
        ("session", Value::Null),
        ("x", json!(1)),
    ] {
        let mut wrong = grant.clone();
        wrong[field] = value;
        let (status, body) = post(&gate, "/grants", wrong).await;
        assert_eq!(status, 400, "{field}: {body}");
    }
}

#[tokio::test]
async fn nobody_answers_and_the_program_asks_its_own_user() {
    let gate = start_with(&["ask *"], |config| config.approvals.timeout = Some(Duration::from_millis(50)));
    assert_eq!(hook(&gate, &claude("touch a")).await, Value::Null, "no decision is no permission");
    let decided = get(&gate, "/approvals?state=decided").await;
    assert_eq!(decided["approvals"][0]["resolution"]["outcome"], "timed_out");
    let path = format!("/approvals/{}", decided["approvals"][0]["id"].as_str().expect("an id"));
    let (status, body) = post(&gate, &path, json!({ "decision": "allow" })).await;
    assert_eq!((status, &body["resolution"]["outcome"]), (410, &json!("timed_out")));
}

#[tokio::test]
async fn a_question_on_hold_has_no_deadline() {
    let gate = start(&["ask *"]);
    let (decision, ()) = tokio::join!(async { hook(&gate, &claude("touch a")).await }, async {
        let question = next_question(&gate).await;
        let path = format!("/approvals/{}", question["id"].as_str().expect("an id"));
        let (status, held) = post(&gate, &format!("{path}/hold"), json!({})).await;
        assert_eq!((status, &held["deadline"]), (200, &Value::Null));
        assert_eq!(post(&gate, &path, json!({ "decision": "allow" })).await.0, 200);
        assert_eq!(post(&gate, &format!("{path}/hold"), json!({})).await.0, 409);
    });
    assert_eq!(decision["behavior"], "allow");
}

/// A client that has asked and waits for the answer.
fn ask_and_wait(gate: &Gate, input: &Value) -> TcpStream {
    let (address, body) = (gate.running.address(), input.to_string());
    let mut client = TcpStream::connect(address).expect("a connection");
    let head = format!(
        "POST {HOOK} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    client.write_all((head + &body).as_bytes()).expect("it is sent");
    client
}

#[tokio::test]
async fn a_hook_whose_client_leaves_withdraws_its_question() {
    let gate = start(&["ask *"]);
    let client = ask_and_wait(&gate, &claude("touch a"));
    let question = next_question(&gate).await;
    drop(client);
    let path = format!("/approvals/{}", question["id"].as_str().expect("an id"));
    let mut cursor = String::new();
    while get(&gate, &path).await["state"] == "waiting" {
        let news = get(&gate, &format!("/approvals/wait?after={cursor}")).await;
        news["cursor"].as_str().expect("a cursor").clone_into(&mut cursor);
    }
    let (status, body) = post(&gate, &path, json!({ "decision": "allow" })).await;
    let resolution = &body["resolution"];
    assert_eq!(
        (status, &resolution["outcome"], &resolution["by"]),
        (410, &json!("withdrawn"), &json!("agent"))
    );
}

#[tokio::test]
async fn the_next_run_ends_the_questions_of_the_last_one() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let first = start_in(&["ask *"], Arc::clone(&store), |_| ());
    let client = ask_and_wait(&first, &claude("touch a"));
    let question = next_question(&first).await;
    let path = format!("/approvals/{}", question["id"].as_str().expect("an id"));
    // The store is all that two runs share, so the first need not be dead.
    let second = start_in(&["ask *"], store, |_| ());
    assert_eq!(get(&second, "/approvals").await["approvals"], json!([]));
    for gate in [&second, &first] {
        let (status, body) = post(gate, &path, json!({ "decision": "allow" })).await;
        assert_eq!(
            (status, &body["resolution"]["by"]),
            (410, &json!("restart")),
            "one outcome for everybody"
        );
    }
    drop(client);
}

#[tokio::test]
async fn a_gateway_that_stops_leaves_no_question_open() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let gate = start_in(&["ask *"], Arc::clone(&store), |_| ());
    let mut client = ask_and_wait(&gate, &claude("touch a"));
    let question = next_question(&gate).await;
    gate.running.stop().await.expect("it stops");
    let id = toolgate_model::approval::QuestionId::new(question["id"].as_str().expect("an id"));
    let stored = store.question(&id).await.expect("a store").expect("a question");
    assert_eq!(stored.resolution.map(|resolution| resolution.outcome), Some(Outcome::Withdrawn));
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("an answer");
    assert!(answer.ends_with("\r\n\r\n{}"), "no decision is no permission: {answer}");
}

#[tokio::test]
async fn the_console_is_closed_to_everybody_without_a_token() {
    let alice = Key { name: "alice".to_owned(), sha256: [0; 32], models: Vec::new() };
    for keys in [Vec::new(), vec![alice]] {
        let gate = start_with(&["ask *"], |config| config.keys = keys);
        let (valid, expired) = (
            console_token(),
            format!("Bearer {}", console_key().issue(toolgate_state::UnixMillis(0)).expect("a token")),
        );
        let json_type = ("content-type", "application/json");
        for (headers, status) in [
            (vec![], 401),
            (vec![("authorization", "Bearer tgc_x")], 401),
            (vec![("authorization", expired.as_str())], 401),
            (vec![("x-api-key", &valid["Bearer ".len()..])], 401),
            (vec![("authorization", valid.as_str())], 200),
            (vec![("authorization", valid.as_str()), ("origin", "http://evil.example")], 403),
            (vec![("authorization", valid.as_str()), ("origin", "null")], 403),
            (vec![("authorization", valid.as_str()), ("sec-fetch-site", "cross-site")], 403),
            (vec![("authorization", valid.as_str()), ("host", "evil.example")], 403),
        ] {
            let answer = gate.send(Method::GET, "/console/api/approvals", &headers, "").await;
            assert_eq!(answer.status(), status, "{headers:?}");
            assert_eq!(answer.header("access-control-allow-origin"), "");
        }
        let authorized = ("authorization", valid.as_str());
        let body = json!({ "tool": "Bash", "input": {} }).to_string();
        for (headers, status) in [
            (vec![authorized, json_type], 200),
            (vec![authorized, ("content-type", "text/plain")], 415),
            (vec![authorized], 415),
            (vec![json_type], 401),
        ] {
            let answer = gate.send(Method::POST, "/console/api/rules/try", &headers, body.clone()).await;
            assert_eq!(answer.status(), status, "{headers:?}");
        }
        let unknown = gate.send(Method::GET, "/console/api/nothing", &[authorized], "").await;
        assert_eq!((unknown.status(), unknown.header("cache-control")), (404, "no-store"));
        assert_eq!(gate.get("/console/api/nothing").await.status(), 401);
        assert_eq!(gate.get("/console").await.status(), 200);
    }
}

#[tokio::test]
async fn what_is_malformed_is_refused() {
    let gate = start(&["ask *"]);
    let mut missing = claude("ls");
    missing.as_object_mut().expect("an object").remove("cwd");
    let mut other_event = claude("ls");
    other_event["hook_event_name"] = json!("PreToolUse");
    for input in [missing, other_event, json!([]), json!("x")] {
        assert_eq!(gate.post(HOOK, &input).await.status(), 400, "{input}");
    }
    let input = claude("ls");
    let (decision, ()) = tokio::join!(hook(&gate, &input), async {
        let question = next_question(&gate).await;
        let path = format!("/approvals/{}", question["id"].as_str().expect("an id"));
        for wrong in [
            json!({}),
            json!({ "decision": "maybe" }),
            json!({ "decision": "allow", "unknown": 1 }),
            json!({ "decision": "allow", "message": "x" }),
            json!({ "decision": "deny", "permissions": [] }),
            json!({ "decision": "deny", "scope": "all" }),
            json!({ "decision": "answer", "text": "x", "interrupt": true }),
            json!({ "decision": "allow", "permissions": [{ "type": "everything" }] }),
            json!({ "decision": "allow", "scope": "world" }),
        ] {
            assert_eq!(post(&gate, &path, wrong.clone()).await.0, 400, "{wrong}");
        }
        for refused in [
            json!({ "decision": "answer" }),
            json!({ "decision": "allow", "updated_input": "ls" }),
            json!({ "decision": "allow", "permissions": [{ "type": "setMode", "mode": "bypassPermissions", "destination": "session" }] }),
            json!({ "decision": "allow", "permissions": [{ "type": "addRules", "rules": [{ "toolName": "Bash", "ruleContent": "a && b" }], "behavior": "allow", "destination": "session" }] }),
        ] {
            assert_eq!(post(&gate, &path, refused.clone()).await.0, 422, "{refused}");
        }
        for query in [
            "state=maybe",
            "state=decided&limit=0",
            "state=decided&limit=x",
            "state=decided&before=x",
            "what=1",
            "state=waiting&state=decided",
        ] {
            let answer = api(&gate, Method::GET, &format!("/approvals?{query}"), &Value::Null).await;
            assert_eq!(answer.status(), 400, "{query}");
        }
        assert_eq!(post(&gate, "/approvals/none", json!({ "decision": "allow" })).await.0, 404);
        assert_eq!(api(&gate, Method::GET, "/approvals/none", &Value::Null).await.status(), 404);
        assert_eq!(get(&gate, &path).await["state"], "waiting", "nothing of this decided it");
        assert_eq!(post(&gate, &path, json!({ "decision": "allow" })).await.0, 200);
    });
    assert_eq!(decision["behavior"], "allow");
}
