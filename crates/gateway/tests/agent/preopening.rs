//! Preopened processes: who gets one, and that the conversation is the same with and without.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Api, Client, Delivery};
use crate::clock::ManualClock;
use crate::harness::{Block, Harness, HarnessConfig, message, programs};

const WEATHER: &str = "mcp__client__get_weather";

/// Longer than an equal request counts as a retry.
const LATER: Duration = Duration::from_mins(11);

/// The longest a test waits for a process, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A harness whose processes record the lines they receive.
struct Recorder {
    harness: Harness,
    clock: Arc<ManualClock>,
    /// Contains a file for each process.
    folder: TempDir,
}

/// The received lines by process id.
type ReceivedLines = BTreeMap<u32, Vec<Value>>;

impl Recorder {
    async fn new(program: &Path, change: impl FnOnce(&mut HarnessConfig)) -> Self {
        let folder = TempDir::new().expect("a folder");
        let wrapper = folder.path().join("program");
        let (program, records) = (program.display(), folder.path().display());
        let script = format!("#!/bin/sh\ntee \"{records}/received-$$\" | \"{program}\" \"$@\"\n");
        std::fs::write(&wrapper, script).expect("a file");
        std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755))
            .expect("it is made executable");
        let clock = Arc::new(ManualClock::default());
        let harness = Harness::set(&wrapper, |config| {
            config.surroundings.clock = Arc::clone(&clock) as _;
            change(config);
        })
        .await;
        Self { harness, clock, folder }
    }

    fn received(&self) -> ReceivedLines {
        let files = std::fs::read_dir(self.folder.path()).expect("a folder").flatten();
        let process = |path: PathBuf| {
            let id = path.file_name()?.to_str()?.strip_prefix("received-")?.parse().ok()?;
            let text = std::fs::read_to_string(path).ok()?;
            // The last line may be incomplete.
            let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            Some((id, lines.map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()))
        };
        files.filter_map(|file| process(file.path())).collect()
    }

    fn alive(&self) -> usize {
        self.received().keys().filter(|id| is_alive(**id)).count()
    }

    /// Waits for a process that is opened and has no conversation yet.
    async fn preopened_process(&self) -> u32 {
        let opened = async {
            loop {
                let received = self.received();
                let is_opened =
                    |lines: &[Value]| lines.iter().any(|line| line["request"]["subtype"] == "initialize");
                let mut unused = received.iter().filter(|(id, lines)| {
                    is_alive(**id) && is_opened(lines) && conversation_lines(lines) == 0
                });
                if let Some((id, _)) = unused.next() {
                    return *id;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TIMEOUT, opened).await.expect("a process is preopened")
    }

    /// Starts a conversation and returns the model request, without the program's session id.
    async fn start_conversation(&self, client: &mut Client) -> Value {
        self.clock.advance(LATER);
        self.harness.queue(message(&[Block::Text("Hello.")]));
        assert_eq!(client.say(&self.harness.gate, "Hello?").await.text, "Hello.");
        let mut asked = self.harness.model_requests().pop().expect("a question").json();
        asked.as_object_mut().expect("fields").remove("metadata");
        asked
    }

    /// Starts two conversations with equal openings and returns their model request.
    async fn start_two_equal(&self) -> Value {
        let first = self.start_conversation(&mut default_client()).await;
        assert_eq!(first, self.start_conversation(&mut default_client()).await);
        first
    }
}

fn is_alive(id: u32) -> bool {
    Path::new(&format!("/proc/{id}")).exists()
}

/// The number of conversation lines.
fn conversation_lines(lines: &[Value]) -> usize {
    lines.iter().filter(|line| line["type"] == "user" || line["type"] == "assistant").count()
}

fn default_client() -> Client {
    let mut client = Client::new(Api::Messages, Delivery::Whole);
    client.extra = json!({ "system": "Be brief." });
    client
}

#[tokio::test]
async fn the_third_equal_opening_finds_a_preopened_process_and_the_model_sees_no_difference() {
    for program in programs() {
        let recorder = Recorder::new(&program, |_| ()).await;
        let first = recorder.start_two_equal().await;
        assert!(first["system"].to_string().contains("Be brief."), "{first}");
        assert_eq!(first["tools"].as_array().map(Vec::len), Some(2), "{first}");

        let preopened = recorder.preopened_process().await;
        let mut client = default_client();
        assert_eq!(recorder.start_conversation(&mut client).await, first);
        assert_eq!(
            conversation_lines(&recorder.received()[&preopened]),
            1,
            "the preopened process served it"
        );

        // Its tools work, and it continues like any other process.
        let harness = &recorder.harness;
        harness.queue(message(&[Block::Call("toolu_a", WEATHER, json!({ "city": "Rome" }))]));
        assert_eq!(client.say(&harness.gate, "Rome?").await.calls.len(), 1);
        harness.queue(message(&[Block::Text("Warm.")]));
        client.answer(&harness.gate, &[("toolu_a", "20 C")]).await;
        assert_eq!(harness.model_messages(), client.expected[..5]);
        assert_eq!(conversation_lines(&recorder.received()[&preopened]), 2);

        // A conversation with history works too.
        let preopened = recorder.preopened_process().await;
        let mut elsewhere = default_client();
        elsewhere.history.clone_from(&client.history);
        elsewhere.expected.clone_from(&client.expected);
        elsewhere.history[0]["content"] = json!("Good morning?");
        elsewhere.expected[0]["content"][0]["text"] = json!("Good morning?");
        recorder.start_conversation(&mut elsewhere).await;
        assert_eq!(harness.model_messages(), elsewhere.expected[..7]);
        assert_eq!(conversation_lines(&recorder.received()[&preopened]), 7);
    }
}

#[tokio::test]
async fn another_opening_gets_its_own_instructions_and_tools_and_ends_the_preopened_process() {
    for program in programs() {
        for (instructions, tools) in
            [("Be long.", vec!["get_weather", "get_time"]), ("Be brief.", vec!["get_tide"])]
        {
            let recorder = Recorder::new(&program, |_| ()).await;
            recorder.start_two_equal().await;
            let preopened = recorder.preopened_process().await;
            let mut other = default_client();
            (other.extra, other.tools) = (json!({ "system": instructions }), tools);
            let asked = recorder.start_conversation(&mut other).await;
            assert!(asked["system"].to_string().contains(instructions), "{asked}");
            let offered = asked["tools"].as_array().expect("tools").iter();
            let mut offered: Vec<&str> = offered.filter_map(|tool| tool["name"].as_str()).collect();
            offered.sort_unstable();
            let mut visible: Vec<String> =
                other.tools.iter().map(|name| format!("mcp__client__{name}")).collect();
            visible.sort_unstable();
            assert_eq!(offered, visible);
            let ended = async {
                while is_alive(preopened) {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(TIMEOUT, ended).await.expect("the unusable process ends");
            assert_eq!(conversation_lines(&recorder.received()[&preopened]), 0);
        }
    }
}

#[tokio::test]
async fn a_preopened_process_is_evicted_for_another_opening() {
    for program in programs() {
        let recorder = Recorder::new(&program, |config| {
            (config.agent.pool.warm, config.agent.pool.max) = (1, 1);
            config.agent.pool.hold = Duration::from_millis(100);
        })
        .await;
        recorder.start_two_equal().await;
        let preopened = recorder.preopened_process().await;
        assert_eq!(recorder.alive(), 1);
        let mut other = default_client();
        other.extra = json!({ "system": "Be long." });
        recorder.start_conversation(&mut other).await;
        assert!(!is_alive(preopened));
        assert!(recorder.alive() <= 1, "{}", recorder.alive());
    }
}

#[tokio::test]
async fn a_killed_preopened_process_is_replaced() {
    for program in programs() {
        let recorder = Recorder::new(&program, |_| ()).await;
        let first = recorder.start_two_equal().await;
        recorder.preopened_process().await;
        recorder.harness.kill_all();
        assert_eq!(recorder.start_conversation(&mut default_client()).await, first);
        assert_eq!(recorder.harness.model_requests().len(), 3);
    }
}
