//! A gateway with one agent, and the scripted model that the agent uses.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate_backend::config::{AgentConfig, AgentName, BackendConfig, Builtins, ModelRoute, Via};
use toolgate_gateway::approval::{AfterTimeout, ApprovalConfig, Rule, Rules};
use toolgate_gateway::config::GatewayConfig;
use toolgate_testkit::{Received, Script, ScriptedUpstream};

use crate::gate::{Gate, Surroundings, config, route};

/// The longest a test waits for processes to end.
const TIMEOUT: Duration = Duration::from_mins(2);

/// The programs to test with, one per supported version. Missing programs fail the tests instead of skipping them.
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
pub(crate) struct Harness {
    pub(crate) gate: Gate,
    pub(crate) model: ScriptedUpstream,
    replies: Arc<Mutex<VecDeque<Script>>>,
    cleared: AtomicUsize,
    config: HarnessConfig,
    folder: TempDir,
}

/// What a test may configure.
pub(crate) struct HarnessConfig {
    pub(crate) agent: AgentConfig,
    pub(crate) config: GatewayConfig,
    pub(crate) models: Vec<ModelRoute>,
    pub(crate) surroundings: Surroundings,
}

impl Harness {
    pub(crate) async fn new(program: &Path) -> Self {
        Self::set(program, |_| ()).await
    }

    /// With a changed agent configuration.
    pub(crate) async fn with(program: &Path, change: impl FnOnce(&mut AgentConfig)) -> Self {
        Self::set(program, |config| change(&mut config.agent)).await
    }

    /// With these built-in tools and rules.
    pub(crate) async fn with_rules(program: &Path, tools: &[&str], rules: &[&str]) -> Self {
        Self::set(program, |config| {
            config.agent.builtins = Builtins::Only(tools.iter().map(|tool| (*tool).to_owned()).collect());
            config.config.approvals = approvals(rules);
        })
        .await
    }

    /// With any changed configuration.
    pub(crate) async fn set(program: &Path, change: impl FnOnce(&mut HarnessConfig)) -> Self {
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
        let mut config =
            HarnessConfig { agent, config: config(), models, surroundings: Surroundings::default() };
        config.config.approvals = approvals(&["allow Read"]);
        change(&mut config);
        Self::over(model, config, folder)
    }

    fn over(model: ScriptedUpstream, config: HarnessConfig, folder: TempDir) -> Self {
        let replies: Arc<Mutex<VecDeque<Script>>> = Arc::default();
        let queue = Arc::clone(&replies);
        model.always(move |request| {
            if !request.path.starts_with("/v1/messages") {
                // The program checks whether its API host responds.
                return Script::json(200, "{}");
            }
            let next = queue.lock().expect("the queue").pop_front();
            next.unwrap_or_else(|| {
                let last = conversation(&request.json()).pop().unwrap_or_default().to_string();
                let message = format!("the test expects no further model request, but got one: {last:.500}");
                Script::json(400, json!({ "error": { "message": message } }))
            })
        });
        let gate = start(&config);
        Self { config, gate, model, replies, cleared: AtomicUsize::new(0), folder }
    }

    /// Queues the model's next reply.
    pub(crate) fn queue(&self, reply: Script) {
        self.replies.lock().expect("the queue").push_back(reply);
    }

    /// Removes the replies that the model has not given.
    pub(crate) fn clear_queue(&self) {
        self.replies.lock().expect("the queue").clear();
    }

    /// Restarts the gateway; only its store survives.
    pub(crate) async fn restart(&mut self) {
        let old = std::mem::replace(&mut self.gate, start(&self.config));
        old.running.stop().await.expect("it stops");
    }

    /// Restarts the gateway with an empty store, as on another machine.
    pub(crate) async fn restart_elsewhere(&mut self) {
        self.config.surroundings.store = Surroundings::default().store;
        self.restart().await;
    }

    /// The ids of this agent's processes.
    pub(crate) fn processes(&self) -> Vec<u32> {
        processes(&self.config.agent)
    }

    /// Kills every process of the agent with SIGKILL.
    pub(crate) fn kill_all(&self) {
        for id in self.processes() {
            let killed = std::process::Command::new("kill").args(["-9", &id.to_string()]).status();
            assert!(killed.is_ok(), "kill runs");
        }
    }

