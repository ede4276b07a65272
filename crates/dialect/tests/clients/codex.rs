//! Codex offers MCP tools and sub-agents in namespaces, puts the tools of its newest models into an input item, and
//! loads tools by a search that it runs itself.

use serde_json::{Value, json};

use super::{CHAT, MESSAGES, Pair, RESPONSES, chat_reply, chat_stream, items_done};

fn weather() -> Value {
    json!({ "type": "function", "name": "weather", "description": "Weather of a city", "strict": false,
            "parameters": { "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] } })
}

fn weather_namespace() -> Value {
    json!({ "type": "namespace", "name": "mcp__wx", "description": "Tools in the mcp__wx namespace.",
            "tools": [weather()] })
}

fn tool_search() -> Value {
    json!({ "type": "tool_search", "execution": "client", "description": "Finds tools.",
            "parameters": { "type": "object", "properties": { "query": { "type": "string" } }, "required": ["query"] } })
}

fn request(tools: Value, input: Value) -> Value {
    let mut items = vec![
        json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "hi" }] }),
    ];
    items.extend(input.as_array().expect("items").iter().cloned());
    json!({ "model": "gpt-5.2", "stream": true, "input": items, "tools": tools, "tool_choice": "auto",
            "parallel_tool_calls": true, "reasoning": { "effort": "medium", "summary": "auto" }, "store": false,
            "include": ["reasoning.encrypted_content"] })
}

/// The names of the tools that a host is offered.
fn offered(pair: Pair, request: &Value) -> Vec<String> {
    let body = pair.sent(request);
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    let name = |tool: &Value| {
        [&tool["name"], &tool["function"]["name"], &tool["custom"]["name"]]
            .iter()
            .find_map(|name| name.as_str())
            .map(str::to_owned)
    };
    tools.iter().filter_map(name).collect()
}

fn chat_call(name: &str, arguments: &str) -> Value {
    json!({ "id": "call_1", "type": "function", "function": { "name": name, "arguments": arguments } })
}

/// The items that the client gets for one call of a chat host, whole and streamed.
fn received(request: &Value, call: Value) -> Vec<Value> {
    let pair = Pair::new(RESPONSES, CHAT);
    let reply = chat_reply(json!({ "role": "assistant", "content": null, "tool_calls": [call.clone()] }));
    let whole = pair.reply(request, reply)["output"][0].clone();
    let mut delta = call;
    delta["index"] = json!(0);
    let frames = pair.stream(request, &chat_stream(&[json!({ "tool_calls": [delta] })]));
    let mut items = items_done(&frames);
    items.push(whole);
    for item in &mut items {
        item.as_object_mut().expect("an item").shift_remove("id");
    }
    items
}

#[test]
fn a_tool_in_a_namespace_is_offered_under_a_flat_name() {
    let tools = json!([{ "type": "function", "name": "exec_command", "parameters": { "type": "object" } }, weather_namespace()]);
    for host in [CHAT, MESSAGES] {
        let pair = Pair::new(RESPONSES, host);
        let request = request(tools.clone(), json!([]));
        assert_eq!(offered(pair, &request), ["exec_command", "mcp__wx__weather"], "{host}");
        assert!(!pair.request_losses(&request).iter().any(|place| place.starts_with("tools")), "{host}");
    }
}

#[test]
fn a_call_of_a_tool_in_a_namespace_names_both() {
    let request = request(json!([weather_namespace()]), json!([]));
    let expect = json!({ "type": "function_call", "status": "completed", "call_id": "call_1", "name": "weather",
                         "namespace": "mcp__wx", "arguments": "{\"city\":\"Oslo\"}" });
    for item in received(&request, chat_call("mcp__wx__weather", "{\"city\":\"Oslo\"}")) {
        assert_eq!(item, expect);
    }
}

#[test]
fn a_custom_tool_in_a_namespace_stays_custom() {
    let exec = json!({ "type": "custom", "name": "exec", "description": "Runs code.",
                       "format": { "type": "grammar", "syntax": "lark", "definition": "start: /.+/" } });
    let namespace = json!({ "type": "namespace", "name": "functions", "description": "", "tools": [exec] });
    let item = json!({ "type": "additional_tools", "id": "at_1", "role": "developer", "tools": [namespace] });
    let mut request = request(json!([]), json!([item]));
    request.as_object_mut().expect("a request").shift_remove("tools");
    assert_eq!(offered(Pair::new(RESPONSES, CHAT), &request), ["functions__exec"]);
    let call = json!({ "id": "call_1", "type": "custom", "custom": { "name": "functions__exec", "input": "text(1)" } });
    let expect = json!({ "type": "custom_tool_call", "status": "completed", "call_id": "call_1", "name": "exec",
                         "namespace": "functions", "input": "text(1)" });
    for item in received(&request, call) {
        assert_eq!(item, expect);
    }
}

