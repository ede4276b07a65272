//! A gateway with one agent, and the scripted model the agent thinks with.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate_backend::config::{AgentConfig, AgentName, BackendConfig, Builtins, ModelRoute, Via};
use toolgate_gateway::approval::{ApprovalConfig, Rule, Rules};
use toolgate_gateway::config::GatewayConfig;
use toolgate_testkit::{Received, Script, ScriptedUpstream};

use crate::gate::{Gate, Surroundings, config, route};

/// The longest a test waits for processes to end.
const PATIENCE: Duration = Duration::from_mins(2);

/// The programs to test with, of both generations. Without them nothing would be tested, and that must show.
pub(crate) fn programs() -> Vec<PathBuf> {
    ["CLAUDE_CODE_OLDER", "CLAUDE_CODE_CURRENT"].map(program).to_vec()
}

fn program(variable: &str) -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "the only way for `cargo xtask test` to tell")]
    let named = std::env::var(variable).map(PathBuf::from);
    let Some(program) = named.ok().filter(|program| program.is_file()) else {
        panic!(
            "{variable} names no program: `cargo xtask test` installs Claude Code and sets it; to leave these tests \
             out, run `cargo nextest run --profile quick`"
        );
    };
    program
}

/// A gateway whose model `agent` is Claude Code.
pub(crate) struct Stage {
    pub(crate) gate: Gate,
    pub(crate) model: ScriptedUpstream,
    answers: Arc<Mutex<VecDeque<Script>>>,
    forgotten: AtomicUsize,
    setting: Setting,
    folder: TempDir,
}

/// What a test may choose.
pub(crate) struct Setting {
    pub(crate) agent: AgentConfig,
    pub(crate) config: GatewayConfig,
    pub(crate) models: Vec<ModelRoute>,
    pub(crate) surroundings: Surroundings,
}

impl Stage {
    pub(crate) async fn new(program: &Path) -> Self {
        Self::set(program, |_| ()).await
    }

    /// With an agent changed as the test needs it.
    pub(crate) async fn with(program: &Path, change: impl FnOnce(&mut AgentConfig)) -> Self {
        Self::set(program, |setting| change(&mut setting.agent)).await
    }

    /// With rules for the agent's own tools.
    pub(crate) async fn with_rules(program: &Path, tools: &[&str], rules: &[&str]) -> Self {
        Self::set(program, |setting| {
            setting.agent.builtins = Builtins::Only(tools.iter().map(|tool| (*tool).to_owned()).collect());
            let rules = rules.iter().map(|rule| Rule::parse(rule).expect("a rule")).collect();
            setting.config.approvals =
                ApprovalConfig { timeout: Duration::from_millis(100), rules: Rules::new(rules) };
        })
        .await
    }

    /// With anything changed as the test needs it.
    pub(crate) async fn set(program: &Path, change: impl FnOnce(&mut Setting)) -> Self {
        let model = ScriptedUpstream::start().await;
        let folder = TempDir::new().expect("a folder");
        let mut agent = AgentConfig::new("claude", program.to_owned(), folder.path().to_owned());
        let address = model.base_url().trim_end_matches("/v1").to_owned();
        for (name, value) in [
            ("ANTHROPIC_BASE_URL", address.as_str()),
            ("ANTHROPIC_API_KEY", "k"),
            ("CLAUDE_CODE_MAX_RETRIES", "0"),
        ] {
            agent.env.push((name.to_owned(), value.to_owned().into()));
        }
        let models =
            vec![route("agent", &[Via::Agent(AgentName::new("claude"))]), route("demo", &[Via::Demo])];
        let mut setting = Setting { agent, config: config(), models, surroundings: Surroundings::default() };
        change(&mut setting);
        Self::over(model, setting, folder)
    }

    fn over(model: ScriptedUpstream, setting: Setting, folder: TempDir) -> Self {
        let answers: Arc<Mutex<VecDeque<Script>>> = Arc::default();
        let queue = Arc::clone(&answers);
        model.always(move |request| {
            if !request.path.starts_with("/v1/messages") {
                // The program looks whether its host is there.
                return Script::json(200, "{}");
            }
            let next = queue.lock().expect("the queue").pop_front();
            next.unwrap_or_else(|| {
                let last = conversation(&request.json()).pop().unwrap_or_default().to_string();
                let message = format!("the test expects no more questions, and here is one: {last:.500}");
                Script::json(400, json!({ "error": { "message": message } }))
            })
        });
        let gate = start(&setting);
        Self { setting, gate, model, answers, forgotten: AtomicUsize::new(0), folder }
    }

    /// What the model answers next.
    pub(crate) fn on(&self, answer: Script) {
        self.answers.lock().expect("the queue").push_back(answer);
    }

    /// The gateway as it is after a restart: nothing of the old one is left but its store.
    pub(crate) async fn restart(&mut self) {
        let old = std::mem::replace(&mut self.gate, start(&self.setting));
        old.running.stop().await.expect("it stops");
    }

    /// The same on a machine that has never heard of anything.
    pub(crate) async fn restart_elsewhere(&mut self) {
        self.setting.surroundings.store = Surroundings::default().store;
        self.restart().await;
    }

    /// The processes of this agent, as the system lists them.
    pub(crate) fn processes(&self) -> Vec<u32> {
        processes(&self.setting.agent)
    }

    /// Ends every process of the agent as the hardest fault would.
    pub(crate) fn kill_all(&self) {
        for id in self.processes() {
            let killed = std::process::Command::new("kill").args(["-9", &id.to_string()]).status();
            assert!(killed.is_ok(), "kill can be run");
        }
    }

