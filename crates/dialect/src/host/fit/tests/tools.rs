//! Tools and the choice among them.

use serde_json::{Value, json};

use super::{Route, chat, claude};

/// A Messages client's tools and choice.
fn offered(choice: &Value) -> Value {
    let tool = |name: &str| json!({ "name": name, "input_schema": { "type": "object" } });
    json!({ "tools": [tool("f"), tool("g")], "tool_choice": choice })
}

/// The names of the offered tools and the choice.
fn choice_of(route: Route, fields: &Value) -> (String, Value, Vec<String>) {
    let (body, lost) = route.send(fields);
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    let names = tools.iter().map(|tool| tool["function"]["name"].as_str().expect("a name"));
    (names.collect::<Vec<_>>().join(" "), body["tool_choice"].clone(), lost)
}

#[test]
fn calls_are_forced_only_where_the_host_forces_them() {
    let any = offered(&json!({ "type": "any" }));
    let named = offered(&json!({ "type": "tool", "name": "g" }));
    let g = json!({ "type": "function", "function": { "name": "g" } });
    for (profile, model, fields, names, choice, lost) in [
        ("openai", "gpt-4o", &any, "f g", json!("required"), &[][..]),
        ("openai", "gpt-4o", &named, "f g", g, &[]),
        ("mistral", "mistral-large-latest", &named, "g", json!("required"), &[]),
        ("llamacpp", "m", &named, "g", json!("required"), &[]),
        ("moonshot", "kimi-k2.5", &any, "f g", json!("auto"), &["tool_choice"]),
        ("ollama", "m", &named, "f g", json!("auto"), &["tool_choice"]),
        ("deepseek", "deepseek-v4", &any, "f g", json!("auto"), &["tool_choice"]),
    ] {
        let expected = (names.to_owned(), choice, lost.iter().map(|&place| place.to_owned()).collect());
        assert_eq!(choice_of(chat(profile, model), fields), expected, "{model} at {profile}");
    }
    let mut without_thinking = any;
    without_thinking["thinking"] = json!({ "type": "disabled" });
    let (_, choice, lost) = choice_of(chat("deepseek", "deepseek-v4"), &without_thinking);
    assert_eq!((choice, lost.len()), (json!("required"), 0));
}

#[test]
fn claude_forces_calls_unless_it_thinks_within_a_budget_or_always() {
    let fields = |effort: &str| {
        let function = json!({ "name": "f", "parameters": { "type": "object", "properties": {} } });
        let tools = json!([{ "type": "function", "function": function }]);
        json!({ "tools": tools, "tool_choice": "required", "reasoning_effort": effort })
    };
    let (any, auto) =
        (json!({ "tool_choice": { "type": "any" } }), json!({ "tool_choice": { "type": "auto" } }));
    for (model, effort, choice, lost) in [
        ("claude-haiku-4-5", "none", &any, &[][..]),
        ("claude-haiku-4-5", "low", &auto, &["tool_choice"]),
        ("claude-opus-4-8", "low", &any, &[]),
        ("claude-opus-5-5", "low", &auto, &["tool_choice"]),
    ] {
        claude(model).check(&fields(effort), choice, lost);
    }
}

#[test]
fn a_choice_of_a_tool_that_is_not_offered_is_left_to_the_model() {
    let fields = offered(&json!({ "type": "tool", "name": "gone" }));
    let (names, choice, lost) = choice_of(chat("openai", "gpt-4o"), &fields);
    assert_eq!(
        (names.as_str(), choice, lost.as_slice()),
        ("f g", Value::Null, &["tool_choice".to_owned()][..])
    );
}

#[test]
fn there_is_no_choice_without_tools() {
    let fields = json!({ "tools": [], "tool_choice": "auto", "parallel_tool_calls": false });
    claude("claude-haiku-4-5").check(&fields, &json!({ "tools": null, "tool_choice": null }), &[]);
    let expected = json!({ "tools": null, "tool_choice": null, "parallel_tool_calls": null });
    chat("openai", "gpt-4o").with_responses_client().check(&fields, &expected, &[]);
}

