//! The messages of a turn as the program has them: with the built-in calls and results that the client never sees.

use serde_json::{Value, json};
use toolgate_dialect::claude_stream_json::{AgentTools, interrupted_result};

/// The messages so far.
#[derive(Clone, Debug, Default)]
pub(super) struct TurnSteps {
    messages: Vec<Value>,
    /// The id of the model's message that is still growing.
    open: Option<String>,
    has_builtin_calls: bool,
}

/// Whether a message contains a built-in call or its result, which must not run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BuiltinUse {
    Found,
    None,
}

/// Built-in calls without a result while the process waits for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PendingBuiltins {
    /// There are none.
    None,
    /// They come after a client call, and most tools wait for that.
    Blocked,
    /// The program can run them now.
    Runnable,
}

impl TurnSteps {
    /// Continues after the steps of an interrupted run of the same turn.
    pub(super) fn after(messages: Vec<Value>) -> Self {
        let has_builtin_calls = !messages.is_empty();
        Self { messages, open: None, has_builtin_calls }
    }

    /// Adds a finished block of the model's message.
    pub(super) fn assistant(&mut self, message: &Value, tools: &AgentTools) -> BuiltinUse {
        let Some(blocks) = message["content"].as_array() else { return BuiltinUse::None };
        let is_builtin = |block: &Value| {
            block["type"] == "tool_use"
                && block["name"].as_str().is_some_and(|name| tools.client_name(name).is_none())
        };
        let builtin_use = if blocks.iter().any(is_builtin) { BuiltinUse::Found } else { BuiltinUse::None };
        self.has_builtin_calls |= builtin_use == BuiltinUse::Found;
        let id = message["id"].as_str().map(str::to_owned);
        let last = self.messages.last_mut().filter(|last| last["role"] == "assistant" && self.open == id);
        match last.and_then(|last| last["content"].as_array_mut()) {
            Some(content) => content.extend(blocks.iter().cloned()),
            None => self.messages.push(json!({ "role": "assistant", "content": blocks })),
        }
        self.open = id;
        builtin_use
    }

    /// Adds results from the program, without those of client calls.
    pub(super) fn user(&mut self, message: &Value, client_calls: &[String]) -> BuiltinUse {
        let Some(blocks) = message["content"].as_array() else { return BuiltinUse::None };
        let is_builtin = |block: &&Value| {
            let id = block["tool_use_id"].as_str();
            block["type"] == "tool_result" && !client_calls.iter().any(|call| Some(call.as_str()) == id)
        };
        let results: Vec<Value> = blocks.iter().filter(is_builtin).cloned().collect();
        if results.is_empty() {
            return BuiltinUse::None;
        }
        match self.messages.last_mut().filter(|last| last["role"] == "user") {
            Some(last) => {
                if let Some(content) = last["content"].as_array_mut() {
                    content.extend(results);
                }
            }
            None => self.messages.push(json!({ "role": "user", "content": results })),
        }
        BuiltinUse::Found
    }

    /// The built-in calls that the program has not finished.
    pub(super) fn pending_builtins(&self, client_calls: &[String]) -> PendingBuiltins {
        let is_reply = |message: &Value| message["role"] == "assistant";
        let last = self.messages.iter().rposition(is_reply).unwrap_or_default();
        let blocks = || {
            let messages = self.messages.get(last..).unwrap_or_default();
            messages.iter().filter_map(|message| message["content"].as_array()).flatten()
        };
        let is_client_call = |call: &Value| client_calls.iter().any(|id| call["id"] == id.as_str());
        let is_done = |call: &Value| blocks().any(|block| block["tool_use_id"] == call["id"]);
        let mut calls = blocks().filter(|block| block["type"] == "tool_use");
        let mut behind_client_call = false;
        let open = calls.find(|call| {
            behind_client_call |= is_client_call(call);
            !is_client_call(call) && !is_done(call)
        });
        match (open, behind_client_call) {
            (None, _) => PendingBuiltins::None,
            (Some(_), true) => PendingBuiltins::Blocked,
            (Some(_), false) => PendingBuiltins::Runnable,
        }
    }

    /// The messages, if they contain more than the client has seen.
    pub(super) fn if_hidden_from_client(&self) -> Vec<Value> {
        if self.has_builtin_calls { self.messages.clone() } else { Vec::new() }
    }
}

/// The texts in these steps.
pub(super) fn texts(steps: &[Value]) -> Vec<String> {
    let replies = steps.iter().filter(|step| step["role"] == "assistant");
    let blocks = replies.filter_map(|step| step["content"].as_array()).flatten();
    blocks.filter_map(|block| block["text"].as_str().map(str::to_owned)).collect()
}

