//! Each rule of each host: a request that breaks it is refused, and the same request without the break is not.

#![expect(clippy::needless_pass_by_value, reason = "tests build values in place")]

use serde_json::{Value, json};

use super::*;

fn host(name: &str, model: &str) -> &'static StrictProfile {
    let found = STRICT_HOSTS.iter().find(|host| host.name == name && host.model == model);
    found.unwrap_or_else(|| panic!("no strict host {name} with {model}"))
}

/// A request that every host of the dialect accepts.
fn plain(profile: &StrictProfile) -> Value {
    let hello = json!([{"role": "user", "content": "hello"}]);
    match profile.dialect {
        StrictDialect::Chat => json!({"model": profile.model, "messages": hello, "stream": true}),
        StrictDialect::Messages => json!({"model": profile.model, "messages": hello, "max_tokens": 2000}),
        StrictDialect::Responses => json!({"model": profile.model, "input": hello, "store": false}),
    }
}

fn complaint(profile: &StrictProfile, patch: &Value) -> Option<String> {
    let mut body = plain(profile);
    for (name, value) in patch.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    profile.complaint(profile.dialect.path(), &body, &Memory::default())
}

fn check(profile: &StrictProfile, patch: &Value, expected: Option<&str>) {
    let complaint = complaint(profile, patch);
    let case = format!("{} {}: {patch}", profile.name, profile.model);
    match (complaint, expected) {
        (None, None) => {}
        (Some(complaint), Some(part)) => assert!(complaint.contains(part), "{case}: {complaint}"),
        (complaint, _) => panic!("{case}: {complaint:?}"),
    }
}

/// A chat history with one call and its result, then `more`.
fn history(call: &Value, more: &[Value]) -> Value {
    let mut assistant = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    for (name, value) in call["beside"].as_object().into_iter().flatten() {
        assistant[name] = value.clone();
    }
    if let Some(call) = assistant["tool_calls"][0].as_object_mut() {
        call.remove("beside");
    }
    let mut messages = vec![
        json!({"role": "user", "content": "hello"}),
        assistant,
        json!({"role": "tool", "tool_call_id": call["id"], "content": "ok"}),
    ];
    messages.extend_from_slice(more);
    json!({"messages": messages})
}

fn call(id: &str, beside: Value) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}, "beside": beside})
}

fn tool(parameters: Value) -> Value {
    json!([{"type": "function", "function": {"name": "f", "parameters": parameters}}])
}

fn plain_tool() -> Value {
    tool(json!({"type": "object", "properties": {"a": {"type": "string"}}}))
}

#[test]
fn every_host_accepts_a_plain_request() {
    for profile in STRICT_HOSTS {
        check(profile, &json!({}), None);
    }
}

#[test]
fn openai_families_refuse_what_the_model_does_not_take() {
    let checks = [
        ("gpt-4o-mini", json!({"reasoning_effort": "low"}), Some("reasoning_effort")),
        ("gpt-4o-mini", json!({"max_tokens": 100, "temperature": 0.2, "stop": ["x"]}), None),
        ("gpt-4o-mini", json!({"max_completion_tokens": 20_000}), Some("too large")),
        ("gpt-4o-mini", json!({"user": "x".repeat(65)}), Some("UserAtMost")),
        ("gpt-4o-mini", json!({"stop": ["a", "b", "c", "d", "e"]}), Some("StopsAtMost")),
        ("gpt-4o-mini", json!({"tool_choice": "auto"}), Some("tool_choice")),
        ("gpt-4o-mini", json!({"tools": []}), Some("tools")),
        ("gpt-4o-mini", json!({"tools": tool(json!({"type": "object"}))}), Some("properties")),
        (
            "gpt-4o-mini",
            json!({"tools": tool(json!({"type": "object", "properties": {"a": {"type": "array"}}}))}),
            Some("items"),
        ),
        ("gpt-5-mini", json!({"max_tokens": 100}), Some("max_completion_tokens")),
        ("gpt-5-mini", json!({"reasoning_effort": "none"}), Some("'none'")),
        ("gpt-5-mini", json!({"reasoning_effort": "minimal", "max_completion_tokens": 100}), None),
        ("gpt-5-mini", json!({"temperature": 0.5}), Some("temperature")),
        ("gpt-5-mini", json!({"temperature": 1}), None),
        ("gpt-5-mini", json!({"stop": ["x"]}), Some("stop")),
        ("gpt-5-mini", json!({"metadata": null}), Some("null")),
        ("gpt-5.5", json!({"tools": plain_tool()}), Some("/v1/responses")),
        ("gpt-5.5", json!({"tools": plain_tool(), "reasoning_effort": "none", "temperature": 0.5}), None),
        ("o4-mini", json!({"tools": plain_tool(), "parallel_tool_calls": true}), Some("parallel_tool_calls")),
    ];
    for (model, patch, expected) in checks {
        check(host("openai", model), &patch, expected);
    }
}