    /// Stops the gateway and keeps the rest for inspection.
    pub(crate) async fn stop(self) -> Stopped {
        self.gate.running.stop().await.expect("it stops");
        Stopped { agent: self.config.agent, _folder: self.folder }
    }

    /// Returns when the agent has no process any more.
    pub(crate) async fn wait_for_no_processes(&self) {
        let gone = async {
            while !self.processes().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TIMEOUT, gone).await.expect("every process ends");
    }

    /// The agent's working directory.
    pub(crate) fn workdir(&self) -> PathBuf {
        self.config.agent.working_directory()
    }

    /// The agent's private folder, which contains the home directory of each process.
    pub(crate) fn private_folder(&self) -> PathBuf {
        self.config.agent.folder.clone()
    }

    /// The requests that the model has received.
    pub(crate) fn model_requests(&self) -> Vec<Received> {
        let asked =
            self.model.requests().into_iter().filter(|request| request.path.starts_with("/v1/messages"));
        asked.skip(self.cleared.load(Ordering::Relaxed)).collect()
    }

    /// Clears the list of received requests.
    pub(crate) fn clear_requests(&self) {
        self.cleared.fetch_add(self.model_requests().len(), Ordering::Relaxed);
    }

    /// The messages of the last model request.
    pub(crate) fn model_messages(&self) -> Vec<Value> {
        let asked = self.model_requests();
        conversation(&asked.last().expect("the model got a request").json())
    }
}

/// What is left of a harness whose gateway has stopped.
pub(crate) struct Stopped {
    agent: AgentConfig,
    _folder: TempDir,
}

impl Stopped {
    pub(crate) fn processes(&self) -> Vec<u32> {
        processes(&self.agent)
    }
}

/// Processes whose home directory is in the agent's private folder.
fn processes(agent: &AgentConfig) -> Vec<u32> {
    let home = format!("HOME={}/run/", agent.folder.display());
    let numbered = std::fs::read_dir("/proc").expect("a list of processes").flatten();
    let ids = numbered.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&home)
    })
    .collect()
}

/// These rules; what they do not decide is denied at once.
fn approvals(rules: &[&str]) -> ApprovalConfig {
    let rules = rules.iter().map(|rule| Rule::parse(rule).expect("a rule")).collect();
    ApprovalConfig {
        timeout: Some(Duration::from_millis(100)),
        after_timeout: AfterTimeout::Continue,
        rules: Rules::new(rules),
        ..ApprovalConfig::default()
    }
}

fn start(config: &HarnessConfig) -> Gate {
    let backends = BackendConfig {
        agents: vec![config.agent.clone()],
        models: config.models.clone(),
        ..BackendConfig::default()
    };
    Gate::start_in(&config.config, backends, config.surroundings.clone())
}

/// The messages without what the program adds: reminders, cache markers and the prefix of tool names.
pub(crate) fn conversation(body: &Value) -> Vec<Value> {
    let messages = body["messages"].as_array().expect("messages");
    let turns = messages.iter().filter(|message| message["role"] != "system");
    turns.map(|message| json!({ "role": message["role"], "content": content(&message["content"]) })).collect()
}

fn content(content: &Value) -> Value {
    if let Some(text) = content.as_str() {
        return json!([{ "type": "text", "text": text }]);
    }
    let is_note =
        |block: &&Value| block["text"].as_str().is_some_and(|text| text.starts_with("<system-reminder>"));
    let blocks = content.as_array().expect("blocks").iter().filter(|block| !is_note(block));
    // The program adds results in the order in which they are ready, which is arbitrary.
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

/// A content block of a scripted message.
pub(crate) enum Block<'a> {
    Text(&'a str),
    /// Id, name that the model uses, input.
    Call(&'a str, &'a str, Value),
}

/// A complete message of the scripted model.
pub(crate) fn message(blocks: &[Block<'_>]) -> Script {
    let mut stop = "end_turn";
    let mut script = start_message();
    for (index, block) in blocks.iter().enumerate() {
        let (block, delta) = match block {
            Block::Text(text) => {
                (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": text }))
            }
            Block::Call(id, name, input) => {
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

/// Only the first event of a message.
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