#[test]
fn parallel_calls_are_still_forbidden_if_the_choice_is_dropped() {
    let fields = json!({
        "tools": [{ "type": "function", "name": "f", "parameters": { "type": "object", "properties": {} } }],
        "tool_choice": { "type": "mcp", "server_label": "s" },
        "parallel_tool_calls": false,
    });
    let expected = json!({ "tool_choice": { "type": "auto", "disable_parallel_tool_use": true } });
    claude("claude-haiku-4-5").with_responses_client().check(&fields, &expected, &["tool_choice"]);
}

#[test]
fn parallel_tool_calls_is_sent_only_where_the_model_takes_it() {
    let fields = offered(&json!({ "type": "auto", "disable_parallel_tool_use": true }));
    for (profile, model, sent, lost) in [
        ("openai", "gpt-4o", json!(false), &[][..]),
        ("openai", "o4-mini", Value::Null, &["parallel_tool_calls"]),
        ("gemini", "gemini-2.5-flash", Value::Null, &["parallel_tool_calls"]),
    ] {
        chat(profile, model).check(&fields, &json!({ "parallel_tool_calls": sent }), lost);
    }
}

#[test]
fn free_text_tools_become_functions_where_hosts_have_only_functions() {
    let fields = json!({
        "tools": [{ "type": "custom", "name": "sql", "description": "Runs SQL." }],
        "tool_choice": { "type": "custom", "name": "sql" },
        "input": [
            { "role": "user", "content": "hi" },
            { "type": "custom_tool_call", "call_id": "c1", "name": "sql", "input": "SELECT \"1\"" },
            { "type": "custom_tool_call_output", "call_id": "c1", "output": "1" },
        ],
    });
    let (body, lost) = chat("groq", "llama-3.3-70b-versatile").with_responses_client().send(&fields);
    let function = &body["tools"][0]["function"];
    assert_eq!((&function["name"], &function["parameters"]["required"]), (&json!("sql"), &json!(["input"])));
    assert_eq!(body["tool_choice"], json!({ "type": "function", "function": { "name": "sql" } }));
    let call = &body["messages"][1]["tool_calls"][0];
    assert_eq!(call["function"]["arguments"], r#"{"input":"SELECT \"1\""}"#);
    assert_eq!(body["messages"][2]["role"], "tool");
    assert_eq!(lost, [] as [&str; 0]);
    let (body, _) = chat("openai", "gpt-5").with_responses_client().send(&fields);
    assert_eq!(body["tools"][0]["type"], "custom");
}

#[test]
fn call_ids_and_user_ids_fit_the_host() {
    let fields = json!({
        "metadata": { "user_id": format!("user_{}", "x".repeat(150)) },
        "messages": [
            { "role": "user", "content": "hi" },
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "toolu_01A09q90qw90lq917835lq9", "name": "f", "input": {} },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "toolu_01A09q90qw90lq917835lq9", "content": "1" },
            ] },
        ],
    });
    let (body, _) = chat("openai", "gpt-4o-mini").send(&fields);
    assert_eq!(body["user"].as_str().map(str::len), Some(64));
    let (body, lost) = chat("mistral", "mistral-large-latest").send(&fields);
    let id = body["messages"][1]["tool_calls"][0]["id"].as_str().expect("an id");
    assert_eq!((id.len(), &body["messages"][2]["tool_call_id"]), (9, &json!(id)));
    assert_eq!((&body["user"], lost.as_slice()), (&Value::Null, &["user".to_owned()][..]));
}

#[test]
fn fireworks_gets_an_output_format_only_without_tools() {
    let format = json!({ "output_config": { "format": { "type": "json_schema", "schema": {
        "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"], "additionalProperties": false,
    } } } });
    let mut with_tools = format.clone();
    with_tools["tools"] = json!([{ "name": "f", "input_schema": { "type": "object" } }]);
    let fireworks = chat("fireworks", "accounts/fireworks/models/glm-5p2");
    assert_eq!(fireworks.send(&format).0["response_format"]["type"], "json_schema");
    let (sent, _) = fireworks.send(&with_tools);
    assert_eq!(sent.get("response_format"), None);
    assert!(
        sent["messages"][0]["content"].as_str().is_some_and(|text| text.contains("JSON Schema")),
        "{sent}"
    );
}
