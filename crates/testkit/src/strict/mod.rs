//! Hosts as strict as the real ones: they refuse what the real host refuses, in its own words and format, and their
//! replies have its quirks.
//!
//! [`STRICT_HOSTS`] is a table of facts about hosts and models, written independently of the gateway's own table: it is
//! the oracle for it. A request passes two layers: the vendor's types ([`Schema`]) and the [`Rule`]s of the host. A
//! [`StrictHost`] remembers what it issued (signatures, thoughts), so that it notices what does not come back.

mod bases;
mod chat_messages;
mod chat_reply;
mod chat_rules;
mod claude_messages;
mod claude_models;
mod claude_rules;
mod hosts;
mod memory;
mod messages_reply;
mod openai_models;
mod profile;
mod refusal;
mod responses_reply;
mod responses_rules;
mod schema_rules;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use crate::{Received, Schema, Script, ScriptedUpstream};
pub use hosts::STRICT_HOSTS;
use memory::Memory;
use profile::{Rule, Thinking};
pub use profile::{StrictDialect, StrictProfile};

/// What the model of a strict host says in one turn. It thinks first if the request lets it think.
#[derive(Debug, Clone)]
pub enum HostTurn {
    /// A text.
    Text(&'static str),
    /// Calls, each with a name and arguments.
    Calls(Vec<(&'static str, Value)>),
}

/// A request and what became of it.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The request's body.
    pub body: Value,
    /// How it was received.
    pub verdict: Verdict,
}

/// How a strict host received a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It broke a rule.
    Refused(String),
    /// It was answered.
    Accepted {
        /// What the model thought, if it thought and the host shows it.
        thought: Option<String>,
        /// Whether the model thought.
        thinks: bool,
        /// What should have come back with the history and did not.
        missing: Vec<String>,
    },
}

/// A strict host behind a port of its own. Dropping it stops it.
#[derive(Debug)]
pub struct StrictHost {
    upstream: ScriptedUpstream,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    plan: VecDeque<HostTurn>,
    memory: Memory,
    exchanges: Vec<Exchange>,
}

impl StrictHost {
    /// Starts a host on a free loopback port.
    pub async fn start(profile: &'static StrictProfile) -> Self {
        let upstream = ScriptedUpstream::start().await;
        upstream.accept_anything();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        upstream.always(move |request| shared.lock().answer(profile, request));
        Self { upstream, state }
    }

    /// The URL that a gateway is configured with.
    pub fn base_url(&self) -> String {
        self.upstream.base_url()
    }

    /// Forgets all exchanges and plans the replies to the next accepted requests.
    pub fn plan(&self, turns: impl IntoIterator<Item = HostTurn>) {
        *self.state.lock() = State { plan: turns.into_iter().collect(), ..State::default() };
    }

    /// The exchanges since the last plan, oldest first.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.state.lock().exchanges.clone()
    }
}

impl State {
    fn answer(&mut self, profile: &StrictProfile, request: &Received) -> Script {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        if let Some(complaint) = profile.complaint(&request.path, &body, &self.memory) {
            self.exchanges.push(Exchange { body, verdict: Verdict::Refused(complaint.clone()) });
            return refusal::script(profile.errors, &complaint);
        }
        let turn = self.plan.pop_front().unwrap_or(HostTurn::Text("Nothing was planned."));
        let missing = self.memory.missing(profile, &body);
        let thinks = profile.thinks(&body);
        let reply = self.memory.issue(profile, &body, &turn);
        let verdict = Verdict::Accepted { thought: reply.shown_thought(), thinks, missing };
        let script = match profile.dialect {
            StrictDialect::Chat => chat_reply::script(profile, &body, &reply),
            StrictDialect::Messages => messages_reply::script(&body, &reply),
            StrictDialect::Responses => responses_reply::script(&body, &reply),
        };
        self.exchanges.push(Exchange { body, verdict });
        script
    }
}

impl StrictProfile {
    /// What the host would say against a request. `None` if it accepts it.
    fn complaint(&self, path: &str, body: &Value, memory: &Memory) -> Option<String> {
        let path = path.split('?').next().unwrap_or_default();
        if !path.ends_with(self.dialect.path()) {
            return Some(format!("there is no endpoint {path}"));
        }
        if body["model"] != self.model {
            return Some(format!("The model `{}` does not exist.", body["model"]));
        }
        if let Err(complaint) = self.schema.map_or(Ok(()), |schema| self.check_schema(schema, body)) {
            return Some(complaint);
        }
        let broken = match self.dialect {
            StrictDialect::Chat => chat_rules::broken(self, body, memory),
            StrictDialect::Messages => claude_rules::broken(self, body, memory),
            StrictDialect::Responses => responses_rules::broken(self, body, memory),
        };
        broken.err()
    }

    /// The vendor's type, without the fields that the host knows beyond it.
    fn check_schema(&self, schema: Schema, body: &Value) -> Result<(), String> {
        let mut body = body.clone();
        let Some(fields) = body.as_object_mut() else { return Err("the body is no object".to_owned()) };
        for name in self.more_fields {
            fields.remove(*name);
        }
        let messages = body.get_mut("messages").and_then(Value::as_array_mut);
        for message in messages.into_iter().flatten() {
            profile::remove_known_extensions(self, message);
        }
        schema.check(&body)
    }

    /// Whether the model thinks about this request.
    fn thinks(&self, body: &Value) -> bool {
        match self.thinking {
            Thinking::Never => false,
            Thinking::Always => true,
            Thinking::OpenAi => openai_models::thinks(self, body),
            Thinking::Claude => claude_models::thinks(self.model, body),
            Thinking::Effort { default } => match body["reasoning_effort"].as_str() {
                Some(effort) => effort != "none",
                None => default,
            },
            Thinking::Type { default } => match body["thinking"]["type"].as_str() {
                Some(kind) => kind != "disabled",
                None => default && body["reasoning_effort"] != "none",
            },
            Thinking::Enable { default } => body["enable_thinking"].as_bool().unwrap_or(default),
            Thinking::Reasoning { default } => {
                let (effort, enabled) = (&body["reasoning"]["effort"], &body["reasoning"]["enabled"]);
                match (effort.as_str().or(body["reasoning_effort"].as_str()), enabled.as_bool()) {
                    (_, Some(enabled)) => enabled,
                    (Some(effort), None) => effort != "none",
                    (None, None) => default,
                }
            }
        }
    }

    fn has(&self, wanted: &Rule) -> bool {
        self.rules.contains(wanted)
    }
}