    /// Stops the gateway; the rest stays to be looked at.
    pub(crate) async fn stop(self) -> Stopped {
        self.gate.running.stop().await.expect("it stops");
        Stopped { agent: self.setting.agent, _folder: self.folder }
    }

    /// Returns when the system lists no process of the agent any more.
    pub(crate) async fn until_no_process_is_left(&self) {
        let gone = async {
            while !self.processes().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, gone).await.expect("every process ends");
    }

    /// Where the agent works.
    pub(crate) fn workdir(&self) -> PathBuf {
        self.setting.agent.working_directory()
    }

    /// Its private home.
    pub(crate) fn home(&self) -> PathBuf {
        self.setting.agent.folder.clone()
    }

    /// What the model was asked to answer so far.
    pub(crate) fn asked(&self) -> Vec<Received> {
        let asked =
            self.model.requests().into_iter().filter(|request| request.path.starts_with("/v1/messages"));
        asked.skip(self.forgotten.load(Ordering::Relaxed)).collect()
    }

    /// Forgets what the model was asked so far.
    pub(crate) fn forget(&self) {
        self.forgotten.fetch_add(self.asked().len(), Ordering::Relaxed);
    }

    /// The conversation as the model got it last.
    pub(crate) fn heard(&self) -> Vec<Value> {
        let asked = self.asked();
        conversation(&asked.last().expect("the model was asked").json())
    }
}

/// What is left of a stage whose gateway has stopped.
pub(crate) struct Stopped {
    agent: AgentConfig,
    _folder: TempDir,
}

impl Stopped {
    pub(crate) fn processes(&self) -> Vec<u32> {
        processes(&self.agent)
    }
}

/// Those that have the agent's private home, but not those that run its tools.
fn processes(agent: &AgentConfig) -> Vec<u32> {
    let home = format!("HOME={}\0", agent.folder.display());
    let numbered = std::fs::read_dir("/proc").expect("a list of processes").flatten();
    let ids = numbered.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&home)
    })
    .collect()
}

fn start(setting: &Setting) -> Gate {
    let backends = BackendConfig {
        agents: vec![setting.agent.clone()],
        models: setting.models.clone(),
        ..BackendConfig::default()
    };
    Gate::start_in(&setting.config, backends, setting.surroundings.clone())
}

/// A message without what the program adds for itself: notes, cache marks and the prefix of tool names.
pub(crate) fn conversation(body: &Value) -> Vec<Value> {
    let messages = body["messages"].as_array().expect("messages");
    let said = messages.iter().filter(|message| message["role"] != "system");
    said.map(|message| json!({ "role": message["role"], "content": content(&message["content"]) })).collect()
}

fn content(content: &Value) -> Value {
    if let Some(text) = content.as_str() {
        return json!([{ "type": "text", "text": text }]);
    }
    let is_note =
        |block: &&Value| block["text"].as_str().is_some_and(|text| text.starts_with("<system-reminder>"));
    let blocks = content.as_array().expect("blocks").iter().filter(|block| !is_note(block));
    // Results of one message come in the order in which they were ready: which that is means nothing.
    let mut blocks: Vec<Value> = blocks.map(block).collect();
    blocks.sort_by_key(|block| block["tool_use_id"].as_str().map_or_else(|| "~".to_owned(), str::to_owned));
    Value::Array(blocks)
}

fn block(block: &Value) -> Value {
    let mut block = block.clone();
    let fields = block.as_object_mut().expect("a block");
    for own in ["cache_control", "caller"] {
        fields.remove(own);
    }
    if fields.get("is_error") == Some(&json!(false)) {
        fields.remove("is_error");
    }
    if let Some(name) = fields.get("name").and_then(Value::as_str) {
        let bare = name.strip_prefix("mcp__client__").unwrap_or(name).to_owned();
        fields.insert("name".to_owned(), json!(bare));
    }
    if fields.get("type") == Some(&json!("tool_result"))
        && let Some(inner) = fields.get("content").cloned()
    {
        fields.insert("content".to_owned(), content(&inner));
    }
    block
}

/// A piece of what the scripted model says.
pub(crate) enum Piece<'a> {
    Text(&'a str),
    /// Id, name in the model's sight, input.
    Call(&'a str, &'a str, Value),
}

/// The model says this.
pub(crate) fn says(pieces: &[Piece<'_>]) -> Script {
    let mut stop = "end_turn";
    let mut script = start_message();
    for (index, piece) in pieces.iter().enumerate() {
        let (block, delta) = match piece {
            Piece::Text(text) => {
                (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": text }))
            }
            Piece::Call(id, name, input) => {
                stop = "tool_use";
                let delta = json!({ "type": "input_json_delta", "partial_json": input.to_string() });
                (json!({ "type": "tool_use", "id": id, "name": name, "input": {} }), delta)
            }
        };
        script =
            event(script, json!({ "type": "content_block_start", "index": index, "content_block": block }));
        script = event(script, json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        script = event(script, json!({ "type": "content_block_stop", "index": index }));
    }
    let delta = json!({ "stop_reason": stop, "stop_sequence": null });
    script =
        event(script, json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 7 } }));
    event(script, json!({ "type": "message_stop" }))
}

/// The first event of an answer, and nothing else yet.
pub(crate) fn start_message() -> Script {
    let usage = json!({
        "input_tokens": 20, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3, "output_tokens": 1,
    });
    let message = json!({
        "id": format!("msg_{}", uuid::Uuid::now_v7().simple()), "type": "message", "role": "assistant",
        "model": "scripted", "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    event(Script::sse(), json!({ "type": "message_start", "message": message }))
}

#[expect(clippy::needless_pass_by_value, reason = "every caller makes the event on the spot")]
fn event(script: Script, event: Value) -> Script {
    script.frame(event["type"].as_str().unwrap_or_default(), &event)
}
