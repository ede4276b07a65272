//! The opening of a process: the system prompt and the client's tools, sent once before the first message.

use std::sync::Arc;

use toolgate_dialect::claude_stream_json::write::{self, AgentOpening, SystemPrompt};
use toolgate_dialect::claude_stream_json::{AgentTools, RequestId, ToolServer};
use toolgate_model::TurnError;
use toolgate_model::lineage::{Lineage, PrefixHash};
use uuid::Uuid;

use super::errors;
use super::launch::Launch;

/// How a process was opened.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) opening: AgentOpening,
    pub(super) tools: AgentTools,
    pub(super) fingerprint: OpeningFingerprint,
    pub(super) session: String,
    pub(super) caller: Arc<str>,
}

impl Setup {
    /// True if a process with this setup can continue a conversation that needs `other`.
    pub(super) fn matches(&self, other: &Self) -> bool {
        let Self { opening, tools, fingerprint: _, session: _, caller: _ } = self;
        (opening, tools) == (&other.opening, &other.tools)
    }

    /// True if the opening says everything the model will see. The default prompt includes a snapshot of the working
    /// directory, which must be taken when the conversation starts, not earlier.
    pub(super) fn is_self_contained(&self) -> bool {
        match &self.opening.system {
            SystemPrompt::Replace(_) | SystemPrompt::Only(_) => true,
            SystemPrompt::Default | SystemPrompt::Append(_) => false,
        }
    }
}

/// Identifies an opening, byte for byte, and its caller. Key order counts, as it does for prompt caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpeningFingerprint {
    hash: PrefixHash,
    pub(super) bytes: usize,
}

impl OpeningFingerprint {
    pub(super) fn of(caller: &str, description: &str) -> Self {
        let hash = Lineage::of(&format!("opening\n{caller:?}\n{description}"), &[]).whole();
        Self { hash, bytes: description.len() }
    }
}

/// The launch options and the opening as text, to be hashed.
pub(super) fn describe(launch: &Launch, opening: &AgentOpening, tools: &AgentTools) -> String {
    let tools = (tools.served(), &tools.builtins);
    format!("{launch:?}\n{opening:?}\n{tools:?}")
}

/// The progress of the `initialize` handshake.
#[derive(Default)]
pub(super) struct Handshake {
    server: ToolServer,
    stage: HandshakeStage,
}

#[derive(Default, PartialEq)]
enum HandshakeStage {
    #[default]
    NotSent,
    Sent(RequestId),
    Acknowledged,
}

impl Handshake {
    /// The `initialize` line; `None` if it was sent before, which was then with the same opening.
    pub(super) fn start(&mut self, opening: &AgentOpening, tools: &AgentTools) -> Option<String> {
        if self.stage != HandshakeStage::NotSent {
            return None;
        }
        self.server = ToolServer::new(tools);
        let id = RequestId::new(Uuid::now_v7().to_string());
        let line = write::initialize(&id, opening);
        self.stage = HandshakeStage::Sent(id);
        Some(line)
    }

    /// The program has answered one of our requests.
    pub(super) fn response<T>(&mut self, id: RequestId, outcome: Result<T, String>) -> Result<(), TurnError> {
        if self.stage != HandshakeStage::Sent(id) {
            return Ok(());
        }
        outcome.map_err(|why| errors::initialize_rejected(&why))?;
        self.stage = HandshakeStage::Acknowledged;
        Ok(())
    }

    pub(super) fn is_complete(&self) -> bool {
        self.stage == HandshakeStage::Acknowledged
    }

    /// The server that answers for the client's tools.
    pub(super) fn server(&self) -> &ToolServer {
        &self.server
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    impl Setup {
        /// A setup with only this system prompt.
        pub(in super::super) fn replacing(caller: &str, instructions: &str) -> Self {
            let system = SystemPrompt::Replace(vec![instructions.to_owned()]);
            let opening = AgentOpening { system, ..AgentOpening::default() };
            let description = describe(&Launch::default(), &opening, &AgentTools::default());
            let (tools, session) = (AgentTools::default(), String::new());
            let (fingerprint, caller) = (OpeningFingerprint::of(caller, &description), caller.into());
            Self { opening, tools, fingerprint, session, caller }
        }
    }

    fn fingerprint(caller: &str, launch: &Launch, schema: &str) -> OpeningFingerprint {
        let schema: serde_json::Value = serde_json::from_str(schema).expect("JSON");
        let tool = json!({ "name": "a", "description": "d", "input_schema": schema });
        let tools = AgentTools::new(&[tool], &[]).value;
        OpeningFingerprint::of(caller, &describe(launch, &AgentOpening::default(), &tools))
    }

    #[test]
    fn a_fingerprint_is_equal_only_for_the_same_bytes_and_caller() {
        let usual = Launch::default();
        let first = fingerprint("alice", &usual, r#"{"type":"object","title":"t"}"#);
        assert_eq!(first, fingerprint("alice", &usual, r#"{ "type": "object", "title": "t" }"#));
        assert_ne!(
            first,
            fingerprint("alice", &usual, r#"{"title":"t","type":"object"}"#),
            "key order differs"
        );
        assert_ne!(first, fingerprint("bob", &usual, r#"{"type":"object","title":"t"}"#));
        let other = Launch { model: Some("large".to_owned()), ..Launch::default() };
        assert_ne!(first, fingerprint("alice", &other, r#"{"type":"object","title":"t"}"#));
    }
}
