//! What a process is told before the first line of a conversation, and keeps: its instructions and its client's tools.

use toolgate_dialect::claude_stream_json::write::{self, Opening, SystemPrompt};
use toolgate_dialect::claude_stream_json::{AgentTools, RequestId, ToolServer};
use toolgate_model::TurnError;
use toolgate_model::lineage::{Lineage, PrefixHash};
use uuid::Uuid;

use super::failure;
use super::launch::Launch;

/// What a process was told at its opening.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) opening: Opening,
    pub(super) tools: AgentTools,
    pub(super) wording: Wording,
    pub(super) session: String,
}

impl Setup {
    /// True where a process that knows the conversation may go on with it.
    pub(super) fn fits(&self, asked: &Self) -> bool {
        let Self { opening, tools, wording: _, session: _ } = self;
        (opening, tools) == (&asked.opening, &asked.tools)
    }

    /// True where the program makes nothing of it but what it was told. Its own prompt shows the model the state of its
    /// folder at the opening, and that must be the state at the conversation's beginning.
    pub(super) fn is_all_of_it(&self) -> bool {
        match &self.opening.system {
            SystemPrompt::Replace(_) => true,
            SystemPrompt::Own | SystemPrompt::Append(_) => false,
        }
    }
}

/// Every byte of how a conversation is begun, and whose it is. Key order counts here, as it does for a model's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wording {
    hash: PrefixHash,
    pub(super) bytes: usize,
}

impl Wording {
    pub(super) fn of(caller: &str, told: &str) -> Self {
        let hash = Lineage::of(&format!("opening\n{caller:?}\n{told}"), &[]).whole();
        Self { hash, bytes: told.len() }
    }
}

/// All that the start of a process and its opening say, as text.
pub(super) fn told(launch: &Launch, opening: &Opening, tools: &AgentTools) -> String {
    let tools = (tools.served(), &tools.builtins);
    format!("{launch:?}\n{opening:?}\n{tools:?}")
}

/// How far the opening of a process has come.
#[derive(Default)]
pub(super) struct Opened {
    server: ToolServer,
    stage: Stage,
}

#[derive(Default, PartialEq)]
enum Stage {
    #[default]
    Untold,
    Told(RequestId),
    Complete,
}

impl Opened {
    /// The line that opens the process; none where it was opened before, which was in the same words.
    pub(super) fn tell(&mut self, opening: &Opening, tools: &AgentTools) -> Option<String> {
        if self.stage != Stage::Untold {
            return None;
        }
        self.server = ToolServer::new(tools);
        let id = RequestId::new(Uuid::now_v7().to_string());
        let line = write::initialize(&id, opening);
        self.stage = Stage::Told(id);
        Some(line)
    }

    /// The program has answered a request of ours.
    pub(super) fn answered<T>(&mut self, id: RequestId, outcome: Result<T, String>) -> Result<(), TurnError> {
        if self.stage != Stage::Told(id) {
            return Ok(());
        }
        outcome.map_err(|why| failure::refused_opening(&why))?;
        self.stage = Stage::Complete;
        Ok(())
    }

    pub(super) fn is_complete(&self) -> bool {
        self.stage == Stage::Complete
    }

    /// Who answers for the client's tools.
    pub(super) fn server(&self) -> &ToolServer {
        &self.server
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    impl Setup {
        /// Opened with these instructions alone.
        pub(in super::super) fn replacing(caller: &str, instructions: &str) -> Self {
            let system = SystemPrompt::Replace(vec![instructions.to_owned()]);
            let opening = Opening { system, ..Opening::default() };
            let told = told(&Launch::default(), &opening, &AgentTools::default());
            let (tools, session) = (AgentTools::default(), String::new());
            Self { opening, tools, wording: Wording::of(caller, &told), session }
        }
    }

    fn wording(caller: &str, launch: &Launch, schema: &str) -> Wording {
        let schema: serde_json::Value = serde_json::from_str(schema).expect("JSON");
        let tool = json!({ "name": "a", "description": "d", "input_schema": schema });
        let tools = AgentTools::new(&[tool], &[]).value;
        Wording::of(caller, &told(launch, &Opening::default(), &tools))
    }

    #[test]
    fn a_wording_is_the_same_only_to_the_byte_and_for_the_same_caller() {
        let usual = Launch::default();
        let first = wording("alice", &usual, r#"{"type":"object","title":"t"}"#);
        assert_eq!(first, wording("alice", &usual, r#"{ "type": "object", "title": "t" }"#));
        assert_ne!(first, wording("alice", &usual, r#"{"title":"t","type":"object"}"#), "another order");
        assert_ne!(first, wording("bob", &usual, r#"{"type":"object","title":"t"}"#));
        let other = Launch { model: Some("large".to_owned()), ..Launch::default() };
        assert_ne!(first, wording("alice", &other, r#"{"type":"object","title":"t"}"#));
    }
}