#[test]
fn responses_hosts_refuse_what_the_model_does_not_take() {
    let responses = |name: &str, model: &str| {
        let is_it = |host: &&StrictProfile| {
            host.name == name && host.model == model && host.dialect == StrictDialect::Responses
        };
        STRICT_HOSTS.iter().find(is_it).expect("a strict host")
    };
    let call = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "a", "output": "x"});
    let mut finished = call.clone();
    finished["status"] = json!("completed");
    let checks = [
        ("openai", "gpt-4o", json!({"reasoning": {"effort": "low"}}), Some("reasoning")),
        ("openai", "gpt-4o", json!({"include": ["reasoning.encrypted_content"]}), Some("Encrypted")),
        ("openai", "gpt-5.5", json!({"include": ["reasoning.encrypted_content"]}), None),
        ("openai", "gpt-5.5", json!({"max_output_tokens": 5}), Some(">= 16")),
        ("openai", "gpt-5.5", json!({"user": "x".repeat(65)}), Some("64")),
        ("openai", "gpt-6.1-sol", json!({"reasoning": {"effort": "none"}}), Some("'none'")),
        ("openai", "gpt-5.5", json!({"input": [call, output]}), None),
        ("openai", "gpt-5.5", json!({"input": [call]}), Some("No tool output")),
        ("openai", "gpt-5.5", json!({"input": [output]}), Some("No tool call")),
        (
            "openai",
            "gpt-5.5",
            json!({"input": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "foreign"}]}),
            Some("could not be verified"),
        ),
        ("openai", "gpt-5.5", json!({"input": [finished, output]}), None),
        ("azure", "gpt-5-mini", json!({"input": [finished, output]}), Some("status")),
    ];
    for (name, model, patch, expected) in checks {
        check(responses(name, model), &patch, expected);
    }
}

