//! Questions about tool uses, and their answers. A question has exactly one outcome: a decision, the end of its time, or
//! its withdrawal.
//!
//! The serialised names are part of the HTTP API and of the store's format.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::text_id;

text_id! {
    /// Identifies a question.
    QuestionId
}

/// A tool use that a person must decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Identifies the question.
    pub id: QuestionId,
    /// What the agent wants to do.
    #[serde(flatten)]
    pub tool_use: ToolUse,
    /// Why a person is asked, in words.
    pub why: String,
    /// When it was asked, in Unix milliseconds.
    pub asked_at: i64,
    /// When it is denied if nobody answers, in Unix milliseconds; `None` if it waits for ever.
    pub deadline: Option<i64>,
}

/// A tool use that an agent asks permission for. All text in it comes from the agent and must not be trusted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The agent.
    pub agent: String,
    /// The caller whose turn it is.
    pub caller: String,
    /// The session.
    pub session: String,
    /// The turn, if the gateway runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The sub-agent that makes the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_agent: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// The call's input.
    pub input: Value,
    /// A sentence about the call, by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the call is for, by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The agent's own reason for asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The path outside the agent's folders that made it ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_path: Option<String>,
    /// Permission updates that the agent proposes. One of them may allow everything: apply only what a person ticked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<PermissionUpdate>,
}

/// A change of permissions, in the agent's own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PermissionUpdate {
    /// Adds rules.
    AddRules(RuleChange),
    /// Replaces the rules with this behaviour.
    ReplaceRules(RuleChange),
    /// Removes rules.
    RemoveRules(RuleChange),
    /// Changes the mode: `acceptEdits` allows all edits.
    SetMode {
        /// The mode.
        mode: String,
        /// Where the agent would keep it.
        destination: UpdateDestination,
    },
    /// Adds folders that the agent may work in.
    AddDirectories {
        /// The folders.
        directories: Vec<String>,
        /// Where the agent would keep them.
        destination: UpdateDestination,
    },
    /// Removes folders.
    RemoveDirectories {
        /// The folders.
        directories: Vec<String>,
        /// Where the agent would keep the change.
        destination: UpdateDestination,
    },
}

/// Rules to add, replace or remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleChange {
    /// The rules.
    pub rules: Vec<AgentRule>,
    /// What they do.
    pub behavior: RuleBehavior,
    /// Where the agent would keep them.
    pub destination: UpdateDestination,
}

/// A rule in the agent's own words: `{"toolName": "Bash", "ruleContent": "npm test:*"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentRule {
    /// The tool.
    pub tool_name: String,
    /// What of the tool; `None` for every use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_content: Option<String>,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleBehavior {
    /// The tool runs.
    Allow,
    /// The tool does not run.
    Deny,
    /// A person decides.
    Ask,
}

/// Where an agent keeps a change. All but `Session` and `CliArg` are files of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UpdateDestination {
    /// The user's settings.
    UserSettings,
    /// The project's settings, shared with others.
    ProjectSettings,
    /// The project's settings for this user.
    LocalSettings,
    /// This session only.
    Session,
    /// The command line.
    CliArg,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "lowercase")]
pub enum Decision {
    /// The tool may run.
    Allow {
        /// Replaces the call's input.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// Permission updates that a person ticked.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        updates: Vec<PermissionUpdate>,
    },
    /// The tool may not run.
    Deny {
        /// The reason, shown to the model.
        message: String,
        /// True if the denial also ends the turn.
        #[serde(default)]
        interrupt: bool,
    },
    /// The tool does not run; the model gets this text as its result.
    Answer {
        /// The text.
        text: String,
    },
}

impl Decision {
    /// Allows the call as it is.
    pub const ALLOW: Self = Self::Allow { input: None, updates: Vec::new() };

    /// Denies the call; the turn goes on.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny { message: message.into(), interrupt: false }
    }
}

/// How a question ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resolution {
    /// The outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Who or what decided: `console`, `api`, `terminal`, `rule: …`.
    pub by: String,
    /// When, in Unix milliseconds.
    pub at: i64,
}

/// The outcome of a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It was answered.
    Decided(Decision),
    /// Nobody answered in time. This is not a refusal.
    TimedOut,
    /// The agent no longer needs an answer: the turn ended, or its process did.
    Withdrawn,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn permission_updates_keep_the_agents_own_json() {
        for update in [
            json!({ "type": "addRules", "rules": [{ "toolName": "Bash", "ruleContent": "npm test:*" }], "behavior": "allow", "destination": "localSettings" }),
            json!({ "type": "setMode", "mode": "acceptEdits", "destination": "session" }),
            json!({ "type": "addDirectories", "directories": ["/srv"], "destination": "cliArg" }),
        ] {
            let read: PermissionUpdate = serde_json::from_value(update.clone()).expect("an update");
            assert_eq!(serde_json::to_value(read).expect("JSON"), update);
        }
    }

    #[test]
    fn a_question_and_its_resolution_survive_json() {
        let tool_use =
            ToolUse { tool: "Bash".to_owned(), input: json!({ "command": "ls" }), ..ToolUse::default() };
        let question = Question {
            id: QuestionId::new("q"),
            tool_use,
            why: "no rule".to_owned(),
            asked_at: 1,
            deadline: None,
        };
        let written = serde_json::to_string(&question).expect("JSON");
        assert_eq!(serde_json::from_str::<Question>(&written).expect("a question"), question);
        for outcome in [
            Outcome::Decided(Decision::ALLOW),
            Outcome::Decided(Decision::Answer { text: "42".to_owned() }),
            Outcome::TimedOut,
            Outcome::Withdrawn,
        ] {
            let resolution = Resolution { outcome, by: "api".to_owned(), at: 2 };
            let written = serde_json::to_string(&resolution).expect("JSON");
            assert_eq!(serde_json::from_str::<Resolution>(&written).expect("a resolution"), resolution);
        }
    }
}
