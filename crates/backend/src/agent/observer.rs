//! What people may watch of an agent: everything the program does, also what the client never sees (A6, C6).

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use toolgate_dialect::claude_stream_json::{AgentTools, PermissionRequest, ToolProgress};
use toolgate_model::observed::{
    BackendKind, Observation, ObservedSession, ReplyWatcher, RunsIn, SessionName, SessionState, Subject,
    TurnStart, UsageCounts, new_results, opening_text, title,
};
use toolgate_model::{CallId, ToolName, ToolOutcome, TurnEvent, Usage};

use crate::turn::Turn;

/// Receives what happens in agents. It must never wait.
pub trait Observer: Send + Sync {
    /// Takes one event.
    fn observe(&self, subject: Subject, observation: Observation);
}

/// Observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn observe(&self, _: Subject, _: Observation) {}
}

/// Reports the events of one turn, and of the built-in calls that outlive it.
pub(super) struct TurnWatch {
    observer: Arc<dyn Observer>,
    subject: Subject,
    reply: ReplyWatcher,
    /// The number of the next block of a sub-agent.
    next_block: u32,
    /// The calls that have no result yet. Those of a sub-agent with the call that started it.
    open_calls: HashMap<String, Option<String>>,
    /// The calls that started sub-agents, by the program's id of the sub-agent.
    sub_agents: HashMap<String, String>,
}

impl Default for TurnWatch {
    /// Reports nothing.
    fn default() -> Self {
        let subject = Subject::session(SessionName::new(""));
        Self::of(Arc::new(NoObserver), subject)
    }
}

impl TurnWatch {
    pub(super) fn new(observer: &Arc<dyn Observer>, session: &str, turn: &Turn) -> Self {
        let subject = Subject::turn(SessionName::new(session), turn.id);
        Self::of(Arc::clone(observer), subject)
    }

    fn of(observer: Arc<dyn Observer>, subject: Subject) -> Self {
        Self {
            observer,
            subject,
            reply: ReplyWatcher::new(),
            next_block: 0,
            open_calls: HashMap::new(),
            sub_agents: HashMap::new(),
        }
    }

    /// The session is known and the turn starts, with the results that the client sent.
    pub(super) fn started(&self, turn: &Turn) {
        let model: Arc<str> = turn.request.model.as_str().into();
        self.send(Observation::Session(ObservedSession {
            caller: Arc::clone(&turn.caller),
            title: title(opening_text(&turn.request.messages)),
            model: Arc::clone(&model),
            backend: BackendKind::Agent,
            state: SessionState::Starting,
        }));
        self.send(Observation::TurnStarted(TurnStart { model, dialect: turn.dialect.name.into() }));
        new_results(&turn.request.messages).for_each(|result| self.send(result));
    }

    /// An event of the model's stream, before anything is hidden from the client.
    pub(super) fn event(&mut self, event: &TurnEvent, tools: &AgentTools) {
        let tool = |name: &ToolName| shown_tool(name.as_str(), tools);
        match self.reply.event(event, tool) {
            // The counts of one message. A turn may have many.
            Some(Observation::Usage(_)) | None => {}
            Some(observation) => {
                if let Observation::CallStarted { call, .. } = &observation {
                    self.open_calls.insert(call.as_str().to_owned(), None);
                }
                self.send(observation);
            }
        }
    }

    /// The usage of the turn so far.
    pub(super) fn usage(&self, usage: Option<&Usage>) {
        if let Some(usage) = usage {
            self.send(Observation::Usage(UsageCounts::from(usage)));
        }
    }

    /// A finished block of the model's message. The program sends it before the stream closes the block, and may ask
    /// about a call or run it at once.
    pub(super) fn finished_block(&mut self, message: &Value) {
        for block in message["content"].as_array().into_iter().flatten() {
            let complete = block["id"].as_str().and_then(|call| self.reply.input_complete(call));
            if let Some(complete) = complete {
                self.send(complete);
            }
        }
    }

    /// A finished message of a sub-agent, whose stream the program does not report.
    pub(super) fn sub_agent_message(&mut self, parent: &str, message: &Value, tools: &AgentTools) {
        for block in message["content"].as_array().into_iter().flatten() {
            let number = self.next_block;
            self.next_block = number.saturating_add(1);
            let text = |field: &str| block[field].as_str().unwrap_or_default().to_owned();
            let observation = match block["type"].as_str() {
                Some("text") => Observation::TextDelta { block: number, text: text("text") },
                Some("thinking") => Observation::ReasoningDelta { block: number, text: text("thinking") },
                Some("tool_use") => {
                    self.whole_call(
                        &text("id"),
                        Some(parent),
                        shown_tool(&text("name"), tools),
                        &block["input"],
                    );
                    continue;
                }
                Some(_) | None => continue,
            };
            self.observer.observe(self.subject.below(Some(parent)), observation);
        }
    }

