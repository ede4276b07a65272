//! Calls handed to the client, each exactly once: which are outstanding, which the program has asked for, and which
//! results are there (B5). A result answers its call the moment both are known, in whatever order they come.

use std::collections::HashMap;

use serde_json::Value;
use toolgate_dialect::claude_stream_json::{HeldCall, RequestId, call_answer, call_failure, write};
use toolgate_model::ToolOutcome;

/// The calls of one assistant message that are the client's to run.
#[derive(Debug, Default)]
pub(super) struct Handoff {
    /// In the model's order.
    calls: Vec<String>,
    /// Asked for by the program, waiting for a result.
    parked: HashMap<String, (RequestId, HeldCall)>,
    /// Sent by the client, waiting for the program.
    results: HashMap<String, CallResult>,
}

/// What a client's tool gave, as a tool server says it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallResult {
    pub(super) content: Value,
    pub(super) outcome: ToolOutcome,
}

impl Handoff {
    /// The model has called one of the client's tools.
    pub(super) fn add_call(&mut self, call: &str) {
        self.calls.push(call.to_owned());
    }

    pub(super) fn calls(&self) -> &[String] {
        &self.calls
    }

    /// The program asks for a call's result: the line that answers it, if it can be answered now.
    pub(super) fn tool_server_call(&mut self, request: RequestId, held: HeldCall) -> Option<String> {
        if !self.calls.contains(&held.call) {
            // Nobody has shown this call to the client: a sub-agent made it, and sub-agents talk to no client.
            let why = "Only the main conversation can call this tool. Return to it and call the tool there.";
            return Some(write::answer_tool_server(&request, &call_failure(&held, why)));
        }
        if let Some(result) = self.results.remove(&held.call) {
            return Some(answer(&request, &held, &result));
        }
        self.parked.insert(held.call.clone(), (request, held));
        None
    }

    /// The client's results: the lines that answer what the program has asked for already.
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

    /// The next message of the model begins: what was called before is answered.
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
