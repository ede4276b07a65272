//! The questions of one process that somebody decides: each waits by itself, may be withdrawn, and is answered once.

use std::collections::HashMap;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolgate_dialect::claude_stream_json::write::{self, AfterDenial};
use toolgate_dialect::claude_stream_json::{PermissionAsk, RequestId};

use super::decide::Decision;

/// The questions that wait for a decision.
#[derive(Default)]
pub(super) struct Questions {
    waiting: FuturesUnordered<BoxFuture<'static, Decided>>,
    open: HashMap<RequestId, CancellationToken>,
}

/// A question and its decision; none where it was withdrawn.
type Decided = (RequestId, PermissionAsk, Option<Decision>);

impl Questions {
    /// Adds a question, and who decides it.
    pub(super) fn ask(&mut self, id: RequestId, ask: PermissionAsk, decision: BoxFuture<'static, Decision>) {
        let withdrawn = CancellationToken::new();
        self.open.insert(id.clone(), withdrawn.clone());
        self.waiting.push(Box::pin(async move {
            let decision = withdrawn.run_until_cancelled(decision).await;
            (id, ask, decision)
        }));
    }

    /// The program no longer wants an answer: nobody is asked any more, and a late one goes nowhere.
    pub(super) fn withdraw(&mut self, id: &RequestId) {
        if let Some(question) = self.open.remove(id) {
            question.cancel();
        }
    }

    /// True while somebody is being asked.
    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Waits for the next decision: the line that tells it. May be dropped at any time.
    pub(super) async fn next_answer(&mut self) -> String {
        while let Some((id, ask, decision)) = self.waiting.next().await {
            let is_open = self.open.remove(&id).is_some();
            if let Some(decision) = decision.filter(|_| is_open) {
                return answer(&id, &ask, decision);
            }
        }
        std::future::pending().await
    }
}

/// Only what was decided goes back, never what was proposed, and none of it is written to a file of this machine.
fn answer(id: &RequestId, ask: &PermissionAsk, decision: Decision) -> String {
    match decision {
        Decision::Allow { input, updates } => {
            let updates: Vec<Value> = updates.into_iter().map(write::for_this_session).collect();
            write::allow(id, input.as_ref().unwrap_or(&ask.input), &updates, ask.call.as_deref())
        }
        Decision::Deny { message, interrupt } => {
            let then = if interrupt { AfterDenial::EndTurn } else { AfterDenial::GoOn };
            write::deny(id, &message, then)
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::json;
    use tokio::sync::oneshot;

    use super::*;

    fn ask() -> PermissionAsk {
        let open_all = json!({ "type": "setMode", "mode": "acceptEdits", "destination": "session" });
        PermissionAsk {
            tool: "Bash".to_owned(),
            input: json!({ "command": "touch x" }),
            call: Some("toolu_1".to_owned()),
            suggestions: vec![open_all],
            reason: None,
        }
    }

    fn told(decision: Decision) -> Value {
        let line = answer(&RequestId::new("1"), &ask(), decision);
        serde_json::from_str::<Value>(&line).expect("a line of JSON")["response"]["response"].take()
    }

    #[test]
    fn an_allowed_call_keeps_its_input_and_nothing_proposed_is_echoed() {
        // agent 23
        let told = told(Decision::Allow { input: None, updates: Vec::new() });
        assert_eq!(told["updatedInput"], json!({ "command": "touch x" }));
        assert!(!told.to_string().contains("acceptEdits"), "{told}");
    }

    #[test]
    fn what_is_always_allowed_is_so_for_the_session_and_in_no_file() {
        // agent 24
        for destination in ["userSettings", "projectSettings", "localSettings", "session"] {
            let rules = json!([{ "toolName": "Bash", "ruleContent": "touch:*" }]);
            let update = |destination| json!({ "type": "addRules", "rules": rules, "behavior": "allow", "destination": destination });
            let told = told(Decision::Allow { input: None, updates: vec![update(destination)] });
            assert_eq!(told["updatedPermissions"], json!([update("session")]));
        }
    }

    #[test]
    fn a_withdrawn_question_is_asked_no_more_and_a_late_answer_is_harmless() {
        // agent 26
        let mut questions = Questions::default();
        let (late, decision) = oneshot::channel();
        let allow = || Decision::Allow { input: None, updates: Vec::new() };
        let decided = async move {
            decision.await.unwrap_or(Decision::Deny { message: String::new(), interrupt: false })
        };
        questions.ask(RequestId::new("1"), ask(), Box::pin(decided));
        questions.ask(RequestId::new("2"), ask(), Box::pin(std::future::pending()));
        assert_eq!(questions.next_answer().now_or_never(), None);
        questions.withdraw(&RequestId::new("1"));
        assert_eq!(questions.next_answer().now_or_never(), None);
        assert!(late.send(allow()).is_err(), "nobody is asked any more");
        assert!(questions.are_open(), "the other still is");
        questions.ask(RequestId::new("3"), ask(), Box::pin(std::future::ready(allow())));
        let line = questions.next_answer().now_or_never().expect("an answer");
        assert!(line.contains("\"3\""), "{line}");
    }
}
