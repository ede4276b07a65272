//! People answer the agent's questions over the console's API.

use std::path::Path;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use toolgate_backend::config::Builtins;
use toolgate_gateway::approval::{AfterTimeout, ApprovalConfig, Rule, Rules};

use crate::client::{Api, Client, Delivery};
use crate::gate::{Gate, console_token};
use crate::harness::{Block, Harness, message, programs};

/// A harness whose agent may use Bash and asks about every use.
async fn asking(program: &Path) -> Harness {
    asking_with(program, |_| ()).await
}

async fn asking_with(program: &Path, change: impl FnOnce(&mut ApprovalConfig)) -> Harness {
    Harness::set(program, |config| {
        config.agent.builtins = Builtins::Only(vec!["Bash".to_owned()]);
        config.agent.pool.warm = 0;
        let rules = Rules::new(vec![Rule::parse("ask *").expect("a rule")]);
        config.config.approvals = ApprovalConfig { rules, ..ApprovalConfig::default() };
        change(&mut config.config.approvals);
    })
    .await
}

async fn get(gate: &Gate, path: &str) -> Value {
    gate.get_console(&format!("/console/api{path}"), &[]).await.json().await
}

async fn post(gate: &Gate, path: &str, body: &Value) -> (u16, Value) {
    let (path, token) = (format!("/console/api{path}"), console_token());
    let headers = [("authorization", token.as_str()), ("content-type", "application/json")];
    let answer = gate.send(Method::POST, &path, &headers, body.to_string()).await;
    (answer.status(), answer.json().await)
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

fn path_of(question: &Value) -> String {
    format!("/approvals/{}", question["id"].as_str().expect("an id"))
}

/// The outcome of a question, as soon as it has one.
async fn outcome(gate: &Gate, question: &Value) -> Value {
    let mut cursor = String::new();
    loop {
        let mut shown = get(gate, &path_of(question)).await;
        if shown["state"] == "decided" {
            return shown["resolution"].take();
        }
        let news = get(gate, &format!("/approvals/wait?after={cursor}")).await;
        news["cursor"].as_str().expect("a cursor").clone_into(&mut cursor);
    }
}

fn bash(command: &str) -> Value {
    json!({ "command": command, "description": "d" })
}

fn queue_call(harness: &Harness, number: usize, command: &str) {
    harness.queue(message(&[Block::Call(&format!("toolu_{number}"), "Bash", bash(command))]));
    harness.queue(message(&[Block::Text("Done.")]));
}

/// Runs one command with this answer to its question; returns what the model saw as its result.
async fn run(harness: &Harness, command: &str, answer: &Value) -> String {
    queue_call(harness, 0, command);
    let mut client = Client::new(Api::Messages, Delivery::Whole);
    let (reply, ()) = tokio::join!(client.say(&harness.gate, command), async {
        let question = next_question(&harness.gate).await;
        assert_eq!(question["input"], bash(command));
        let (status, body) = post(&harness.gate, &path_of(&question), answer).await;
        assert_eq!(status, 200, "{body}");
    });
    assert_eq!(reply.text, "Done.");
    harness.model_messages().last().expect("a message")["content"].to_string()
}

#[tokio::test]
async fn always_allow_asks_no_more_in_the_session() {
    // agent 24
    for program in programs() {
        let harness = asking(&program).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        let rule = json!({ "toolName": "Bash", "ruleContent": "touch:*" });
        let update =
            json!({ "type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session" });
        let answers = [
            Some(json!({ "decision": "allow" })),
            Some(json!({ "decision": "allow", "permissions": [update] })),
            None,
        ];
        for (number, answer) in answers.into_iter().enumerate() {
            queue_call(&harness, number, &format!("touch note-{number}"));
            let words = format!("go {number}");
            let said = client.say(&harness.gate, &words);
            let reply = match answer {
                Some(answer) => {
                    let (reply, ()) = tokio::join!(said, async {
                        let question = next_question(&harness.gate).await;
                        assert_eq!(question["agent"], "claude");
                        assert_eq!(question["call"], format!("toolu_{number}"));
                        assert_eq!(post(&harness.gate, &path_of(&question), &answer).await.0, 200);
                    });
                    reply
                }
                None => said.await,
            };
            assert_eq!(reply.text, "Done.");
            assert!(harness.workdir().join(format!("note-{number}")).exists(), "{number}");
        }
        let decided = get(&harness.gate, "/approvals?state=decided").await;
        assert_eq!(decided["approvals"].as_array().map(Vec::len), Some(2), "the third was not asked");
    }
}

#[tokio::test]
async fn an_edited_input_runs_instead_of_the_original() {
    for program in programs() {
        let harness = asking(&program).await;
        let answer = json!({ "decision": "allow", "updated_input": bash("touch edited") });
        run(&harness, "touch original", &answer).await;
        assert!(harness.workdir().join("edited").exists());
        assert!(!harness.workdir().join("original").exists());
    }
}

#[tokio::test]
async fn the_model_sees_the_reason_of_a_denial_and_the_text_of_an_answer() {
    for program in programs() {
        let harness = asking(&program).await;
        let denied = json!({ "decision": "deny", "message": "Use the blue one." });
        let seen = run(&harness, "touch original", &denied).await;
        assert!(seen.contains("The user denied permission") && seen.contains("Use the blue one."), "{seen}");
        let answered = json!({ "decision": "answer", "text": "It says 42." });
        let seen = run(&harness, "cat original", &answered).await;
        assert!(seen.contains("The tool was not run.") && seen.contains("It says 42."), "{seen}");
        assert!(!harness.workdir().join("original").exists());
    }
}

#[tokio::test]
async fn a_question_that_nobody_answers_is_no_refusal() {
    // C4
    for program in programs() {
        let short = Some(Duration::from_millis(200));
        let harness = asking_with(&program, |approvals| {
            (approvals.timeout, approvals.after_timeout) = (short, AfterTimeout::Continue);
        })
        .await;
        queue_call(&harness, 0, "touch original");
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        let reply = client.say(&harness.gate, "go").await;
        assert_eq!(reply.text, "Done.");
        let seen = harness.model_messages().last().expect("a message").to_string();
        assert!(seen.contains("Nobody answered") && seen.contains("not a refusal"), "{seen}");
        let decided = get(&harness.gate, "/approvals?state=decided").await["approvals"][0].take();
        assert_eq!(decided["resolution"]["outcome"], "timed_out");
        let (status, late) = post(&harness.gate, &path_of(&decided), &json!({ "decision": "allow" })).await;
        assert_eq!((status, &late["resolution"]["outcome"]), (410, &json!("timed_out")));
        assert!(!harness.workdir().join("original").exists());
    }
}

#[tokio::test]
async fn by_default_a_turn_ends_when_nobody_answers() {
    for program in programs() {
        let harness =
            asking_with(&program, |approvals| approvals.timeout = Some(Duration::from_millis(200))).await;
        harness.queue(message(&[Block::Call("toolu_0", "Bash", bash("touch original"))]));
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        client.push(json!({ "role": "user", "content": "go" }));
        let text = harness.gate.post("/v1/messages", &client.body()).await.text().await;
        assert_eq!(harness.model_requests().len(), 1, "the model is not asked again: {text}");
        assert!(!harness.workdir().join("original").exists());
    }
}

#[tokio::test]
async fn one_of_two_approvers_wins() {
    for program in programs() {
        let harness = asking(&program).await;
        queue_call(&harness, 0, "touch original");
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        let (reply, allowed) = tokio::join!(client.say(&harness.gate, "go"), async {
            let path = path_of(&next_question(&harness.gate).await);
            let (allow, deny) = (json!({ "decision": "allow" }), json!({ "decision": "deny" }));
            let (first, second) =
                tokio::join!(post(&harness.gate, &path, &allow), post(&harness.gate, &path, &deny));
            let mut statuses = [first.0, second.0];
            statuses.sort_unstable();
            assert_eq!(statuses, [200, 409]);
            first.0 == 200
        });
        assert_eq!(reply.text, "Done.");
        assert_eq!(harness.workdir().join("original").exists(), allowed);
    }
}

#[tokio::test]
async fn a_question_whose_client_leaves_is_withdrawn() {
    // agent 26, 27
    for program in programs() {
        let harness = asking(&program).await;
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        client.push(json!({ "role": "user", "content": "go" }));
        harness
            .queue(message(&[Block::Text("I try."), Block::Call("toolu_b", "Bash", bash("touch original"))]));
        let mut answer = harness.gate.post("/v1/messages", &client.body()).await;
        answer.until("I try.").await;
        let question = next_question(&harness.gate).await;
        drop(answer);
        assert_eq!(outcome(&harness.gate, &question).await["outcome"], "withdrawn");
        let (status, _) = post(&harness.gate, &path_of(&question), &json!({ "decision": "allow" })).await;
        assert_eq!(status, 410);
        harness.wait_for_no_processes().await;
        assert!(!harness.workdir().join("original").exists());
    }
}

#[tokio::test]
async fn a_restart_ends_a_question_once() {
    for program in programs() {
        let mut harness = asking(&program).await;
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        client.push(json!({ "role": "user", "content": "go" }));
        harness
            .queue(message(&[Block::Text("I try."), Block::Call("toolu_b", "Bash", bash("touch original"))]));
        let mut answer = harness.gate.post("/v1/messages", &client.body()).await;
        answer.until("I try.").await;
        let question = next_question(&harness.gate).await;
        harness.restart().await;
        assert_eq!(get(&harness.gate, "/approvals").await["approvals"], json!([]));
        let ended = outcome(&harness.gate, &question).await;
        assert_eq!(ended["outcome"], "withdrawn");
        let (status, late) = post(&harness.gate, &path_of(&question), &json!({ "decision": "allow" })).await;
        assert_eq!((status, &late["resolution"]), (410, &ended), "one outcome");
        assert!(!harness.workdir().join("original").exists());
    }
}

#[tokio::test]
async fn a_session_that_was_started_elsewhere_asks_by_its_hook() {
    // The older version does not run this hook in print mode.
    let program = programs().pop().expect("the current version");
    let harness = asking(&program).await;
    let url = format!("http://{}/hooks/permission-request", harness.gate.running.address());
    let curl = format!("curl -s -H 'content-type: application/json' -d @- {url}");
    let http = json!({ "type": "http", "url": url, "timeout": 60 });
    let command = json!({ "type": "command", "command": curl, "timeout": 60 });
    let deny = json!({ "decision": "deny", "message": "Use the blue one." });
    for (hook, answer) in [(http, json!({ "decision": "allow" })), (command, deny)] {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = json!({ "hooks": { "PermissionRequest": [{ "matcher": "*", "hooks": [hook] }] } });
        let mut session = elsewhere(&harness, &program, folder.path(), &settings);
        queue_call(&harness, 0, "touch original");
        let (output, ()) = tokio::join!(tokio::task::spawn_blocking(move || session.output()), async {
            let asked = tokio::time::timeout(Duration::from_mins(2), next_question(&harness.gate));
            let question = asked.await.expect("the hook asks");
            assert_eq!(question["agent"], "claude-code (hook)");
            assert_eq!((&question["tool"], &question["input"]), (&json!("Bash"), &bash("touch original")));
            assert_eq!(post(&harness.gate, &path_of(&question), &answer).await.0, 200);
        });
        let output = output.expect("it is waited for").expect("it runs");
        assert!(output.status.success(), "{output:?}");
        let seen = harness.model_messages().last().expect("a message").to_string();
        let is_allowed = answer["decision"] == "allow";
        assert_eq!(folder.path().join("original").exists(), is_allowed, "{seen}");
        assert_eq!(seen.contains("Use the blue one."), !is_allowed, "{seen}");
    }
}

/// Claude Code as a user starts it, with the same scripted model.
fn elsewhere(harness: &Harness, program: &Path, folder: &Path, settings: &Value) -> std::process::Command {
    let mut session = std::process::Command::new(program);
    session
        .args(["-p", "go", "--setting-sources=", "--permission-mode=default", "--model=scripted"])
        .arg(format!("--settings={settings}"))
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", folder)
        .env("ANTHROPIC_BASE_URL", harness.model.base_url().trim_end_matches("/v1"))
        .env("ANTHROPIC_API_KEY", "k")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .stdin(std::process::Stdio::null());
    session
}
