//! The open approval requests of one process. Each waits independently, can be withdrawn, and is answered once.

use std::collections::HashMap;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;
use toolgate_dialect::claude_stream_json::write::{self, AfterDenial};
use toolgate_dialect::claude_stream_json::{PermissionRequest, RequestId};
use toolgate_model::approval::{Decision, PermissionUpdate, UpdateDestination};

/// The approval requests that wait for a decision.
#[derive(Default)]
pub(super) struct PendingApprovals {
    waiting: FuturesUnordered<BoxFuture<'static, Decided>>,
    open: HashMap<RequestId, CancellationToken>,
}

/// A request and its decision; `None` if it was withdrawn.
type Decided = (RequestId, PermissionRequest, Option<Decision>);

impl PendingApprovals {
    /// Adds a request and the future that decides it.
    pub(super) fn add(
        &mut self,
        id: RequestId,
        request: PermissionRequest,
        decision: BoxFuture<'static, Decision>,
    ) {
        let withdrawn = CancellationToken::new();
        self.open.insert(id.clone(), withdrawn.clone());
        self.waiting.push(Box::pin(async move {
            let decision = withdrawn.run_until_cancelled(decision).await;
            (id, request, decision)
        }));
    }

    /// The program no longer wants an answer: drops the decision future, so a late decision has no effect.
    pub(super) fn withdraw(&mut self, id: &RequestId) {
        if let Some(question) = self.open.remove(id) {
            question.cancel();
        }
    }

    /// True while a request is undecided.
    pub(super) fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Waits for the next decision and returns the line that answers it. Cancel safe.
    pub(super) async fn next_answer(&mut self) -> String {
        while let Some((id, request, decision)) = self.waiting.next().await {
            let is_open = self.open.remove(&id).is_some();
            if let Some(decision) = decision.filter(|_| is_open) {
                return answer(&id, &request, decision);
            }
        }
        std::future::pending().await
    }
}

/// The answer contains only what was decided, never the program's suggestions, and permission rules apply to the
/// session only: nothing is written to a file of this machine.
fn answer(id: &RequestId, request: &PermissionRequest, decision: Decision) -> String {
    match decision {
        Decision::Allow { input, updates } => {
            let updates: Vec<_> = updates.into_iter().map(session_scoped).collect();
            write::allow(id, input.as_ref().unwrap_or(&request.input), &updates, request.call.as_deref())
        }
        Decision::Deny { message, interrupt } => {
            let then = if interrupt { AfterDenial::EndTurn } else { AfterDenial::Continue };
            write::deny(id, &message, then)
        }
        // The protocol has no other way to give a result without running the tool.
        Decision::Answer { text } => write::deny(id, &text, AfterDenial::Continue),
    }
}

/// Limits a permission update to this session: the program would write other destinations to settings files.
fn session_scoped(mut update: PermissionUpdate) -> PermissionUpdate {
    let destination = match &mut update {
        PermissionUpdate::AddRules(change)
        | PermissionUpdate::ReplaceRules(change)
        | PermissionUpdate::RemoveRules(change) => &mut change.destination,
        PermissionUpdate::SetMode { destination, .. }
        | PermissionUpdate::AddDirectories { destination, .. }
        | PermissionUpdate::RemoveDirectories { destination, .. } => destination,
    };
    *destination = UpdateDestination::Session;
    update
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::{Value, json};
    use tokio::sync::oneshot;

    use super::*;

    fn request() -> PermissionRequest {
        let open_all = json!({ "type": "setMode", "mode": "acceptEdits", "destination": "session" });
        PermissionRequest {
            tool: "Bash".to_owned(),
            input: json!({ "command": "touch x" }),
            call: Some("toolu_1".to_owned()),
            suggestions: vec![serde_json::from_value(open_all).expect("an update")],
            ..PermissionRequest::default()
        }
    }

    fn answer_json(decision: Decision) -> Value {
        let line = answer(&RequestId::new("1"), &request(), decision);
        serde_json::from_str::<Value>(&line).expect("a line of JSON")["response"]["response"].take()
    }

    #[test]
    fn an_allowed_call_keeps_its_input_and_no_suggestion_is_echoed() {
        // agent 23
        let answer = answer_json(Decision::Allow { input: None, updates: Vec::new() });
        assert_eq!(answer["updatedInput"], json!({ "command": "touch x" }));
        assert!(!answer.to_string().contains("acceptEdits"), "{answer}");
    }

    #[test]
    fn permission_updates_apply_to_the_session_only() {
        // agent 24
        for destination in ["userSettings", "projectSettings", "localSettings", "session"] {
            let rules = json!([{ "toolName": "Bash", "ruleContent": "touch:*" }]);
            let update = |destination| json!({ "type": "addRules", "rules": rules, "behavior": "allow", "destination": destination });
            let chosen = serde_json::from_value(update(destination)).expect("an update");
            let answer = answer_json(Decision::Allow { input: None, updates: vec![chosen] });
            assert_eq!(answer["updatedPermissions"], json!([update("session")]));
        }
    }

    #[test]
    fn a_withdrawn_request_is_dropped_and_a_late_decision_has_no_effect() {
        // agent 26
        let mut approvals = PendingApprovals::default();
        let (late, decision) = oneshot::channel();
        let allow = || Decision::Allow { input: None, updates: Vec::new() };
        let decided = async move {
            decision.await.unwrap_or(Decision::Deny { message: String::new(), interrupt: false })
        };
        approvals.add(RequestId::new("1"), request(), Box::pin(decided));
        approvals.add(RequestId::new("2"), request(), Box::pin(std::future::pending()));
        assert_eq!(approvals.next_answer().now_or_never(), None);
        approvals.withdraw(&RequestId::new("1"));
        assert_eq!(approvals.next_answer().now_or_never(), None);
        assert!(late.send(allow()).is_err(), "the decision future was dropped");
        assert!(approvals.any_open(), "the other request is still open");
        approvals.add(RequestId::new("3"), request(), Box::pin(std::future::ready(allow())));
        let line = approvals.next_answer().now_or_never().expect("an answer");
        assert!(line.contains("\"3\""), "{line}");
    }
}