/// Prepares the steps of an interrupted turn to be continued: nothing that ran may run again (B7).
pub(super) fn resumable(mut steps: Vec<Value>, tools: &AgentTools) -> Vec<Value> {
    let Some(last) = steps.last_mut().filter(|last| last["role"] == "assistant") else { return steps };
    // The client has not seen the client calls of that message, so the model must make them again.
    let is_builtin_call = |block: &Value| {
        block["type"] == "tool_use"
            && block["name"].as_str().is_some_and(|name| tools.client_name(name).is_none())
    };
    let calls: Vec<Value> = last["content"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|block| is_builtin_call(block))
        .cloned()
        .collect();
    if calls.is_empty() {
        steps.pop();
        return steps;
    }
    if let Some(content) = last["content"].as_array_mut() {
        content.retain(|block| block["type"] != "tool_use" || is_builtin_call(block));
    }
    let results: Vec<Value> = calls.iter().map(|call| interrupted_result(&call["id"])).collect();
    steps.push(json!({ "role": "user", "content": results }));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> AgentTools {
        AgentTools::new(&[json!({ "name": "f", "input_schema": { "type": "object" } })], &[]).value
    }

    fn call(id: &str, name: &str) -> Value {
        json!({ "type": "tool_use", "id": id, "name": name, "input": {} })
    }

    #[test]
    fn blocks_of_one_message_stay_together_and_client_results_are_left_out() {
        let mut steps = TurnSteps::default();
        for block in [json!({ "type": "text", "text": "t" }), call("b", "Bash"), call("c", "mcp__client__f")]
        {
            steps.assistant(&json!({ "id": "m1", "content": [block] }), &tools());
        }
        for id in ["b", "c"] {
            let result = json!({ "type": "tool_result", "tool_use_id": id, "content": "r" });
            steps.user(&json!({ "content": [result] }), &["c".to_owned()]);
        }
        steps.assistant(&json!({ "id": "m2", "content": [{ "type": "text", "text": "u" }] }), &tools());
        let lengths: Vec<usize> = steps
            .if_hidden_from_client()
            .iter()
            .map(|step| step["content"].as_array().map_or(0, Vec::len))
            .collect();
        assert_eq!(lengths, [3, 1, 1]);
    }

    #[test]
    fn pending_builtin_calls_have_no_result_and_may_wait_for_the_client() {
        let check = |calls: &[(&str, &str)], done: &[&str], expected: PendingBuiltins| {
            let mut steps = TurnSteps::default();
            for (id, name) in calls {
                steps.assistant(&json!({ "id": "m1", "content": [call(id, name)] }), &tools());
            }
            for id in done {
                let result = json!({ "type": "tool_result", "tool_use_id": id, "content": "r" });
                steps.user(&json!({ "content": [result] }), &["c".to_owned()]);
            }
            assert_eq!(steps.pending_builtins(&["c".to_owned()]), expected, "{calls:?} {done:?}");
        };
        let (own, client_calls) = (("b", "Bash"), ("c", "mcp__client__f"));
        check(&[], &[], PendingBuiltins::None);
        check(&[client_calls], &[], PendingBuiltins::None);
        check(&[own, client_calls], &[], PendingBuiltins::Runnable);
        check(&[own, client_calls], &["b"], PendingBuiltins::None);
        check(&[client_calls, own], &[], PendingBuiltins::Blocked);
        check(&[own, client_calls, ("d", "Bash")], &["b"], PendingBuiltins::Blocked);
    }

    #[test]
    fn without_builtin_calls_nothing_is_hidden_from_the_client() {
        let mut steps = TurnSteps::default();
        steps.assistant(&json!({ "id": "m1", "content": [call("c", "mcp__client__f")] }), &tools());
        assert!(steps.if_hidden_from_client().is_empty());
    }

    #[test]
    fn an_interrupted_call_gets_an_error_result() {
        let interrupted =
            json!({ "role": "assistant", "content": [call("b", "Bash"), call("c", "mcp__client__f")] });
        let made = resumable(vec![interrupted], &tools());
        assert_eq!(made[0]["content"], json!([call("b", "Bash")]));
        assert_eq!(made[1]["content"][0]["tool_use_id"], "b");
        assert_eq!(made[1]["content"][0]["is_error"], true);
        let unfinished = json!({ "role": "assistant", "content": [{ "type": "text", "text": "half a" }] });
        assert!(resumable(vec![unfinished], &tools()).is_empty());
    }
}