#[test]
fn chat_hosts_refuse_fields_and_values_they_do_not_know() {
    let required = json!({"tools": plain_tool(), "tool_choice": "required"});
    let named =
        json!({"tools": plain_tool(), "tool_choice": {"type": "function", "function": {"name": "f"}}});
    let schema = json!({"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}});
    let checks = [
        ("gemini", "gemini-2.5-flash", json!({"metadata": {}}), Some("metadata")),
        ("gemini", "gemini-2.5-flash", json!({"reasoning_effort": "none"}), None),
        ("gemini", "gemini-3.7-pro", json!({"reasoning_effort": "none"}), Some("reasoning_effort")),
        (
            "gemini",
            "gemini-2.5-flash",
            json!({"tools": tool(json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}))}),
            Some("type"),
        ),
        ("groq", "openai/gpt-oss-120b", json!({"store": true}), Some("store: Extra")),
        ("groq", "openai/gpt-oss-120b", json!({"user": null}), Some("null")),
        ("groq", "openai/gpt-oss-120b", json!({"reasoning_effort": "none"}), Some("reasoning_effort")),
        ("groq", "qwen/qwen3-32b", json!({"reasoning_effort": "high"}), Some("reasoning_effort")),
        ("groq", "qwen/qwen3-32b", json!({"reasoning_effort": "none"}), None),
        ("cerebras", "gpt-oss-120b", json!({"metadata": {}}), Some("metadata")),
        (
            "cerebras",
            "gpt-oss-120b",
            json!({"messages": [{"role": "developer", "content": "x"}]}),
            Some("developer"),
        ),
        ("deepseek", "deepseek-v4-pro", json!({"max_completion_tokens": 5}), Some("max_completion_tokens")),
        ("deepseek", "deepseek-v4-pro", json!({"reasoning_effort": "none"}), Some("reasoning_effort")),
        ("deepseek", "deepseek-v4-pro", json!({"thinking": {"type": "disabled"}, "max_tokens": 5}), None),
        ("deepseek", "deepseek-v4-pro", required.clone(), Some("NoForcedToolWhileThinking")),
        ("deepseek", "deepseek-v4-pro", json!({"response_format": schema}), Some("Formats")),
        ("mistral", "mistral-medium-3.5", json!({"user": "x"}), Some("unknown field")),
        (
            "mistral",
            "mistral-medium-3.5",
            json!({"stream_options": {"include_usage": true}}),
            Some("unknown field"),
        ),
        ("mistral", "mistral-medium-3.5", json!({"reasoning_effort": "low"}), Some("reasoning_effort")),
        ("mistral", "mistral-medium-3.5", named.clone(), Some("ToolChoices")),
        ("mistral", "mistral-medium-3.5", required.clone(), None),
        ("mistral", "mistral-medium-3.5", json!({"temperature": 0.0, "top_p": 0.5}), Some("TemperatureZero")),
        ("xai", "grok-4.5", json!({"stop": ["x"]}), Some("stop")),
        (
            "xai",
            "grok-4.5",
            json!({"messages": [{"role": "user", "content": "x", "name": "n"}]}),
            Some("name"),
        ),
    ];
    for (name, model, patch, expected) in checks {
        check(host(name, model), &patch, expected);
    }
}

