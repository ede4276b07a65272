//! `POST /hooks/permission-request`: the `PermissionRequest` hook of Claude Code and Codex, so that sessions that were
//! started elsewhere ask in the same inbox.
//!
//! An answer without a decision (`{}`) lets the program ask its own user, so it never allows anything.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_model::TurnError;
use toolgate_model::approval::{Decision, PermissionUpdate, ToolUse};
use toolgate_model::observed::{Observation, Subject};

use super::console::{answer_json, read_json, refuse};
use super::{Caller, check_media_type};
use crate::approval::{CODEX, Conclusion, Folder};
use crate::service::Worker;

/// The hook's event.
const EVENT: &str = "PermissionRequest";

/// The agent name of questions that come through Claude Code's hook.
const CLAUDE_CODE: &str = "claude-code (hook)";

/// The input of the hook, as far as it is used. Both programs send more.
#[derive(Deserialize)]
struct HookInput {
    hook_event_name: String,
    session_id: String,
    cwd: String,
    tool_name: String,
    tool_input: Value,
    #[serde(default)]
    permission_suggestions: Option<Vec<Value>>,
    /// Only Codex has it.
    turn_id: Option<String>,
    agent_id: Option<String>,
}

/// The program that calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    ClaudeCode,
    /// Refuses an answer with `updatedInput`, `updatedPermissions` or `interrupt`.
    Codex,
}

pub(super) async fn permission_request(
    State(worker): State<Arc<Worker>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    if let Err(error) = check_media_type(request.headers()) {
        return refuse(&error);
    }
    let input = match read_json::<HookInput>(request, &worker).await {
        Ok(input) => input,
        Err(error) => return refuse(&error),
    };
    if input.hook_event_name != EVENT {
        let message = format!("hook_event_name: this address is for the hook {EVENT}");
        return refuse(&TurnError::invalid_param("hook_event_name", message));
    }
    let program = if input.turn_id.is_some() { Program::Codex } else { Program::ClaudeCode };
    let folder = Folder::new(input.cwd.as_ref());
    let tool_use = tool_use(input, program, &caller);
    let shared = &worker.shared;
    let observed = Observation::external_session(&tool_use);
    shared.bus.publish(shared.clock.now(), Subject::of_tool_use(&tool_use), observed);
    let concluded = Arc::clone(&shared.inbox).conclude(tool_use, folder);
    let answer = tokio::select! {
        conclusion = concluded => match conclusion {
            Conclusion::Decided(decision) => output(program, decision),
            Conclusion::Unanswered => json!({}),
        },
        () = worker.tasks.stopping().cancelled() => json!({}),
    };
    answer_json(StatusCode::OK, &answer)
}

fn tool_use(input: HookInput, program: Program, caller: &Caller) -> ToolUse {
    let description = input.tool_input["description"].as_str().map(str::to_owned);
    let suggestions = input.permission_suggestions.unwrap_or_default();
    ToolUse {
        agent: match program {
            Program::ClaudeCode => CLAUDE_CODE,
            Program::Codex => CODEX,
        }
        .to_owned(),
        caller: caller.scope().to_string(),
        session: input.session_id,
        turn: input.turn_id,
        sub_agent: input.agent_id,
        tool: input.tool_name,
        input: input.tool_input,
        description,
        // Updates of an unknown type are left out: nobody could judge them.
        suggestions: suggestions
            .into_iter()
            .filter_map(|update| serde_json::from_value(update).ok())
            .collect(),
        ..ToolUse::default()
    }
}

/// The hook's output.
fn output(program: Program, decision: Decision) -> Value {
    let mut decided = match decision {
        Decision::Allow { input, updates } => allowed(input, &updates),
        Decision::Deny { message, interrupt: false } | Decision::Answer { text: message } => {
            json!({ "behavior": "deny", "message": message })
        }
        Decision::Deny { message, interrupt: true } => {
            json!({ "behavior": "deny", "message": message, "interrupt": true })
        }
    };
    if program == Program::Codex
        && let Some(decided) = decided.as_object_mut()
    {
        decided.retain(|field, _| matches!(field.as_str(), "behavior" | "message"));
    }
    json!({ "hookSpecificOutput": { "hookEventName": EVENT, "decision": decided } })
}

fn allowed(input: Option<Value>, updates: &[PermissionUpdate]) -> Value {
    let mut decided = json!({ "behavior": "allow" });
    if let Some(input) = input {
        decided["updatedInput"] = input;
    }
    if !updates.is_empty() {
        decided["updatedPermissions"] = json!(updates);
    }
    decided
}

#[cfg(test)]
mod tests {
    use toolgate_model::approval::UpdateDestination;

    use super::*;

    #[test]
    fn codex_never_gets_a_field_that_it_refuses() {
        let folders = PermissionUpdate::AddDirectories {
            directories: vec!["/x".to_owned()],
            destination: UpdateDestination::Session,
        };
        let edited = Decision::Allow { input: Some(json!({ "command": "ls" })), updates: vec![folders] };
        let stop = Decision::Deny { message: "No.".to_owned(), interrupt: true };
        let decided = |program, decision| output(program, decision)["hookSpecificOutput"]["decision"].take();
        assert_eq!(decided(Program::Codex, edited.clone()), json!({ "behavior": "allow" }));
        assert_eq!(decided(Program::Codex, stop.clone()), json!({ "behavior": "deny", "message": "No." }));
        assert_eq!(
            decided(Program::ClaudeCode, edited),
            json!({
                "behavior": "allow", "updatedInput": { "command": "ls" },
                "updatedPermissions": [{ "type": "addDirectories", "directories": ["/x"], "destination": "session" }],
            })
        );
        assert_eq!(
            decided(Program::ClaudeCode, stop),
            json!({ "behavior": "deny", "message": "No.", "interrupt": true })
        );
    }

    #[test]
    fn an_answer_instead_of_the_tool_is_a_denial_with_the_text() {
        let answered = output(Program::Codex, Decision::Answer { text: "42".to_owned() });
        let expected = json!({ "hookSpecificOutput": {
            "hookEventName": "PermissionRequest", "decision": { "behavior": "deny", "message": "42" },
        } });
        assert_eq!(answered, expected);
    }
}
