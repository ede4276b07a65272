//! People decide what the agent may do by itself: as late as they like, once or for the whole session.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_backend::config::Builtins;

use crate::client::{Api, Client, Delivery};
use crate::people::People;
use crate::stage::{Piece, Stage, programs, says};

/// No time at all: whatever waits no longer than this is over when somebody answers.
const GONE: Duration = Duration::from_millis(1);

/// A stage whose agent has these tools and asks people about them, and which waits for so long for its client.
async fn asking(program: &Path, tools: &[&str], hold: Duration) -> (Stage, People) {
    let (people, decider) = People::new();
    let stage = Stage::set(program, |setting| {
        setting.agent.builtins = Builtins::Only(tools.iter().map(|tool| (*tool).to_owned()).collect());
        (setting.agent.pool.hold, setting.agent.pool.warm) = (hold, 0);
        setting.config.approvals.timeout = GONE;
        setting.surroundings.decider = Some(decider);
    })
    .await;
    (stage, people)
}

fn bash(command: &str) -> Value {
    json!({ "command": command, "description": "d" })
}

#[tokio::test]
async fn a_late_yes_is_as_good_as_an_early_one_and_so_are_those_after_it() {
    // agent 21, 23: what was asked for is done as it was asked for
    for program in programs() {
        let (stage, mut people) = asking(&program, &["Bash"], GONE).await;
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        for number in 0..3 {
            let input = bash(&format!("echo 'kept: {number} as it was' > note-{number}"));
            stage.on(says(&[Piece::Call(&format!("toolu_{number}"), "Bash", input.clone())]));
            stage.on(says(&[Piece::Text("Done.")]));
            let words = format!("go {number}");
            let (reply, ()) = tokio::join!(client.say(&stage.gate, &words), async {
                let asked = people.asked().await;
                assert_eq!((asked.request.tool.as_str(), &asked.request.input), ("Bash", &input));
                assert!(!asked.request.session.is_empty());
                asked.allow(Vec::new());
            });
            assert_eq!(reply.text, "Done.");
            let note = std::fs::read_to_string(stage.workdir().join(format!("note-{number}")));
            assert_eq!(note.expect("the file is there"), format!("kept: {number} as it was\n"));
        }
        assert!(people.were_not_asked(), "each was asked about once");
    }
}

#[tokio::test]
async fn a_question_is_there_while_the_client_holds_a_call_of_the_same_message() {
    // A11, agent 13: whoever of the two comes first waits for the other
    for program in programs() {
        for client_is_first in [true, false] {
            let (stage, mut people) = asking(&program, &["Bash"], GONE).await;
            let mut client = Client::new(Api::Messages, Delivery::Whole);
            stage.on(says(&[
                Piece::Text("All."),
                Piece::Call("toolu_a", "Bash", bash("mkdir made")),
                Piece::Call("toolu_b", "Bash", bash("echo made > made/by-the-agent")),
                Piece::Call("toolu_t", "mcp__client__get_time", json!({})),
            ]));
            let reply = client.say(&stage.gate, "go").await;
            assert_eq!(reply.calls.len(), 1, "the client sees its own call alone");
            let first = people.asked().await;
            assert_eq!(first.request.session, reply.session);
            first.allow(Vec::new());
            let asked = people.asked().await;
            assert_eq!(asked.request.session, reply.session);
            stage.on(says(&[Piece::Text("Done.")]));
            let made = stage.workdir().join("made/by-the-agent");
            if client_is_first {
                let answered = client.answer(&stage.gate, &[("toolu_t", "12:00")]);
                let (reply, ()) = tokio::join!(answered, async { asked.allow(Vec::new()) });
                assert_eq!(reply.text, "Done.");
            } else {
                asked.allow(Vec::new());
                until(|| made.exists()).await;
                let reply = client.answer(&stage.gate, &[("toolu_t", "12:00")]).await;
                assert_eq!(reply.text, "Done.");
            }
            assert!(made.exists());
            let results = stage.heard()[2]["content"].clone();
            assert_eq!(results.as_array().map(Vec::len), Some(3), "{results}");
            assert!(results.to_string().contains("12:00"), "{results}");
            assert_eq!(stage.asked().len(), 2);
        }
    }
}

#[tokio::test]
async fn a_call_that_nobody_had_decided_when_its_process_died_is_told_as_perhaps_run() {
    // A11, X2
    for program in programs() {
        let (stage, mut people) = asking(&program, &["Bash"], GONE).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        stage.on(says(&[
            Piece::Text("Both."),
            Piece::Call("toolu_b", "Bash", bash("echo made > made-by-the-agent")),
            Piece::Call("toolu_t", "mcp__client__get_time", json!({})),
        ]));
        client.say(&stage.gate, "go").await;
        let asked = people.asked().await;
        stage.kill_all();
        asked.withdrawn().await;
        stage.on(says(&[Piece::Text("Done.")]));
        let reply = client.answer(&stage.gate, &[("toolu_t", "12:00")]).await;
        assert_eq!(reply.text, "Done.");
        let results = stage.heard()[2]["content"].clone();
        assert_eq!(results.as_array().map(Vec::len), Some(2), "{results}");
        assert!(results[0].to_string().contains("may or may not have run"), "{results}");
    }
}

