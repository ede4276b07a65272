//! People decide about built-in tools: as late as they like, once or for the whole session.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_backend::config::Builtins;

use crate::approver::Approver;
use crate::client::{Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs};

/// So short that a hold or approval timeout of this length has expired before a test answers.
const GONE: Duration = Duration::from_millis(1);

/// A harness whose agent has these tools, asks the test about each use, and waits `hold` for its client.
async fn asking(program: &Path, tools: &[&str], hold: Duration) -> (Harness, Approver) {
    let (approver, decider) = Approver::new();
    let harness = Harness::set(program, |config| {
        config.agent.builtins = Builtins::Only(tools.iter().map(|tool| (*tool).to_owned()).collect());
        (config.agent.pool.hold, config.agent.pool.warm) = (hold, 0);
        config.config.approvals.timeout = Some(GONE);
        config.surroundings.decider = Some(decider);
    })
    .await;
    (harness, approver)
}

fn bash(command: &str) -> Value {
    json!({ "command": command, "description": "d" })
}

#[tokio::test]
async fn a_late_approval_works_like_an_early_one() {
    // agent 21, 23: the approved command runs exactly as requested
    for program in programs() {
        let (harness, mut approver) = asking(&program, &["Bash"], GONE).await;
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        for number in 0..3 {
            let input = bash(&format!("echo 'kept: {number} as it was' > note-{number}"));
            harness.queue(message(&[Block::Call(&format!("toolu_{number}"), "Bash", input.clone())]));
            harness.queue(message(&[Block::Text("Done.")]));
            let words = format!("go {number}");
            let (reply, ()) = tokio::join!(client.say(&harness.gate, &words), async {
                let asked = approver.next_request().await;
                assert_eq!((asked.request.tool.as_str(), &asked.request.input), ("Bash", &input));
                assert!(!asked.request.session.is_empty());
                asked.allow(Vec::new());
            });
            assert_eq!(reply.text, "Done.");
            let note = std::fs::read_to_string(harness.workdir().join(format!("note-{number}")));
            assert_eq!(note.expect("the file is there"), format!("kept: {number} as it was\n"));
        }
        assert!(approver.has_no_request(), "each call asks once");
    }
}

#[tokio::test]
async fn an_approval_can_be_open_while_the_client_runs_a_call_of_the_same_message() {
    // A11, agent 13: in either order, the first waits for the second
    for program in programs() {
        for client_is_first in [true, false] {
            let (harness, mut approver) = asking(&program, &["Bash"], GONE).await;
            let mut client = Client::new(Api::Messages, Delivery::Whole);
            harness.queue(message(&[
                Block::Text("All."),
                Block::Call("toolu_a", "Bash", bash("mkdir made")),
                Block::Call("toolu_b", "Bash", bash("echo made > made/by-the-agent")),
                Block::Call("toolu_t", "mcp__client__get_time", json!({})),
            ]));
            let reply = client.say(&harness.gate, "go").await;
            assert_eq!(reply.calls.len(), 1, "the client sees only its own call");
            let first = approver.next_request().await;
            assert_eq!(first.request.session, reply.session);
            first.allow(Vec::new());
            let asked = approver.next_request().await;
            assert_eq!(asked.request.session, reply.session);
            harness.queue(message(&[Block::Text("Done.")]));
            let made = harness.workdir().join("made/by-the-agent");
            if client_is_first {
                let answered = client.answer(&harness.gate, &[("toolu_t", "12:00")]);
                let (reply, ()) = tokio::join!(answered, async { asked.allow(Vec::new()) });
                assert_eq!(reply.text, "Done.");
            } else {
                asked.allow(Vec::new());
                until(|| made.exists()).await;
                let reply = client.answer(&harness.gate, &[("toolu_t", "12:00")]).await;
                assert_eq!(reply.text, "Done.");
            }
            assert!(made.exists());
            let results = harness.model_messages()[2]["content"].clone();
            assert_eq!(results.as_array().map(Vec::len), Some(3), "{results}");
            assert!(results.to_string().contains("12:00"), "{results}");
            assert_eq!(harness.model_requests().len(), 2);
        }
    }
}

#[tokio::test]
async fn a_call_that_was_undecided_when_its_process_died_gets_an_error_result() {
    // A11, X2
    for program in programs() {
        let (harness, mut approver) = asking(&program, &["Bash"], GONE).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        harness.queue(message(&[
            Block::Text("Both."),
            Block::Call("toolu_b", "Bash", bash("echo made > made-by-the-agent")),
            Block::Call("toolu_t", "mcp__client__get_time", json!({})),
        ]));
        client.say(&harness.gate, "go").await;
        let asked = approver.next_request().await;
        harness.kill_all();
        asked.expect_withdrawn().await;
        harness.queue(message(&[Block::Text("Done.")]));
        let reply = client.answer(&harness.gate, &[("toolu_t", "12:00")]).await;
        assert_eq!(reply.text, "Done.");
        let results = harness.model_messages()[2]["content"].clone();
        assert_eq!(results.as_array().map(Vec::len), Some(2), "{results}");
        assert!(results[0].to_string().contains("may or may not have run"), "{results}");
    }
}

