//! The words about a question: for the model, which must understand what happened and what to do now, and for webhooks.

use serde_json::json;
use toolgate_model::approval::{
    Decision, Outcome, PermissionUpdate, Question, Resolution, UpdateDestination,
};

use super::inbox::{BY_RULE, MAX_WAITING};
use super::{AfterTimeout, ApprovalConfig};

pub(super) const STOPPING: &str =
    "Permission denied: the gateway is stopping. This is not a refusal by the user.";

pub(super) const STORE_FAILED: &str = "Permission denied: the gateway could not record the question, so nobody could be \
                                       asked. This is not a refusal by the user. Stop here and report it.";

pub(super) fn denied_by_rule(rule: &str) -> String {
    format!("Permission denied by the rule `{rule}`. Do not retry it in another form.")
}

pub(super) fn too_many(why: &str) -> String {
    format!(
        "Permission denied: {why}, and {MAX_WAITING} other questions are already waiting for a person. Try again later."
    )
}

/// The answer to a question, as the agent gets it.
pub(super) fn decision(decision: Decision, by: &str) -> Decision {
    match decision {
        by_rule if by.starts_with(BY_RULE) => by_rule,
        Decision::Allow { input, updates } => Decision::Allow { input, updates: for_the_agent(&updates) },
        Decision::Deny { message, interrupt } => Decision::Deny { message: denied(&message), interrupt },
        Decision::Answer { text } => Decision::Answer { text: answered(&text) },
    }
}

/// The gateway decides by its own rules, so the agent needs none. It does need to know folders that it may work in.
fn for_the_agent(updates: &[PermissionUpdate]) -> Vec<PermissionUpdate> {
    let folders = updates.iter().filter_map(|update| match update {
        PermissionUpdate::AddDirectories { directories, destination: _ } => {
            Some(PermissionUpdate::AddDirectories {
                directories: directories.clone(),
                destination: UpdateDestination::Session,
            })
        }
        PermissionUpdate::AddRules(_)
        | PermissionUpdate::ReplaceRules(_)
        | PermissionUpdate::RemoveRules(_)
        | PermissionUpdate::SetMode { .. }
        | PermissionUpdate::RemoveDirectories { .. } => None,
    });
    folders.collect()
}

fn denied(reason: &str) -> String {
    if reason.is_empty() {
        "The user denied permission for this tool use. Do not retry it in another form. Continue without it, or ask the \
         user what to do instead."
            .to_owned()
    } else {
        format!("The user denied permission for this tool use and says: {reason}")
    }
}

fn answered(text: &str) -> String {
    format!(
        "The tool was not run. The user answered instead; take this answer as the tool's result and go on:\n\n{text}"
    )
}

/// The decision that the agent gets if nobody answered.
pub(super) fn timed_out(config: &ApprovalConfig) -> Decision {
    let waited = config.timeout.map(|timeout| format!(" within {timeout:?}")).unwrap_or_default();
    let message = format!(
        "Nobody answered this permission request{waited}. This is not a refusal: nobody has decided about it. Do not \
         try another way. Stop here and wait for the user."
    );
    Decision::Deny { message, interrupt: config.after_timeout == AfterTimeout::EndTurn }
}

/// The outcome in one word.
pub(super) fn outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Decided(Decision::Allow { .. }) => "allowed",
        Outcome::Decided(Decision::Deny { .. }) => "denied",
        Outcome::Decided(Decision::Answer { .. }) => "answered",
        Outcome::TimedOut => "timed out",
        Outcome::Withdrawn => "withdrawn",
    }
}

/// The webhook message about a new question.
pub(super) fn asked(question: &Question) -> String {
    json!({ "type": "approval.asked", "question": question }).to_string()
}

/// The webhook message about the end of a question.
pub(super) fn resolved(question: &Question, resolution: &Resolution) -> String {
    let kind = match resolution.outcome {
        Outcome::Decided(_) => "approval.decided",
        Outcome::TimedOut => "approval.expired",
        Outcome::Withdrawn => "approval.withdrawn",
    };
    json!({ "type": kind, "question": question, "resolution": resolution }).to_string()
}