#[tokio::test]
async fn a_process_with_an_open_question_makes_no_room_for_others_until_it_is_answered() {
    for program in programs() {
        let (mut people, decider) = People::new();
        let stage = Stage::set(&program, |setting| {
            setting.agent.builtins = Builtins::Only(vec!["Bash".to_owned()]);
            // A stream begins while its request still waits for a process.
            setting.config.limits.commit_after = Duration::from_millis(100);
            (setting.agent.pool.warm, setting.agent.pool.max) = (0, 1);
            setting.agent.pool.queue_wait = Duration::from_mins(5);
            setting.surroundings.decider = Some(decider);
        })
        .await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        stage.on(says(&[
            Piece::Call("toolu_b", "Bash", bash("echo made > made-by-the-agent")),
            Piece::Call("toolu_t", "mcp__client__get_time", json!({})),
        ]));
        client.say(&stage.gate, "go").await;
        let asked = people.asked().await;
        let mut other = Client::new(Api::Messages, Delivery::Streamed);
        other.push(json!({ "role": "user", "content": "Me too." }));
        stage.on(says(&[Piece::Text("At last.")]));
        let mut waiting = other.send(&stage.gate).await;
        waiting.until("ping").await;
        asked.allow(Vec::new());
        waiting.until("At last.").await;
        assert!(stage.workdir().join("made-by-the-agent").exists());
        stage.on(says(&[Piece::Text("Done.")]));
        client.answer(&stage.gate, &[("toolu_t", "12:00")]).await;
        let results = stage.heard()[2]["content"].clone();
        assert_eq!(results.as_array().map(Vec::len), Some(2), "{results}");
        assert!(!results.to_string().contains("may or may not have run"), "{results}");
    }
}

#[tokio::test]
async fn what_is_allowed_for_the_session_is_not_asked_again_and_changes_no_file() {
    // agent 24
    for program in programs() {
        let (stage, mut people) = asking(&program, &["Bash"], Duration::from_mins(10)).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        let mut settings = Vec::new();
        for number in 0..2 {
            stage.on(says(&[Piece::Call(&format!("toolu_{number}"), "Bash", bash("mkdir -p made"))]));
            stage.on(says(&[Piece::Text("Done.")]));
            let words = format!("go {number}");
            let asked = client.say(&stage.gate, &words);
            if number == 0 {
                let (_, ()) = tokio::join!(asked, async {
                    let asked = people.asked().await;
                    let rules =
                        asked.request.suggestions.iter().filter(|update| update["type"] == "addRules");
                    let rules: Vec<Value> = rules.cloned().collect();
                    assert!(!rules.is_empty(), "{:?}", asked.request.suggestions);
                    settings = settings_files(&stage);
                    asked.allow(rules);
                });
            } else {
                asked.await;
            }
        }
        assert!(people.were_not_asked(), "the second time nobody is asked");
        assert!(stage.heard().last().expect("a message").to_string().contains("toolu_1"), "and it ran");
        assert_eq!(settings_files(&stage), settings);
    }
}

/// Every file that could hold rules, with its text.
fn settings_files(stage: &Stage) -> Vec<(String, String)> {
    let mut folders = vec![stage.workdir(), stage.home()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
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
async fn a_question_whose_client_leaves_is_withdrawn() {
    // agent 26, 27
    for program in programs() {
        let (stage, mut people) = asking(&program, &["Bash"], GONE).await;
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        client.push(json!({ "role": "user", "content": "go" }));
        stage.on(says(&[
            Piece::Text("I try."),
            Piece::Call("toolu_b", "Bash", bash("echo made > made-by-the-agent")),
        ]));
        let mut answer = stage.gate.post("/v1/messages", &client.body()).await;
        answer.until("I try.").await;
        let asked = people.asked().await;
        drop(answer);
        asked.withdrawn().await;
        stage.until_no_process_is_left().await;
        assert!(!stage.workdir().join("made-by-the-agent").exists());
    }
}

#[tokio::test]
async fn a_turn_that_a_person_ends_leaves_no_other_question_open() {
    // agent 26: the program takes it back, and ends the turn
    for program in programs() {
        let (stage, mut people) = asking(&program, &["Read"], GONE).await;
        let folder = tempfile::tempdir().expect("a folder");
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        for path in &paths {
            std::fs::write(path, "text").expect("a file");
        }
        let reads = paths.map(|path| json!({ "file_path": path.display().to_string() }));
        stage.on(says(&[
            Piece::Call("toolu_a", "Read", reads[0].clone()),
            Piece::Call("toolu_b", "Read", reads[1].clone()),
        ]));
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        client.push(json!({ "role": "user", "content": "go" }));
        let body = client.body();
        let (answer, ()) = tokio::join!(stage.gate.post("/v1/messages", &body), async {
            let (first, second) = (people.asked().await, people.asked().await);
            first.deny_and_interrupt();
            second.withdrawn().await;
        });
        let text = answer.text().await;
        assert!(people.were_not_asked());
        assert_eq!(stage.asked().len(), 1, "{text}");
    }
}

/// Returns when it is so.
async fn until(is_so: impl Fn() -> bool) {
    let soon = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(2), soon).await.expect("it becomes so");
}