#[tokio::test]
async fn a_process_with_an_open_approval_is_not_evicted() {
    for program in programs() {
        let (mut approver, decider) = Approver::new();
        let harness = Harness::set(&program, |config| {
            config.agent.builtins = Builtins::Only(vec!["Bash".to_owned()]);
            // The stream begins while its request still waits for a process.
            config.config.limits.commit_after = Duration::from_millis(100);
            (config.agent.pool.warm, config.agent.pool.max) = (0, 1);
            config.agent.pool.queue_wait = Duration::from_mins(5);
            config.surroundings.decider = Some(decider);
        })
        .await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        harness.queue(message(&[
            Block::Call("toolu_b", "Bash", bash("echo made > made-by-the-agent")),
            Block::Call("toolu_t", "mcp__client__get_time", json!({})),
        ]));
        client.say(&harness.gate, "go").await;
        let asked = approver.next_request().await;
        let mut other = Client::new(Api::Messages, Delivery::Streamed);
        other.push(json!({ "role": "user", "content": "Me too." }));
        harness.queue(message(&[Block::Text("At last.")]));
        let mut waiting = other.send(&harness.gate).await;
        waiting.until("ping").await;
        asked.allow(Vec::new());
        waiting.until("At last.").await;
        assert!(harness.workdir().join("made-by-the-agent").exists());
        harness.queue(message(&[Block::Text("Done.")]));
        client.answer(&harness.gate, &[("toolu_t", "12:00")]).await;
        let results = harness.model_messages()[2]["content"].clone();
        assert_eq!(results.as_array().map(Vec::len), Some(2), "{results}");
        assert!(!results.to_string().contains("may or may not have run"), "{results}");
    }
}

#[tokio::test]
async fn permissions_given_to_the_program_do_not_bypass_the_gateway_and_change_no_file() {
    // agent 24
    for program in programs() {
        let (harness, mut approver) = asking(&program, &["Bash"], Duration::from_mins(10)).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        let mut settings = Vec::new();
        for number in 0..2 {
            harness.queue(message(&[Block::Call(&format!("toolu_{number}"), "Bash", bash("mkdir -p made"))]));
            harness.queue(message(&[Block::Text("Done.")]));
            let words = format!("go {number}");
            tokio::join!(client.say(&harness.gate, &words), async {
                let asked = approver.next_request().await;
                if number == 0 {
                    settings = settings_files(&harness);
                }
                // All of them: a rule, a folder, and a mode in which the program would ask less.
                let updates = asked.request.suggestions.clone();
                asked.allow(updates);
            });
        }
        assert!(
            harness.model_messages().last().expect("a message").to_string().contains("toolu_1"),
            "and it ran"
        );
        assert_eq!(settings_files(&harness), settings);
    }
}

/// Every file that could hold permission rules, with its text.
fn settings_files(harness: &Harness) -> Vec<(String, String)> {
    let mut folders = vec![harness.workdir(), harness.private_folder()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        // The folders of a process are deleted when it ends.
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() {
                folders.push(path);
            } else if name.starts_with("settings") {
                files.push((path.display().to_string(), std::fs::read_to_string(path).expect("a text")));
            }
        }
    }
    files.sort();
    files
}

#[tokio::test]
async fn a_request_whose_client_disconnects_is_withdrawn() {
    // agent 26, 27
    for program in programs() {
        let (harness, mut approver) = asking(&program, &["Bash"], GONE).await;
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        client.push(json!({ "role": "user", "content": "go" }));
        harness.queue(message(&[
            Block::Text("I try."),
            Block::Call("toolu_b", "Bash", bash("echo made > made-by-the-agent")),
        ]));
        let mut answer = harness.gate.post("/v1/messages", &client.body()).await;
        answer.until("I try.").await;
        let asked = approver.next_request().await;
        drop(answer);
        asked.expect_withdrawn().await;
        harness.wait_for_no_processes().await;
        assert!(!harness.workdir().join("made-by-the-agent").exists());
    }
}

#[tokio::test]
async fn a_turn_that_a_person_ends_leaves_no_other_request_open() {
    // agent 26: the program withdraws the other request and ends the turn
    for program in programs() {
        let (harness, mut approver) = asking(&program, &["Read"], GONE).await;
        let folder = tempfile::tempdir().expect("a folder");
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        for path in &paths {
            std::fs::write(path, "text").expect("a file");
        }
        let reads = paths.map(|path| json!({ "file_path": path.display().to_string() }));
        harness.queue(message(&[
            Block::Call("toolu_a", "Read", reads[0].clone()),
            Block::Call("toolu_b", "Read", reads[1].clone()),
        ]));
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        client.push(json!({ "role": "user", "content": "go" }));
        let body = client.body();
        let (answer, ()) = tokio::join!(harness.gate.post("/v1/messages", &body), async {
            let (first, second) = (approver.next_request().await, approver.next_request().await);
            first.deny_and_interrupt();
            second.expect_withdrawn().await;
        });
        let text = answer.text().await;
        assert!(approver.has_no_request());
        assert_eq!(harness.model_requests().len(), 1, "{text}");
    }
}

/// Returns when the condition holds.
async fn until(is_so: impl Fn() -> bool) {
    let soon = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(2), soon).await.expect("the condition holds in time");
}
