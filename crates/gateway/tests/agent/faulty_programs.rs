//! Faulty programs: each fault ends in a clear error, and no process is left.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::approver::Approver;
use crate::client::{Api, Client, Delivery};
use crate::harness::Harness;

/// Stall timeouts.
const SOON: Duration = Duration::from_millis(500);
const LATER: Duration = Duration::from_mins(5);

/// Reads and accepts the opening.
const OPENED: &str = r#"read -r line
id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$id"
read -r line
"#;

fn program(folder: &TempDir, script: &str) -> PathBuf {
    let path = folder.path().join("program");
    std::fs::write(&path, format!("#!/bin/sh\n{script}")).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it is made executable");
    path
}

/// Checks the error that a client gets from a program that does this.
async fn check(script: &str, status: u16, contains: &[&str]) {
    let folder = TempDir::new().expect("a folder");
    let harness = Harness::with(&program(&folder, script), |agent| {
        agent.pool.warm = 0;
        // Only a hanging program should hit the timeout: others may be slow on a busy machine.
        agent.stall_timeout = if status == 504 { SOON } else { LATER };
    })
    .await;
    let mut client = Client::new(Api::Messages, Delivery::Whole);
    client.push(json!({ "role": "user", "content": "go" }));
    let answer = harness.gate.post("/v1/messages", &client.body()).await;
    let found = answer.status();
    let text = answer.text().await;
    assert_eq!(found, status, "{script}: {text}");
    for words in contains {
        assert!(text.contains(words), "{script}: {text}");
    }
    assert!(!text.contains("secret") && !text.contains('/'), "paths and output are for the log: {text}");
    harness.wait_for_no_processes().await;
}

#[tokio::test]
async fn a_program_that_exits_at_start_is_reported_without_its_stderr() {
    check("echo 'a secret in /srv/agent.js' >&2; exit 3", 502, &["exit status: 3"]).await;
    check("exit 0", 502, &["exit status: 0"]).await;
}

#[tokio::test]
async fn a_program_that_exits_in_its_turn_is_reported_without_its_stderr() {
    check(&format!("{OPENED}echo 'a secret in /srv/agent.js' >&2; exit 1"), 502, &["exit status: 1"]).await;
    check(&format!("{OPENED}kill -9 $$"), 502, &["signal: 9"]).await;
}

#[tokio::test]
async fn a_program_that_hangs_is_killed() {
    check("sleep 1000", 504, &["stopped responding"]).await;
    check(&format!("{OPENED}sleep 1000"), 504, &["stopped responding"]).await;
    check("trap '' TERM HUP INT; exec 0<&-; sleep 1000", 504, &["stopped responding"]).await;
}

#[tokio::test]
async fn a_program_that_prints_garbage_is_killed() {
    check("echo '{\"type\": rubbish'; sleep 1000", 502, &["invalid line"]).await;
    check("head -c 100000 /dev/zero | tr '\\0' 'x'; echo; exec sleep 1000", 504, &["stopped responding"])
        .await;
    check("yes rubbish", 504, &["stopped responding"]).await;
    check("head -c 4096 /dev/urandom; echo; exit 1", 502, &["send the request again"]).await;
}

#[tokio::test]
async fn a_program_that_rejects_its_opening_is_an_error_that_says_what_to_do() {
    let refusal = OPENED.replace("\"success\"", "\"error\",\"error\":\"a secret in /srv/agent.js\"");
    check(&format!("{refusal}sleep 1000"), 502, &["toolgate doctor"]).await;
}

/// Asks for permission, reports the answer as its result, and then stays silent.
const ASKING: &str = r#"printf '{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}}\n'
read -r line
case "$line" in *'"allow"'*) text=allowed ;; *) text=denied ;; esac
printf '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"%s"}\n' "$text"
sleep 1000
"#;

