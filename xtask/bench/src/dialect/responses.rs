//! OpenAI Responses.

use serde_json::{Value, json};

use super::{
    ARGUMENTS, INPUT_TOKENS, INSTRUCTIONS, LastBlock, QUESTION, Script, TOOL_NAME, TOOL_TEXT, tool_schema,
};

const MESSAGE_ID: &str = "msg_bench";
const CALL_ITEM_ID: &str = "fc_bench";

pub(super) fn request() -> Value {
    let tool = json!({
        "type": "function", "name": TOOL_NAME, "description": TOOL_TEXT, "parameters": tool_schema(), "strict": false,
    });
    json!({
        "instructions": INSTRUCTIONS,
        "input": [{"role": "user", "content": QUESTION}],
        "tools": [tool],
        // The cost of the store is not measured here.
        "store": false,
    })
}

pub(super) fn whole(script: Script) -> Value {
    let mut output = vec![message(script, "completed")];
    if script.last == LastBlock::ToolCall {
        output.push(call("completed", ARGUMENTS));
    }
    let mut response = response("completed", &output);
    let total = INPUT_TOKENS + script.words;
    response["usage"] = json!({
        "input_tokens": INPUT_TOKENS, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": script.words, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": total,
    });
    response
}

pub(super) fn events(script: Script) -> Vec<Value> {
    let text = script.text();
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let opened = json!({"id": MESSAGE_ID, "type": "message", "status": "in_progress", "role": "assistant", "content": []});
    let mut events = vec![
        json!({"type": "response.created", "response": response("in_progress", &[])}),
        json!({"type": "response.in_progress", "response": response("in_progress", &[])}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": opened}),
        in_message(json!({"type": "response.content_part.added", "part": part("")})),
    ];
    for piece in script.pieces() {
        events
            .push(in_message(json!({"type": "response.output_text.delta", "delta": piece, "logprobs": []})));
    }
    events.push(in_message(json!({"type": "response.output_text.done", "text": text, "logprobs": []})));
    events.push(in_message(json!({"type": "response.content_part.done", "part": part(&text)})));
    let closed = message(script, "completed");
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": closed}));
    if script.last == LastBlock::ToolCall {
        events.extend(call_events());
    }
    events.push(json!({"type": "response.completed", "response": whole(script)}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    events
}

fn call_events() -> [Value; 4] {
    let place = json!({"item_id": CALL_ITEM_ID, "output_index": 1});
    let with_place = |mut event: Value| {
        event["item_id"] = place["item_id"].clone();
        event["output_index"] = place["output_index"].clone();
        event
    };
    [
        json!({"type": "response.output_item.added", "output_index": 1, "item": call("in_progress", "")}),
        with_place(json!({"type": "response.function_call_arguments.delta", "delta": ARGUMENTS})),
        with_place(
            json!({"type": "response.function_call_arguments.done", "name": TOOL_NAME, "arguments": ARGUMENTS}),
        ),
        json!({"type": "response.output_item.done", "output_index": 1, "item": call("completed", ARGUMENTS)}),
    ]
}

fn in_message(mut event: Value) -> Value {
    event["item_id"] = json!(MESSAGE_ID);
    event["output_index"] = json!(0);
    event["content_index"] = json!(0);
    event
}

fn message(script: Script, status: &str) -> Value {
    let part = json!({"type": "output_text", "text": script.text(), "annotations": []});
    json!({"id": MESSAGE_ID, "type": "message", "status": status, "role": "assistant", "content": [part]})
}

fn call(status: &str, arguments: &str) -> Value {
    json!({
        "id": CALL_ITEM_ID, "type": "function_call", "status": status, "call_id": "call_bench_1",
        "name": TOOL_NAME, "arguments": arguments,
    })
}

fn response(status: &str, output: &[Value]) -> Value {
    json!({
        "id": "resp_bench", "object": "response", "created_at": 1, "status": status, "model": "bench",
        "output": output, "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
        "error": null, "incomplete_details": null, "instructions": null, "metadata": {}, "temperature": null,
        "top_p": null, "usage": null,
    })
}