#[test]
fn tools_of_an_additional_tools_item_are_offered() {
    let item = json!({ "type": "additional_tools", "id": "at_1", "role": "developer",
                       "tools": [weather_namespace(), tool_search()] });
    let request = request(json!([]), json!([item]));
    for host in [CHAT, MESSAGES] {
        let pair = Pair::new(RESPONSES, host);
        assert_eq!(offered(pair, &request), ["mcp__wx__weather", "tool_search"], "{host}");
        let body = pair.sent(&request);
        assert_eq!(body["messages"].as_array().expect("messages").len(), 1, "{host}: {body}");
        assert_eq!(pair.request_losses(&request), Vec::<String>::new(), "{host}");
    }
}

#[test]
fn a_tool_search_is_a_function_whose_call_returns_as_a_search() {
    let request = request(json!([tool_search()]), json!([]));
    assert_eq!(offered(Pair::new(RESPONSES, MESSAGES), &request), ["tool_search"]);
    let expect = json!({ "type": "tool_search_call", "status": "completed", "call_id": "call_1", "execution": "client",
                         "arguments": { "query": "weather" } });
    for item in received(&request, chat_call("tool_search", "{\"query\":\"weather\"}")) {
        assert_eq!(item, expect);
    }
}

/// A search, the tool that it found, and a call of that tool.
fn history() -> Value {
    json!([
        { "type": "tool_search_call", "id": "tsc_1", "call_id": "call_1", "status": "completed", "execution": "client",
          "arguments": { "query": "weather", "limit": 3 } },
        { "type": "tool_search_output", "id": "tso_1", "call_id": "call_1", "status": "completed", "execution": "client",
          "tools": [weather_namespace()] },
        { "type": "function_call", "status": "completed", "id": "fc_2", "name": "weather", "namespace": "mcp__wx",
          "arguments": "{\"city\":\"Oslo\"}", "call_id": "call_2" },
        { "type": "function_call_output", "id": "fco_2", "call_id": "call_2",
          "output": "sunny" },
    ])
}

#[test]
fn a_host_of_another_dialect_sees_ordinary_calls_and_results() {
    let request = request(json!([tool_search()]), history());
    let pair = Pair::new(RESPONSES, CHAT);
    assert_eq!(offered(pair, &request), ["tool_search", "mcp__wx__weather"]);
    let body = pair.sent(&request);
    let call = |id: &str, name: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
    assert_eq!(
        body["messages"][1]["tool_calls"],
        json!([call("call_1", "tool_search", "{\"query\":\"weather\",\"limit\":3}")])
    );
    assert_eq!(body["messages"][2]["content"], "These tools are now available: mcp__wx__weather.");
    assert_eq!(
        body["messages"][3]["tool_calls"],
        json!([call("call_2", "mcp__wx__weather", "{\"city\":\"Oslo\"}")])
    );
    assert_eq!(body["messages"][4]["content"], "sunny");
    let losses = pair.request_losses(&request);
    assert!(
        !losses.iter().any(|place| place.starts_with("messages") || place.starts_with("tools")),
        "{losses:?}"
    );
}

#[test]
fn a_host_of_the_same_dialect_gets_the_original_forms() {
    let additional = json!({ "type": "additional_tools", "id": "at_1", "role": "developer", "tools": [weather_namespace()] });
    let mut namespace = weather_namespace();
    let mut second = weather();
    second["name"] = json!("forecast");
    namespace["tools"].as_array_mut().expect("tools").push(second);
    let mut items = vec![additional];
    items.extend(history().as_array().expect("items").iter().cloned());
    let tools = json!([weather(), namespace, tool_search()]);
    let request = request(tools.clone(), json!(items));
    let body = Pair::new(RESPONSES, RESPONSES).sent(&request);
    assert_eq!(body["tools"], tools);
    // Additional tools come first; the user's message is next.
    assert_eq!(body["input"][0], items[0]);
    assert_eq!(body["input"].as_array().expect("items")[2..], items[1..]);
}

#[test]
fn a_requested_summary_alone_switches_no_reasoning_on() {
    let mut request = request(json!([]), json!([]));
    request["reasoning"] = json!({ "summary": "auto" });
    for (host, model) in
        [(MESSAGES, "claude-sonnet-4-5"), (MESSAGES, "claude-opus-4-6"), (CHAT, "gpt-4o"), (CHAT, "m")]
    {
        request["model"] = json!(model);
        let pair = Pair::new(RESPONSES, host);
        let body = pair.sent(&request);
        assert!(body.get("thinking").is_none() && body.get("reasoning_effort").is_none(), "{model}: {body}");
        assert_eq!(pair.request_losses(&request), Vec::<String>::new(), "{model}");
    }
}
