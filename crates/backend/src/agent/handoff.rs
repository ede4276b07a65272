//! Calls handed to the client, each exactly once: which are outstanding, which the program has asked for, and which
//! results have arrived (B5). A result answers its call as soon as both are there, in either order.

use std::collections::HashMap;

use serde_json::Value;
use toolgate_dialect::claude_stream_json::{HeldCall, RequestId, call_answer, call_failure, write};
use toolgate_model::ToolOutcome;

/// The calls of one assistant message that the client runs.
#[derive(Debug, Default)]
pub(super) struct Handoff {
    /// In the model's order.
    calls: Vec<String>,
    /// The program has asked for these; the client's result is missing.
    parked: HashMap<String, (RequestId, HeldCall)>,
    /// The client has sent these; the program has not asked yet.
    results: HashMap<String, CallResult>,
}

/// The result of a client tool, as MCP content.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallResult {
    pub(super) content: Value,
    pub(super) outcome: ToolOutcome,
}

impl Handoff {
    /// Adds a call of a client tool that the model made.
    pub(super) fn add_call(&mut self, call: &str) {
        self.calls.push(call.to_owned());
    }

    pub(super) fn calls(&self) -> &[String] {
        &self.calls
    }

    /// The program asks for a call's result. Returns the line that answers it, if the result is there.
    pub(super) fn tool_server_call(&mut self, request: RequestId, held: HeldCall) -> Option<String> {
        if !self.calls.contains(&held.call) {
            // A sub-agent made this call, and the client never sees the calls of sub-agents.
            let why = "Only the main conversation can call this tool. Return to it and call the tool there.";
            return Some(write::answer_tool_server(&request, &call_failure(&held, why)));
        }
        if let Some(result) = self.results.remove(&held.call) {
            return Some(answer(&request, &held, &result));
        }
        self.parked.insert(held.call.clone(), (request, held));
        None
    }

    /// Takes the client's results. Returns the lines that answer calls the program has already asked for.
    pub(super) fn deliver(&mut self, results: Vec<(String, CallResult)>) -> Vec<String> {
        let mut lines = Vec::new();
        for (call, result) in results {
            match self.parked.remove(&call) {
                Some((request, held)) => lines.push(answer(&request, &held, &result)),
                None => {
                    self.results.insert(call, result);
                }
            }
        }
        lines
    }

    /// The model starts its next message, so all earlier calls are answered.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

fn answer(request: &RequestId, held: &HeldCall, result: &CallResult) -> String {
    write::answer_tool_server(request, &call_answer(held, &result.content, result.outcome))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_dialect::claude_stream_json::{AgentTools, ServerAnswer, ToolServer};

    use super::*;

    fn held(call: &str) -> HeldCall {
        let params = json!({ "_meta": { "claudecode/toolUseId": call } });
        let message = json!({ "id": 1, "method": "tools/call", "params": params });
        match ToolServer::new(&AgentTools::default()).answer(&message) {
            ServerAnswer::Held(held) => held,
            ServerAnswer::Now(answer) => panic!("{answer}"),
        }
    }

    fn result(text: &str) -> CallResult {
        CallResult { content: json!([{ "type": "text", "text": text }]), outcome: ToolOutcome::Success }
    }

    #[test]
    fn a_result_answers_its_call_whichever_comes_first() {
        let mut handoff = Handoff::default();
        handoff.add_call("a");
        handoff.add_call("b");
        assert_eq!(handoff.tool_server_call(RequestId::new("1"), held("a")), None);
        let lines = handoff.deliver(vec![("b".into(), result("two")), ("a".into(), result("one"))]);
        assert!(matches!(&lines[..], [line] if line.contains("one")), "{lines:?}");
        let line = handoff.tool_server_call(RequestId::new("2"), held("b")).expect("an answer at once");
        assert!(line.contains("two"), "{line}");
    }

    #[test]
    fn a_call_that_no_client_has_seen_is_refused() {
        let line =
            Handoff::default().tool_server_call(RequestId::new("1"), held("x")).expect("an answer at once");
        assert!(line.contains("Only the main conversation"), "{line}");
    }
}
