//! Processes that were told the usual beginning before anybody asked: who gets one, and that nobody can tell.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Api, Client, Delivery};
use crate::clock::StandingClock;
use crate::stage::{Piece, Setting, Stage, programs, says};

const WEATHER: &str = "mcp__client__get_weather";

/// Longer than the same words are taken for a retry.
const LATER: Duration = Duration::from_mins(11);

/// The longest a test waits for a process, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// A stage whose processes all write down what they are told.
struct Listening {
    stage: Stage,
    clock: Arc<StandingClock>,
    _folder: TempDir,
}

/// What a process was told, by its id.
type Told = BTreeMap<u32, Vec<Value>>;

impl Listening {
    async fn new(program: &Path, change: impl FnOnce(&mut Setting)) -> Self {
        let folder = TempDir::new().expect("a folder");
        let listener = folder.path().join("program");
        let script = format!("#!/bin/sh\ntee \"$HOME/told-$$\" | \"{}\" \"$@\"\n", program.display());
        std::fs::write(&listener, script).expect("a file");
        std::fs::set_permissions(&listener, std::fs::Permissions::from_mode(0o755)).expect("it may be run");
        let clock = Arc::new(StandingClock::default());
        let stage = Stage::set(&listener, |setting| {
            setting.surroundings.clock = Arc::clone(&clock) as _;
            change(setting);
        })
        .await;
        Self { stage, clock, _folder: folder }
    }

    fn told(&self) -> Told {
        let files = std::fs::read_dir(self.stage.home()).expect("a folder").flatten();
        let process = |path: PathBuf| {
            let id = path.file_name()?.to_str()?.strip_prefix("told-")?.parse().ok()?;
            let text = std::fs::read_to_string(path).ok()?;
            // The last line may still be on its way.
            let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            Some((id, lines.map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()))
        };
        files.filter_map(|file| process(file.path())).collect()
    }

    fn alive(&self) -> usize {
        self.told().keys().filter(|id| is_alive(**id)).count()
    }

