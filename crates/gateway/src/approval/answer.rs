//! A person's answer to a question: checked, decided once, and turned into rules where the person wants that.

use serde_json::{Value, json};
use thiserror::Error;
use toolgate_model::approval::{Decision, Outcome, Question, QuestionId, Resolution, ToolUse};
use toolgate_state::{Resolved, StoreError, StoredRule};

use super::folder::Folder;
use super::grants::{NewRule, ScopeName, UpdateContext, rules_of};
use super::inbox::Inbox;
use super::verdict::{ASK_USER, Verdict};

/// The agent name of questions that come through Codex's hook. Its hook takes no edited input.
pub(crate) const CODEX: &str = "codex (hook)";

/// A person's answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) decision: Decision,
    /// Where ticked rules apply; `None` to follow each suggestion.
    pub(crate) scope: Option<ScopeName>,
    /// The way it came: `console`, `api`, `terminal`.
    pub(crate) by: String,
}

/// What an answer did.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) resolution: Resolution,
    /// The rules that it made.
    pub(crate) rules: Vec<StoredRule>,
    /// Why rules that it should have made are missing.
    pub(crate) warning: Option<String>,
}

/// Why an answer has no effect.
#[derive(Debug, Error)]
pub(crate) enum AnswerError {
    #[error("there is no such question")]
    Unknown,
    #[error("somebody else has answered this question")]
    Lost(Box<Resolution>),
    #[error("this question can no longer be answered")]
    Gone(Box<Resolution>),
    #[error("{0}")]
    Refused(String),
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl Inbox {
    /// Answers a question. The first answer counts.
    pub(crate) async fn answer(&self, id: &QuestionId, answer: Answer) -> Result<Answered, AnswerError> {
        let question = self.waiting_question(id).await?;
        let folder = self.folder_of(id).ok_or(AnswerError::Unknown)?;
        let (decision, rules) = self.check(&question, &folder, &answer).await?;
        let resolution =
            Resolution { outcome: Outcome::Decided(decision), by: answer.by, at: self.clock.now().0 };
        match self.store.resolve(id, &resolution).await? {
            Resolved::Now => {}
            Resolved::Before(before) => return Err(ended(before)),
            Resolved::Unknown => return Err(AnswerError::Unknown),
        }
        // The rules come first: the agent may ask for the same thing again at once.
        let added = if rules.is_empty() { Ok(Vec::new()) } else { self.add_rules(rules).await };
        self.deliver(id, &resolution).await;
        let (rules, warning) = match added {
            Ok(rules) => (rules, None),
            Err(error) => {
                tracing::warn!(%error, question = %id, "the rules of an answer could not be added");
                (Vec::new(), Some(error.to_string()))
            }
        };
        Ok(Answered { resolution, rules, warning })
    }

    /// Lets a question wait for ever.
    pub(crate) async fn keep_waiting(&self, id: &QuestionId) -> Result<Question, AnswerError> {
        self.waiting_question(id).await?;
        self.hold(id).await?;
        self.waiting_question(id).await
    }

    /// The question, if it still waits.
    async fn waiting_question(&self, id: &QuestionId) -> Result<Question, AnswerError> {
        self.recover().await?;
        let stored = self.store.question(id).await?.ok_or(AnswerError::Unknown)?;
        if let Some(resolution) = stored.resolution {
            return Err(ended(resolution));
        }
        self.end_overdue(&stored.question).await?;
        match self.store.question(id).await?.ok_or(AnswerError::Unknown)?.resolution {
            Some(resolution) => Err(ended(resolution)),
            None => Ok(stored.question),
        }
    }

    /// The decision as it is stored, and the rules that come with it.
    async fn check(
        &self,
        question: &Question,
        folder: &Folder,
        answer: &Answer,
    ) -> Result<(Decision, Vec<NewRule>), AnswerError> {
        let (input, updates) = match &answer.decision {
            Decision::Allow { input, updates } => (input.clone(), updates.clone()),
            Decision::Answer { text } if text.trim().is_empty() => {
                return Err(refused("an answer needs a `text`"));
            }
            other @ (Decision::Deny { .. } | Decision::Answer { .. }) => {
                return Ok((other.clone(), Vec::new()));
            }
        };
        let tool_use = &question.tool_use;
        let input = if tool_use.tool == ASK_USER {
            Some(answered_questions(&tool_use.input, input.as_ref())?)
        } else {
            input.filter(|input| *input != tool_use.input)
        };
        if let Some(input) = &input {
            if tool_use.agent == CODEX {
                return Err(refused("Codex takes no edited input: deny it, and say what to do instead"));
            }
            check_types(&tool_use.input, input)?;
            let edited = ToolUse { input: input.clone(), ..tool_use.clone() };
            if let Verdict::Deny(rule) = self.judge(&edited, folder).await? {
                return Err(refused(format!("the edited input is denied by the rule `{}`", rule.text)));
            }
        }
        let context = UpdateContext {
            scope: answer.scope,
            session: &tool_use.session,
            folder,
            question: &question.id,
            by: &answer.by,
        };
        let rules = rules_of(&updates, &context).map_err(AnswerError::Refused)?;
        Ok((Decision::Allow { input, updates }, rules))
    }
}

fn ended(resolution: Resolution) -> AnswerError {
    match resolution.outcome {
        Outcome::Decided(_) => AnswerError::Lost(Box::new(resolution)),
        Outcome::TimedOut | Outcome::Withdrawn => AnswerError::Gone(Box::new(resolution)),
    }
}

fn refused(why: impl Into<String>) -> AnswerError {
    AnswerError::Refused(why.into())
}

/// The questions as they were asked, with the answers: an object from question to answer.
fn answered_questions(asked: &Value, given: Option<&Value>) -> Result<Value, AnswerError> {
    let answers = given.map(|given| &given["answers"]).filter(|answers| answers.is_object());
    let Some(answers) = answers else {
        let example = r#"{"answers": {"QUESTION": "ANSWER"}}"#;
        return Err(refused(format!("{ASK_USER} needs answers: send `updated_input` as in {example}")));
    };
    let known: Vec<&str> = asked["questions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|question| question["question"].as_str())
        .collect();
    let unknown =
        answers.as_object().into_iter().flatten().find(|(question, _)| !known.contains(&question.as_str()));
    if let Some((question, _)) = unknown {
        return Err(refused(format!("`{question}` was not asked")));
    }
    let mut input = asked.clone();
    input["answers"] = json!(answers);
    Ok(input)
}

/// Built-in tools have no schema here, so an edited input is compared with the original one.
fn check_types(before: &Value, after: &Value) -> Result<(), AnswerError> {
    let Some(after) = after.as_object() else { return Err(refused("`updated_input` must be an object")) };
    for (name, value) in after {
        let original = &before[name.as_str()];
        if !original.is_null() && std::mem::discriminant(original) != std::mem::discriminant(value) {
            return Err(refused(format!("`updated_input`: `{name}` has another type than in the call")));
        }
    }
    Ok(())
}
