//! OpenAI Chat Completions.

use serde_json::{Value, json};

use super::{
    ARGUMENTS, INPUT_TOKENS, INSTRUCTIONS, LastBlock, QUESTION, Script, TOOL_NAME, TOOL_TEXT, tool_schema,
};

pub(super) fn request() -> Value {
    let function = json!({"name": TOOL_NAME, "description": TOOL_TEXT, "parameters": tool_schema()});
    json!({
        "messages": [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": QUESTION}],
        "tools": [{"type": "function", "function": function}],
    })
}

pub(super) fn whole(script: Script) -> Value {
    let mut message = json!({"role": "assistant", "content": script.text()});
    if script.last == LastBlock::ToolCall {
        message["tool_calls"] = json!([call()]);
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(script)});
    completion("chat.completion", &[choice], &usage(script))
}

pub(super) fn events(script: Script) -> Vec<Value> {
    let mut events = vec![chunk(&json!({"role": "assistant", "content": ""}), &Value::Null)];
    events.extend(script.pieces().map(|piece| chunk(&json!({"content": piece}), &Value::Null)));
    if script.last == LastBlock::ToolCall {
        let mut call = call();
        call["index"] = json!(0);
        events.push(chunk(&json!({"tool_calls": [call]}), &Value::Null));
    }
    events.push(chunk(&json!({}), &json!(finish_reason(script))));
    events.push(completion("chat.completion.chunk", &[], &usage(script)));
    events
}

fn chunk(delta: &Value, finish_reason: &Value) -> Value {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
    completion("chat.completion.chunk", &[choice], &Value::Null)
}

fn completion(object: &str, choices: &[Value], usage: &Value) -> Value {
    json!({"id": "chatcmpl-bench", "object": object, "created": 1, "model": "bench", "choices": choices, "usage": usage})
}

fn usage(script: Script) -> Value {
    let total = INPUT_TOKENS + script.words;
    json!({"prompt_tokens": INPUT_TOKENS, "completion_tokens": script.words, "total_tokens": total})
}

fn call() -> Value {
    json!({"id": "call_bench_1", "type": "function", "function": {"name": TOOL_NAME, "arguments": ARGUMENTS}})
}

fn finish_reason(script: Script) -> &'static str {
    match script.last {
        LastBlock::Text | LastBlock::WrittenCall(_) => "stop",
        LastBlock::ToolCall => "tool_calls",
    }
}