#[test]
fn smaller_and_local_chat_hosts_refuse_fields_and_values_they_do_not_know() {
    let required = json!({"tools": plain_tool(), "tool_choice": "required"});
    let named =
        json!({"tools": plain_tool(), "tool_choice": {"type": "function", "function": {"name": "f"}}});
    let linked = json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a/b.png"}}]}]);
    let mut strict = plain_tool();
    strict[0]["function"]["strict"] = json!(true);
    let checks = [
        ("moonshot", "kimi-k2.5", json!({"temperature": 0.3}), Some("TemperatureOneOf")),
        ("moonshot", "kimi-k2.5", required.clone(), Some("ToolChoices")),
        ("moonshot", "kimi-k2.5", json!({"tools": strict}), Some("strict")),
        ("moonshot", "kimi-k2.5", json!({"messages": linked}), Some("data URI")),
        (
            "moonshot",
            "kimi-k2.5",
            json!({"tools": tool(json!({"type": "object", "properties": {"a": {"type": "string", "anyOf": []}}}))}),
            Some("anyOf"),
        ),
        ("dashscope", "qwen3-32b", json!({"stream": false}), Some("WholeNeedsThinkingOff")),
        ("dashscope", "qwen3-32b", json!({"stream": false, "enable_thinking": false}), None),
        ("zai", "glm-5.3", json!({"temperature": 1.0}), Some("SamplingInside01")),
        ("zai", "glm-5.3", json!({"reasoning_effort": "medium"}), Some("reasoning_effort")),
        ("zai", "glm-5.3", json!({"messages": [{"role": "system", "content": "x"}]}), Some("user message")),
        (
            "minimax",
            "MiniMax-M3",
            json!({"tools": [{"type": "function", "function": {"name": "f"}}]}),
            Some("parameters"),
        ),
        (
            "minimax",
            "MiniMax-M3",
            json!({"messages": [{"role": "user", "content": "x"}, {"role": "system", "content": "y"}]}),
            Some("system"),
        ),
        ("minimax", "MiniMax-M3", json!({"thinking": {"type": "enabled"}}), Some("ThinkingTypes")),
        ("openrouter", "qwen/qwen3-235b-a22b", json!({"user": "x".repeat(129)}), Some("UserAtMost")),
        ("openrouter", "qwen/qwen3-235b-a22b", json!({"reasoning": {"effort": "high"}}), None),
        ("together", "Qwen/Qwen3-235B-A22B-Thinking-2507", json!({"tools": strict}), Some("strict")),
        (
            "fireworks",
            "accounts/fireworks/models/glm-5p2",
            json!({"tools": plain_tool(), "response_format": {"type": "json_object"}}),
            Some("ToolsNotWithFormat"),
        ),
        (
            "fireworks",
            "accounts/fireworks/models/glm-5p2",
            json!({"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
            Some("NotThinkingAndEffort"),
        ),
        (
            "vllm",
            "Qwen/Qwen3-8B",
            json!({"stop": ["a", "b", "c", "d", "e"], "anything": 1}),
            Some("StopsAtMost"),
        ),
        ("llamacpp", "qwen3-8b", named.clone(), Some("ToolChoices")),
        ("ollama", "qwen3:8b", json!({"messages": linked}), Some("data URI")),
        ("lmstudio", "qwen3-8b", json!({"response_format": {"type": "json_object"}}), Some("Formats")),
    ];
    for (name, model, patch, expected) in checks {
        check(host(name, model), &patch, expected);
    }
}

#[test]
fn chat_hosts_refuse_histories_in_a_form_they_do_not_take() {
    let (thought, no_thought) = (json!({"reasoning_content": "hm"}), json!({}));
    let user = json!({"role": "user", "content": "go on"});
    let say = json!({"role": "assistant", "content": "done"});
    let again = [say.clone(), say.clone()];
    let silent = json!({"role": "assistant", "content": ""});
    let parts = json!({"role": "assistant", "content": [{"type": "text", "text": "done"}]});
    let checks = [
        ("openai", "gpt-4o-mini", history(&call("a", no_thought.clone()), &[]), None),
        ("openai", "gpt-4o-mini", history(&call("a", thought.clone()), &[]), Some("reasoning_content")),
        ("openai", "gpt-4o-mini", history(&call(&"x".repeat(41), no_thought.clone()), &[]), Some("call id")),
        ("groq", "openai/gpt-oss-120b", history(&call("a", json!({"reasoning": "hm"})), &[]), None),
        ("groq", "openai/gpt-oss-120b", history(&call("a", thought.clone()), &[]), Some("reasoning_content")),
        ("deepseek", "deepseek-v4-pro", history(&call("a", no_thought.clone()), &[]), Some("passed back")),
        ("deepseek", "deepseek-v4-pro", history(&call("a", thought.clone()), &[]), None),
        (
            "deepseek",
            "deepseek-v4-pro",
            history(&call("a", thought.clone()), std::slice::from_ref(&say)),
            Some("passed back"),
        ),
        ("moonshot", "kimi-k2.5", history(&call("a", no_thought.clone()), &[]), Some("missing")),
        ("mistral", "mistral-medium-3.5", history(&call("call_1", no_thought.clone()), &[]), Some("call id")),
        ("mistral", "mistral-medium-3.5", history(&call("abcDEF123", no_thought.clone()), &[]), None),
        (
            "mistral",
            "mistral-medium-3.5",
            history(&call("abcDEF123", no_thought.clone()), &[user]),
            Some("after role 'tool'"),
        ),
        (
            "mistral",
            "mistral-medium-3.5",
            history(&call("abcDEF123", no_thought.clone()), &[say]),
            Some("last role"),
        ),
        (
            "groq",
            "qwen/qwen3-32b",
            history(&call("a", no_thought.clone()), std::slice::from_ref(&silent)),
            Some("either content"),
        ),
        (
            "xai",
            "grok-4.5",
            history(&call("a", no_thought.clone()), std::slice::from_ref(&parts)),
            Some("string"),
        ),
        ("llamacpp", "qwen3-8b", history(&call("a", no_thought), &again), Some("2 or more")),
    ];
    for (name, model, patch, expected) in checks {
        check(host(name, model), &patch, expected);
    }
}

#[test]
fn claude_models_refuse_what_their_row_does_not_have() {
    let enabled = json!({"type": "enabled", "budget_tokens": 1024});
    let tools = json!([{"name": "f", "input_schema": {"type": "object"}}]);
    let forced =
        |thinking: &Value| json!({"tools": tools, "tool_choice": {"type": "any"}, "thinking": thinking});
    let prefill = |text: &str| json!({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": text}]});
    let format =
        |schema: Value| json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}});
    let adaptive = json!({"type": "adaptive"});
    let disabled = json!({"type": "disabled"});
    let checks = [
        ("claude-sonnet-4-5", json!({"thinking": enabled}), None),
        ("claude-sonnet-4-5", json!({"thinking": adaptive}), Some("adaptive")),
        ("claude-sonnet-4-5", json!({"thinking": {"type": "enabled", "budget_tokens": 100}}), Some("1024")),
        (
            "claude-sonnet-4-5",
            json!({"thinking": {"type": "enabled", "budget_tokens": 3000}}),
            Some("max_tokens"),
        ),
        ("claude-sonnet-4-5", json!({"thinking": enabled, "temperature": 0.5}), Some("temperature")),
        ("claude-sonnet-4-5", json!({"temperature": 0.5, "top_p": 0.5}), Some("both")),
        ("claude-sonnet-4-5", json!({"temperature": 1.5}), Some("0..1")),
        ("claude-sonnet-4-5", json!({"output_config": {"effort": "low"}}), Some("effort")),
        ("claude-sonnet-4-5", forced(&enabled), Some("forces")),
        ("claude-sonnet-4-5", prefill("so"), None),
        ("claude-sonnet-4-5", prefill("so "), Some("whitespace")),
        ("claude-sonnet-4-5", json!({"max_tokens": 64_001}), Some("64000")),
        ("claude-opus-4-1-20250805", json!({"max_tokens": 32_001}), Some("32000")),
        ("claude-sonnet-4-6", forced(&adaptive), None),
        ("claude-sonnet-4-6", prefill("so"), Some("prefill")),
        ("claude-opus-4-8", json!({"thinking": enabled}), Some("enabled")),
        ("claude-opus-4-8", json!({"temperature": 1.0}), Some("temperature")),
        ("claude-opus-4-8", forced(&adaptive), None),
        ("claude-opus-5", json!({"thinking": disabled, "output_config": {"effort": "high"}}), None),
        (
            "claude-opus-5",
            json!({"thinking": disabled, "output_config": {"effort": "max"}}),
            Some("disabled"),
        ),
        ("claude-sonnet-5-5", json!({"thinking": disabled}), Some("disabled")),
        ("claude-opus-5-5", forced(&adaptive), Some("forces")),
        ("claude-sonnet-4-5", json!({"stop_sequences": [" "]}), Some("stop_sequences")),
        ("claude-sonnet-4-5", format(json!({"type": "object"})), Some("additionalProperties")),
        (
            "claude-sonnet-4-5",
            format(
                json!({"type": "object", "additionalProperties": false, "properties": {"a": {"type": "integer", "minimum": 1}}}),
            ),
            Some("minimum"),
        ),
    ];
    for (model, patch, expected) in checks {
        check(host("anthropic", model), &patch, expected);
    }
}

#[test]
fn claude_refuses_malformed_histories() {
    let sonnet = host("anthropic", "claude-sonnet-4-5");
    let call = |id: &str| json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "f", "input": {}}]});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let user = |content: Value| json!({"role": "user", "content": content});
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "foreign"});
    let checks = [
        (json!([user(json!("x")), call("a"), user(json!([result("a"), text("and")]))]), None),
        (json!([user(json!("x")), call("a"), user(json!([text("and"), result("a")]))]), Some("come first")),
        (json!([user(json!("x")), call("a"), user(json!("y"))]), Some("immediately after")),
        (json!([user(json!([result("a")]))]), Some("unexpected")),
        (
            json!([
                user(json!("x")),
                call("a"),
                user(json!([result("a")])),
                call("a"),
                user(json!([result("a")]))
            ]),
            Some("unique"),
        ),
        (json!([user(json!("x")), call("a.b"), user(json!([result("a.b")]))]), Some("pattern")),
        (json!([user(json!([text(" ")]))]), Some("non-whitespace")),
        (
            json!([user(json!("x")), {"role": "assistant", "content": [thought, text("so")]}]),
            Some("signature"),
        ),
        (json!([user(json!("x")), {"role": "system", "content": "y"}]), Some("system")),
    ];
    for (messages, expected) in checks {
        check(sonnet, &json!({"messages": messages}), expected);
    }
    let bedrock = host("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0");
    let image = json!({"type": "image", "source": {"type": "url", "url": "https://a/b.png"}});
    check(bedrock, &json!({"messages": [user(json!([image]))]}), Some("URL"));
    let first = json!({"role": "assistant", "content": "x"});
    check(bedrock, &json!({"messages": [first, user(json!("y"))]}), Some("start with a user"));
    let tool = json!({"name": "n".repeat(65), "input_schema": {"type": "object"}});
    check(bedrock, &json!({"tools": [tool]}), Some("pattern"));
    check(sonnet, &json!({"tools": [tool]}), None);
}

