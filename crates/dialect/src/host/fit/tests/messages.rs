//! The order of messages, their parts, and the output format.

use serde_json::{Value, json};

use super::{chat, claude};

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": [{ "type": "text", "text": text }] })
}

fn assistant(text: &str) -> Value {
    json!({ "role": "assistant", "content": [{ "type": "text", "text": text }] })
}

/// A Chat client's messages, and what Claude gets.
#[track_caller]
fn check_claude(model: &'static str, messages: &Value, expected: &Value, lost: &[&str]) {
    claude(model).check(&json!({ "messages": messages }), &json!({ "messages": expected }), lost);
}

#[test]
fn blank_text_is_left_out_for_claude() {
    let messages = json!([
        { "role": "user", "content": [{ "type": "text", "text": " \n" }, { "type": "text", "text": "hi" }] },
        { "role": "assistant", "content": "  " },
        { "role": "user", "content": "go on" },
    ]);
    let merged = json!([{ "role": "user", "content": [
        { "type": "text", "text": "hi" },
        { "type": "text", "text": "go on" },
    ] }]);
    check_claude("claude-haiku-4-5", &messages, &merged, &[]);
}

#[test]
fn a_prefilled_reply_does_not_end_in_white_space() {
    let messages =
        json!([{ "role": "user", "content": "hi" }, { "role": "assistant", "content": "Answer: \n" }]);
    check_claude("claude-haiku-4-5", &messages, &json!([user("hi"), assistant("Answer:")]), &[]);
}

#[test]
fn a_prefilled_reply_that_the_model_refuses_is_continued_by_a_user_message() {
    let messages =
        json!([{ "role": "user", "content": "hi" }, { "role": "assistant", "content": "Answer:" }]);
    let expected = json!([user("hi"), assistant("Answer:"), user("Continue.")]);
    check_claude("claude-opus-4-6", &messages, &expected, &["messages[]"]);
}

#[test]
fn a_conversation_that_begins_with_the_assistant_gets_a_user_message_first() {
    let messages = json!([
        { "role": "system", "content": "Be kind." },
        { "role": "assistant", "content": "Hello." },
        { "role": "user", "content": "hi" },
    ]);
    let expected = json!([user("Continue."), assistant("Hello."), user("hi")]);
    check_claude("claude-haiku-4-5", &messages, &expected, &["messages[0]"]);
    let route = chat("openai", "gpt-4o").with_responses_client();
    let (body, lost) = route.send(&json!({ "input": [
        { "role": "assistant", "content": "Hello." },
        { "role": "user", "content": "hi" },
    ] }));
    assert_eq!((&body["messages"][0]["role"], lost.len()), (&json!("assistant"), 0));
}

#[test]
fn late_instructions_are_the_users_where_the_host_takes_them_only_first() {
    let messages = json!([
        { "role": "user", "content": "hi" },
        { "role": "system", "content": "Be brief." },
        { "role": "assistant", "content": "Yes." },
        { "role": "user", "content": "go on" },
    ]);
    let inlined = json!([
        { "role": "user", "content": [
            { "type": "text", "text": "hi" },
            { "type": "text", "text": "Be brief." },
        ] },
        assistant("Yes."),
        user("go on"),
    ]);
    check_claude("claude-haiku-4-5", &messages, &inlined, &["messages[].system"]);
    let (body, lost) = claude("claude-opus-4-8").send(&json!({ "messages": messages }));
    assert_eq!((&body["messages"][1]["role"], lost.len()), (&json!("system"), 0));
    // Between two user messages, newer models refuse it too.
    let between = json!([
        { "role": "user", "content": "hi" },
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "go on" },
    ]);
    let (body, lost) = claude("claude-opus-4-8").send(&json!({ "messages": between }));
    assert_eq!((body["messages"].as_array().map(Vec::len), lost.len()), (Some(1), 1));
    let input = json!({ "input": messages });
    for (profile, role, expected_losses) in [("minimax", "user", 1), ("openrouter", "system", 0)] {
        let (body, lost) = chat(profile, "m").with_responses_client().send(&input);
        assert_eq!((&body["messages"][1]["role"], lost.len()), (&json!(role), expected_losses), "{profile}");
    }
}

#[test]
fn the_developer_role_is_sent_only_to_hosts_that_know_it() {
    let input = json!({ "input": [
        { "role": "developer", "content": "Be brief." },
        { "role": "user", "content": "hi" },
    ] });
    for (profile, role) in [("openai", "developer"), ("deepseek", "system"), ("groq", "system")] {
        let (body, _) = chat(profile, "gpt-4o").with_responses_client().send(&input);
        assert_eq!(body["messages"][0]["role"], role, "{profile}");
    }
}

#[test]
fn images_and_files_that_a_host_cannot_take_become_text() {
    let image = json!({ "type": "image", "source": { "type": "url", "url": "https://x/a.png" } });
    let document = json!({ "type": "document", "title": "a.txt",
        "source": { "type": "text", "media_type": "text/plain", "data": "words" } });
    let pdf = json!({ "type": "document", "title": "a.pdf",
        "source": { "type": "base64", "media_type": "application/pdf", "data": "AAAA" } });
    for (profile, part, text, lost) in [
        ("moonshot", &image, "[image at https://x/a.png]", &["image"][..]),
        ("ollama", &image, "[image at https://x/a.png]", &["image"]),
        ("deepseek", &document, "a.txt:\n\nwords", &[]),
        ("azure", &pdf, "[a.pdf cannot be shown]", &["document"]),
    ] {
        let messages = json!([{ "role": "user", "content": [part] }]);
        let (body, losses) = chat(profile, "m").send(&json!({ "messages": messages }));
        assert!(body["messages"][0].to_string().contains(&json!(text).to_string()), "{profile}: {body}");
        assert_eq!(losses, lost, "{profile}");
    }
}

#[test]
fn a_format_that_the_host_cannot_enforce_becomes_an_instruction() {
    let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let by_schema = json!({ "response_format": {
        "type": "json_schema", "json_schema": { "name": "a", "schema": schema },
    } });
    let object = json!({ "response_format": { "type": "json_object" } });
    let text_format = |fields: &Value| match fields["response_format"]["type"].as_str() {
        Some("json_schema") => {
            json!({ "text": { "format": { "type": "json_schema", "name": "a", "schema": schema } } })
        }
        _ => json!({ "text": { "format": { "type": "json_object" } } }),
    };
    for (profile, asked, sent, instruction) in [
        ("openai", &by_schema, json!("json_schema"), None),
        ("openai", &object, json!("json_object"), None),
        ("deepseek", &by_schema, json!("json_object"), Some("that follows this JSON Schema")),
        ("zai", &object, json!("json_object"), None),
        ("lmstudio", &by_schema, json!("json_schema"), None),
        ("lmstudio", &object, Value::Null, Some("one JSON object")),
    ] {
        let (body, lost) = chat(profile, "gpt-4o").with_responses_client().send(&text_format(asked));
        assert_eq!(body["response_format"]["type"], sent, "{profile}");
        let system = &body["messages"][0];
        if let Some(words) = instruction {
            assert!(system["role"] == "system" && system.to_string().contains(words), "{body}");
        } else {
            assert_eq!(system["role"], "user", "{body}");
        }
        assert_eq!(lost.len(), usize::from(instruction.is_some()), "{profile}: {lost:?}");
    }
    let (body, lost) = claude("claude-haiku-4-5").send(&object);
    assert!(body["system"].to_string().contains("one JSON object"), "{body}");
    assert_eq!(lost, ["response_format"]);
}
