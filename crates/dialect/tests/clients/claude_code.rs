//! Claude Code searches its own tools and gets references to them; its web search is a request of its own, which only
//! Anthropic can answer.

use serde_json::{Value, json};
use toolgate_model::ErrorKind;

use super::{CHAT, MESSAGES, Pair, RESPONSES, chat_reply, chat_stream};

fn request(tools: Value, messages: Value) -> Value {
    json!({ "model": "m", "max_tokens": 32000, "stream": true, "tools": tools, "messages": messages })
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "…", "input_schema": { "type": "object", "properties": {} } })
}

#[test]
fn a_tool_reference_says_which_tool_is_available() {
    let mut loaded = tool("mcp__wx__weather");
    loaded["defer_loading"] = json!(true);
    let reference = |name: &str| json!({ "type": "tool_reference", "tool_name": name });
    let request = request(
        json!([tool("ToolSearch"), loaded, tool("mcp__wx__tide")]),
        json!([
            { "role": "user", "content": "weather?" },
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": { "query": "wx" } }] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "toolu_1",
                  "content": [reference("mcp__wx__weather"), reference("mcp__wx__tide")] },
                { "type": "text", "text": "Tool loaded." }] },
        ]),
    );
    let chat = Pair::new(MESSAGES, CHAT);
    let text = "The tool mcp__wx__weather is now available.\nThe tool mcp__wx__tide is now available.";
    assert_eq!(chat.sent(&request)["messages"][2]["content"], text);
    assert_eq!(chat.request_losses(&request), Vec::<String>::new());
    let own = Pair::new(MESSAGES, MESSAGES).sent(&request);
    assert_eq!(own["messages"][2]["content"][0]["content"][0], reference("mcp__wx__weather"));
}

#[test]
fn a_demanded_web_search_is_refused_where_it_cannot_run() {
    let web_search = json!({ "type": "web_search_20250305", "name": "web_search", "max_uses": 8 });
    let user =
        json!([{ "role": "user", "content": [{ "type": "text", "text": "Perform a web search: oslo" }] }]);
    let mut alone = request(json!([web_search.clone()]), user.clone());
    alone["tool_choice"] = json!({ "type": "tool", "name": "web_search" });
    for host in [CHAT, RESPONSES] {
        let error = Pair::new(MESSAGES, host).refusal(&alone);
        assert_eq!(
            (error.kind, error.param.as_deref()),
            (ErrorKind::InvalidRequest, Some("tool_choice")),
            "{host}"
        );
    }
    alone["tool_choice"] = json!({ "type": "any" });
    assert_eq!(Pair::new(MESSAGES, CHAT).refusal(&alone).kind, ErrorKind::InvalidRequest);

    let beside = request(json!([web_search, tool("Bash")]), user);
    let pair = Pair::new(MESSAGES, CHAT);
    assert_eq!(pair.request_losses(&beside), ["tools[web_search_20250305]"]);
    assert_eq!(pair.sent(&beside)["tools"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_reply_names_the_model_that_the_client_asked_for() {
    let pair = Pair::new(MESSAGES, CHAT);
    let mut request = request(json!([]), json!([{ "role": "user", "content": "hi" }]));
    request["model"] = json!("claude-opus-4-6");
    let reply = pair.reply(&request, chat_reply(json!({ "role": "assistant", "content": "hi" })));
    assert_eq!(reply["model"], "claude-opus-4-6");
    let frames = pair.stream(&request, &chat_stream(&[json!({ "content": "hi" })]));
    assert_eq!(frames[0]["message"]["model"], "claude-opus-4-6");
}