    /// Waits for a process that was opened and has heard nobody's words yet.
    async fn opened_ahead(&self) -> u32 {
        let opened = async {
            loop {
                let told = self.told();
                let is_opened =
                    |lines: &[Value]| lines.iter().any(|line| line["request"]["subtype"] == "initialize");
                let mut spares =
                    told.iter().filter(|(id, lines)| is_alive(**id) && is_opened(lines) && words(lines) == 0);
                if let Some((id, _)) = spares.next() {
                    return *id;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, opened).await.expect("a process is opened ahead")
    }

    /// A conversation that begins: what the model was asked, without the program's name for its own session.
    async fn begins(&self, client: &mut Client) -> Value {
        self.clock.forward(LATER);
        self.stage.on(says(&[Piece::Text("Hello.")]));
        assert_eq!(client.say(&self.stage.gate, "Hello?").await.text, "Hello.");
        let mut asked = self.stage.asked().pop().expect("a question").json();
        asked.as_object_mut().expect("fields").remove("metadata");
        asked
    }

    /// What the model was asked in each of two conversations that begin alike.
    async fn two_begin_alike(&self) -> Value {
        let first = self.begins(&mut usual()).await;
        assert_eq!(first, self.begins(&mut usual()).await);
        first
    }
}

fn is_alive(id: u32) -> bool {
    Path::new(&format!("/proc/{id}")).exists()
}

/// How many lines of a conversation there are.
fn words(lines: &[Value]) -> usize {
    lines.iter().filter(|line| line["type"] == "user" || line["type"] == "assistant").count()
}

fn usual() -> Client {
    let mut client = Client::new(Api::Messages, Delivery::Whole);
    client.extra = json!({ "system": "Be brief." });
    client
}

#[tokio::test]
async fn the_third_that_begins_alike_finds_its_process_opened_and_its_model_hears_the_same() {
    for program in programs() {
        let listening = Listening::new(&program, |_| ()).await;
        let first = listening.two_begin_alike().await;
        assert!(first["system"].to_string().contains("Be brief."), "{first}");
        assert_eq!(first["tools"].as_array().map(Vec::len), Some(2), "{first}");

        let spare = listening.opened_ahead().await;
        let mut client = usual();
        assert_eq!(listening.begins(&mut client).await, first);
        assert_eq!(words(&listening.told()[&spare]), 1, "it was served by the process opened ahead");

        // Its tools work, and it goes on as any other.
        let stage = &listening.stage;
        stage.on(says(&[Piece::Call("toolu_a", WEATHER, json!({ "city": "Rome" }))]));
        assert_eq!(client.say(&stage.gate, "Rome?").await.calls.len(), 1);
        stage.on(says(&[Piece::Text("Warm.")]));
        client.answer(&stage.gate, &[("toolu_a", "20 C")]).await;
        assert_eq!(stage.heard(), client.said[..5]);
        assert_eq!(words(&listening.told()[&spare]), 2);

        // And so does one that was told to another process before.
        let spare = listening.opened_ahead().await;
        let mut elsewhere = usual();
        elsewhere.history.clone_from(&client.history);
        elsewhere.said.clone_from(&client.said);
        elsewhere.history[0]["content"] = json!("Good morning?");
        elsewhere.said[0]["content"][0]["text"] = json!("Good morning?");
        listening.begins(&mut elsewhere).await;
        assert_eq!(stage.heard(), elsewhere.said[..7]);
        assert_eq!(words(&listening.told()[&spare]), 7);
    }
}

#[tokio::test]
async fn one_that_begins_otherwise_has_its_own_instructions_and_tools_and_the_guess_is_given_up() {
    for program in programs() {
        for (instructions, tools) in
            [("Be long.", vec!["get_weather", "get_time"]), ("Be brief.", vec!["get_tide"])]
        {
            let listening = Listening::new(&program, |_| ()).await;
            listening.two_begin_alike().await;
            let spare = listening.opened_ahead().await;
            let mut other = usual();
            (other.extra, other.tools) = (json!({ "system": instructions }), tools);
            let asked = listening.begins(&mut other).await;
            assert!(asked["system"].to_string().contains(instructions), "{asked}");
            let offered = asked["tools"].as_array().expect("tools").iter();
            let mut offered: Vec<&str> = offered.filter_map(|tool| tool["name"].as_str()).collect();
            offered.sort_unstable();
            let mut visible: Vec<String> =
                other.tools.iter().map(|name| format!("mcp__client__{name}")).collect();
            visible.sort_unstable();
            assert_eq!(offered, visible);
            let ended = async {
                while is_alive(spare) {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(PATIENCE, ended).await.expect("nobody can use it, so it ends");
            assert_eq!(words(&listening.told()[&spare]), 0);
        }
    }
}

#[tokio::test]
async fn a_process_opened_ahead_makes_room_for_whoever_comes() {
    for program in programs() {
        let listening = Listening::new(&program, |setting| {
            (setting.agent.pool.warm, setting.agent.pool.max) = (1, 1);
            setting.agent.pool.hold = Duration::from_millis(100);
        })
        .await;
        listening.two_begin_alike().await;
        let spare = listening.opened_ahead().await;
        assert_eq!(listening.alive(), 1);
        let mut other = usual();
        other.extra = json!({ "system": "Be long." });
        listening.begins(&mut other).await;
        assert!(!is_alive(spare));
        assert!(listening.alive() <= 1, "{}", listening.alive());
    }
}

#[tokio::test]
async fn a_process_opened_ahead_that_is_killed_is_not_missed() {
    for program in programs() {
        let listening = Listening::new(&program, |_| ()).await;
        let first = listening.two_begin_alike().await;
        listening.opened_ahead().await;
        listening.stage.kill_all();
        assert_eq!(listening.begins(&mut usual()).await, first);
        assert_eq!(listening.stage.asked().len(), 3);
    }
}
