//! Forms that the specification does not have, but that hosts of this dialect accept.

use serde_json::{Value, json};
use toolgate_model::{CallKind, Choice, Message, Part, Source, TurnRequest};

use super::read_request;

fn with(fields: &Value) -> TurnRequest {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    read_request(&body)
}

/// Both forms are read alike.
#[track_caller]
fn check(quirk: &Value, regular: &Value) {
    assert_eq!(with(quirk), with(regular));
}

fn user(content: &Value) -> Value {
    json!({"messages": [{"role": "user", "content": content}]})
}

#[test]
fn a_tool_without_a_type_is_a_function() {
    let function = json!({"name": "f", "parameters": {"type": "object"}});
    check(
        &json!({"tools": [{"function": function}]}),
        &json!({"tools": [{"type": "function", "function": function}]}),
    );
}

#[test]
fn an_image_url_may_be_a_string() {
    let url = "data:image/png;base64,aGk=";
    let source = Source::Base64 { media_type: "image/png".into(), data: "aGk=".into() };
    for part in [
        json!({"type": "image_url", "image_url": url}),
        json!({"image_url": url}),
        json!({"image_url": {"url": url}}),
    ] {
        let request = with(&user(&json!([part])));
        let Message::User(user) = &request.messages[0] else { panic!("{request:?}") };
        assert!(matches!(&user.content[0], Part::Image(image) if image.source == source), "{part}");
    }
}

#[test]
fn a_text_part_may_be_a_string_or_lack_its_type() {
    let regular = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    check(&user(&json!(["a", {"text": "b"}])), &user(&regular));
}

#[test]
fn null_content_is_no_content() {
    check(&user(&Value::Null), &user(&json!("")));
    check(&json!({"messages": [{"role": "user"}]}), &user(&json!("")));
}

#[test]
fn numbers_may_be_strings_or_have_a_fraction() {
    check(
        &json!({"max_tokens": "100", "temperature": "0.5", "seed": "7"}),
        &json!({"max_tokens": 100, "temperature": 0.5, "seed": 7}),
    );
    check(&json!({"max_completion_tokens": 100.0}), &json!({"max_completion_tokens": 100}));
    assert_eq!(with(&json!({"max_tokens": -1})).max_output, None);
}

#[test]
fn a_tool_choice_may_have_the_form_of_other_hosts() {
    let check = |choice: Value, expect: Choice| {
        let request = with(&json!({"tool_choice": choice}));
        assert_eq!(request.tool_choice.choice, Some(expect), "{choice}");
    };
    let named = || Choice::Named("f".into(), CallKind::Function);
    check(json!({"type": "tool", "name": "f"}), named());
    check(json!({"type": "function", "name": "f"}), named());
    check(json!({"function": {"name": "f"}}), named());
    check(json!({"type": "auto"}), Choice::Auto);
    check(json!({"type": "any"}), Choice::Any);
    check(json!({"type": "required"}), Choice::Any);
    check(json!({"type": "none"}), Choice::None);
    check(json!("any"), Choice::Any);
}

/// The ids of a request's results, and the texts of its other user messages.
#[track_caller]
fn check_results(results: &Value, expect: &[&str], orphans: usize) {
    let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name}});
    let mut messages = vec![
        json!({"role": "assistant", "tool_calls": [call("old", "f")]}),
        json!({"role": "assistant", "tool_calls": [call("c1", "f"), call("c2", "g"), call("c3", "f")]}),
    ];
    messages.extend(results.as_array().unwrap().iter().cloned());
    let request = read_request(&json!({"model": "m", "messages": messages}));
    let mut ids = Vec::new();
    let mut texts = 0;
    for message in &request.messages {
        match message {
            Message::ToolResults(results) => {
                ids.extend(results.results.iter().map(|result| result.call.as_str().to_owned()));
            }
            Message::User(user) => texts += usize::from(matches!(user.content[0], Part::Text(_))),
            Message::System(_) | Message::Assistant(_) => {}
        }
    }
    assert_eq!((ids, texts), (expect.iter().map(|id| (*id).to_owned()).collect(), orphans));
}

// T23
#[test]
fn a_result_without_an_id_answers_the_next_open_call() {
    let bare = json!({"role": "tool", "content": "x"});
    let with_id = |id: Value| json!({"role": "tool", "tool_call_id": id, "content": "x"});
    let of_tool = |name: &str| json!({"role": "tool", "name": name, "content": "x"});
    check_results(&json!([bare, bare, bare]), &["c1", "c2", "c3"], 0);
    check_results(&json!([with_id(Value::Null), with_id(json!("")), bare]), &["c1", "c2", "c3"], 0);
    check_results(&json!([with_id(json!("c2")), bare, bare]), &["c2", "c1", "c3"], 0);
    check_results(&json!([of_tool("g"), of_tool("f"), of_tool("f")]), &["c2", "c1", "c3"], 0);
    check_results(&json!([with_id(json!("old")), of_tool("nobody")]), &["old"], 1);
    check_results(&json!([{"role": "function", "content": "x"}]), &["c1"], 0);
}