#[tokio::test]
async fn a_program_that_waits_for_approval_is_not_stalled() {
    // agent 21: the person takes longer than the stall timeout
    const SILENCE: Duration = Duration::from_secs(2);
    let folder = TempDir::new().expect("a folder");
    let (mut approver, decider) = Approver::new();
    let harness = Harness::set(&program(&folder, &format!("{OPENED}{ASKING}")), |config| {
        config.agent.pool.warm = 0;
        config.agent.stall_timeout = SILENCE;
        config.surroundings.decider = Some(decider);
    })
    .await;
    let mut client = Client::new(Api::Messages, Delivery::Whole);
    let (reply, ()) = tokio::join!(client.say(&harness.gate, "go"), async {
        let mut asked = approver.next_request().await;
        let withdrawn = tokio::time::timeout(2 * SILENCE, asked.until_withdrawn()).await;
        assert!(withdrawn.is_err(), "the request stays open");
        asked.allow(Vec::new());
    });
    assert_eq!(reply.text, "allowed");
}

/// Asks for permission, cancels the request, and stays alive.
const TAKING_BACK: &str = r#"printf '{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}}\n'
printf '{"type":"control_cancel_request","request_id":"q"}\n'
sleep 1000
"#;

#[tokio::test]
async fn a_request_that_the_program_cancels_is_withdrawn_while_it_continues() {
    // agent 26
    let folder = TempDir::new().expect("a folder");
    let (mut approver, decider) = Approver::new();
    let harness = Harness::set(&program(&folder, &format!("{OPENED}{TAKING_BACK}")), |config| {
        (config.agent.pool.warm, config.agent.stall_timeout) = (0, LATER);
        config.config.limits.commit_after = LATER;
        config.surroundings.decider = Some(decider);
    })
    .await;
    let mut client = Client::new(Api::Messages, Delivery::Streamed);
    client.push(json!({ "role": "user", "content": "go" }));
    let turn = client.send(&harness.gate);
    let withdrawn = async { approver.next_request().await.expect_withdrawn().await };
    tokio::select! {
        answer = turn => panic!("the turn is not over: {}", answer.status()),
        () = withdrawn => assert!(!harness.processes().is_empty(), "the program lives on"),
    }
    harness.wait_for_no_processes().await;
}

/// Calls a client tool, gives up on it at once, and accepts a history that contains the result.
const GIVING_UP: &str = r#"event() { printf '{"type":"stream_event","parent_tool_use_id":null,"event":%s}\n' "$1"; }
message() {
  event '{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}'
  event "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":$1}"
  event '{"type":"content_block_stop","index":0}'
  event "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"$2\"},\"usage\":{\"output_tokens\":1}}"
  event '{"type":"message_stop"}'
}
result() { printf '{"type":"result","subtype":"success","num_turns":%s,%s}\n' "$1" "$2"; }
answer() { case "$line" in
  *'"shouldQuery":false'*) result 0 '"is_error":false' ;;
  *'"type":"assistant"'*) ;;
  *tool_result*) message '{"type":"text","text":"Noon."}' end_turn; result 1 '"is_error":false' ;;
  *) message '{"type":"tool_use","id":"toolu_1","name":"mcp__client__get_time","input":{}}' tool_use
     result 1 '"is_error":true,"api_error_status":529,"result":"overloaded"' ;;
esac; }
answer
while read -r line; do answer; done
"#;

#[tokio::test]
async fn a_turn_that_fails_while_it_waits_for_its_client_continues_in_another_process() {
    // agent 28: the failure comes after the reply ended with a tool call
    let folder = TempDir::new().expect("a folder");
    let script = format!("{OPENED}{GIVING_UP}");
    let harness = Harness::with(&program(&folder, &script), |agent| agent.pool.warm = 0).await;
    let mut client = Client::new(Api::Messages, Delivery::Streamed);
    let reply = client.say(&harness.gate, "go").await;
    assert_eq!(reply.calls.len(), 1, "{reply:?}");
    harness.wait_for_no_processes().await;
    assert_eq!(client.answer(&harness.gate, &[("toolu_1", "12:00")]).await.text, "Noon.");
}