    /// The program asks about a call. It asks about the calls of sub-agents before it sends their messages.
    pub(super) fn permission_asked(&mut self, request: &PermissionRequest, tools: &AgentTools) {
        if let Some(call) = &request.call {
            let parent = request.sub_agent.as_ref().and_then(|agent| self.sub_agents.get(agent).cloned());
            self.whole_call(call, parent.as_deref(), shown_tool(&request.tool, tools), &request.input);
        }
    }

    /// Reports a call with its complete input, unless it was reported before.
    fn whole_call(
        &mut self,
        id: &str,
        parent: Option<&str>,
        (tool, runs_in): (ToolName, RunsIn),
        input: &Value,
    ) {
        if self.open_calls.contains_key(id) {
            return;
        }
        self.open_calls.insert(id.to_owned(), parent.map(str::to_owned));
        let subject = self.subject.below(parent);
        let call = CallId::from(id);
        for observation in [
            Observation::CallStarted { call: call.clone(), tool, runs_in },
            Observation::InputDelta { call: call.clone(), text: input.to_string() },
            Observation::InputComplete { call },
        ] {
            self.observer.observe(subject.clone(), observation);
        }
    }

    /// Results of built-in calls in a message of the program.
    pub(super) fn results(&mut self, parent: Option<&str>, message: &Value, client_calls: &[String]) {
        let blocks = message["content"].as_array().into_iter().flatten();
        for block in blocks.filter(|block| block["type"] == "tool_result") {
            let call = block["tool_use_id"].as_str().unwrap_or_default();
            if client_calls.iter().any(|client_call| client_call == call) {
                continue;
            }
            self.open_calls.remove(call);
            let is_error = block["is_error"].as_bool().unwrap_or_default();
            let outcome = if is_error { ToolOutcome::Error } else { ToolOutcome::Success };
            let result = Observation::result(CallId::from(call), outcome, result_text(&block["content"]));
            self.observer.observe(self.subject.below(parent), result);
        }
    }

    /// A tool is running.
    pub(super) fn progress(&mut self, progress: ToolProgress) {
        let ToolProgress { call, parent, elapsed_ms, note, task } = progress;
        if let Some(task) = task {
            self.sub_agents.insert(task, call.clone());
        }
        let subject = self.subject.below(parent.as_deref().or_else(|| self.parent_of(&call)));
        let running = Observation::Running { call: CallId::new(call), elapsed_ms, note };
        self.observer.observe(subject, running);
    }

    /// A reporter of the moment in which a call is allowed to run.
    pub(super) fn when_allowed(&self, call: Option<&str>) -> impl FnOnce() + Send + 'static {
        let parent = call.and_then(|call| self.parent_of(call));
        let (observer, subject) = (Arc::clone(&self.observer), self.subject.below(parent));
        let call = call.map(CallId::from);
        move || {
            if let Some(call) = call {
                observer.observe(subject, Observation::Running { call, elapsed_ms: None, note: None });
            }
        }
    }

    /// The call that started the sub-agent which made this call.
    fn parent_of(&self, call: &str) -> Option<&str> {
        self.open_calls.get(call)?.as_deref()
    }

    fn send(&self, observation: Observation) {
        self.observer.observe(self.subject.clone(), observation);
    }
}

/// A tool under the client's name, and who runs it.
fn shown_tool(name: &str, tools: &AgentTools) -> (ToolName, RunsIn) {
    match tools.client_name(name) {
        Some(client_name) => (client_name.into(), RunsIn::Client),
        None => (name.into(), RunsIn::Agent),
    }
}

/// The text of a result: a string, or blocks.
fn result_text(content: &Value) -> String {
    let blocks = match content {
        Value::String(text) => return text.clone(),
        Value::Array(blocks) => blocks,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return String::new(),
    };
    let texts = blocks.iter().map(|block| match (block["type"].as_str(), block["text"].as_str()) {
        (_, Some(text)) => text.to_owned(),
        (kind, None) => format!("[{}]", kind.unwrap_or("other content")),
    });
    texts.collect::<Vec<_>>().join("\n")
}