#[test]
fn what_was_issued_must_come_back() {
    let gemini = host("gemini", "gemini-2.5-flash");
    let mut memory = Memory::default();
    let issued = memory.issue(gemini, &json!({}), &HostTurn::Calls(vec![("f", json!({}))]));
    let mut call = call(&issued.calls[0].id, json!({}));
    let complaint = |memory: &Memory, call: &Value| {
        let mut body = plain(gemini);
        body["messages"] = history(call, &[])["messages"].clone();
        gemini.complaint("/chat/completions", &body, memory)
    };
    assert!(complaint(&memory, &call).is_some_and(|complaint| complaint.contains("thought_signature")));
    call["extra_content"] = json!({"google": {"thought_signature": issued.calls[0].signature}});
    assert_eq!(complaint(&memory, &call), None);

    let groq = host("groq", "openai/gpt-oss-120b");
    let issued = memory.issue(groq, &json!({}), &HostTurn::Calls(vec![("f", json!({}))]));
    let id = &issued.calls[0].id;
    let thought = issued.thought.expect("a thought").text;
    let call = |beside: Value| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}, "beside": beside});
    assert_eq!(memory.missing(groq, &history(&call(json!({})), &[])).len(), 1);
    assert!(memory.missing(groq, &history(&call(json!({"reasoning": thought})), &[])).is_empty());
}

#[test]
fn every_host_refuses_in_its_own_format() {
    let formats = STRICT_HOSTS.iter().map(|host| (host.name, host.errors));
    for (name, format) in formats {
        let script = refusal::script(format, "no such field");
        let sent: String = script
            .steps()
            .map(|step| match step {
                crate::Step::Send(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                crate::Step::Gate(_) | crate::Step::Stall | crate::Step::Cut => String::new(),
            })
            .collect();
        assert!(sent.contains("no such field"), "{name}: {sent}");
    }
}
