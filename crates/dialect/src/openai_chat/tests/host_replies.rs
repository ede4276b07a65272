//! What hosts do differently from the specification in whole replies.

use serde_json::{Value, json};
use toolgate_model::{Block, Reply, StopReason};

use super::stream_reading::content;
use super::{DIALECT, json as parse, plain_context};
use crate::{ClientDialect as _, UpstreamDialect as _};

fn read(choice: &Value) -> Reply {
    let body = json!({"id": "r1", "model": "m", "created": 5, "choices": [choice]});
    DIALECT.read_reply(body.to_string().as_bytes()).unwrap().value
}

fn message(message: &Value) -> Reply {
    read(&json!({"index": 0, "message": message, "finish_reason": "stop"}))
}

/// The first choice as this dialect writes the reply again.
fn written(reply: &Reply) -> Value {
    parse(&DIALECT.write_reply(reply, &plain_context()).value)["choices"][0].clone()
}

#[test]
fn a_missing_finish_reason_is_taken_from_the_content() {
    let call = json!({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]});
    for reason in [Value::Null, json!("")] {
        let stop = |message: &Value| read(&json!({"message": message, "finish_reason": reason})).finish.stop;
        assert_eq!(stop(&json!({"content": "a"})), StopReason::EndTurn);
        assert_eq!(stop(&call), StopReason::ToolUse);
        assert_eq!(stop(&json!({"refusal": "no"})), StopReason::Refusal);
    }
    let details = json!({"message": {"content": "a"}, "finish_details": {"type": "max_tokens"}});
    assert_eq!(read(&details).finish.stop, StopReason::MaxTokens);
}

#[test]
fn a_filtered_choice_has_no_message() {
    let reply = read(
        &json!({"index": 0, "finish_reason": "content_filter", "content_filter_results": {"hate": {"filtered": true}}}),
    );
    assert_eq!((reply.blocks.len(), &reply.finish.stop), (0, &StopReason::ContentFilter));
    assert_eq!(written(&reply)["finish_reason"], "content_filter");
}

#[test]
fn content_may_be_an_object() {
    assert_eq!(content(&message(&json!({"content": {"type": "text", "text": "a"}}))), ["text a"]);
    assert_eq!(content(&message(&json!({"content": {"city": "Bonn"}}))), [r#"text {"city":"Bonn"}"#]);
    assert_eq!(content(&message(&json!({"content": 42}))), ["text 42"]);
}

#[test]
fn calls_without_a_name_are_no_calls() {
    let reply = message(&json!({"content": "a", "function_call": {"name": "", "arguments": ""}}));
    assert_eq!(content(&reply), ["text a"]);
    let nameless = json!({"id": "x", "function": {"name": "", "arguments": ""}});
    assert_eq!(content(&message(&json!({"content": "a", "tool_calls": [nameless]}))), ["text a"]);
}

#[test]
fn arguments_may_be_an_object_null_or_absent() {
    let call = |arguments: Value| {
        let mut function = json!({"name": "f", "arguments": arguments});
        if function["arguments"] == "absent" {
            function.as_object_mut().unwrap().remove("arguments");
        }
        let reply = message(&json!({"tool_calls": [{"id": "a", "function": function}]}));
        written(&reply)["message"]["tool_calls"][0]["function"]["arguments"].clone()
    };
    assert_eq!(call(json!({"x": 1})), r#"{"x":1}"#);
    assert_eq!(call(json!("{\"x\":1}")), r#"{"x":1}"#);
    assert_eq!(call(Value::Null), "{}");
    assert_eq!(call(json!("")), "{}");
    assert_eq!(call(json!("absent")), "{}");
}

#[test]
fn reasoning_is_read_from_the_first_field_that_holds_it() {
    let check = |fields: Value, expect: &str| {
        let mut body = json!({"content": "a"});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let reply = message(&body);
        assert_eq!(content(&reply), [&format!("thought {expect}"), "text a"]);
        let again = &written(&reply)["message"];
        for (name, value) in fields.as_object().unwrap() {
            assert_eq!(&again[name], value, "{name} in {again}");
        }
        assert_eq!(again.as_object().unwrap().len(), fields.as_object().unwrap().len() + 2, "{again}");
    };
    check(json!({"reasoning_content": "t"}), "t");
    check(json!({"reasoning": "t"}), "t");
    check(json!({"reasoning_text": "t"}), "t");
    let details = json!([{"type": "reasoning.text", "text": "t", "signature": "S"}]);
    check(json!({"reasoning_details": details}), "t");
    check(json!({"reasoning": "t", "reasoning_details": details}), "t");
    check(json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "t"}]}), "t");
    check(json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}), "");
}

#[test]
fn a_refusal_in_the_message_has_an_ordinary_finish_reason() {
    let reply = message(&json!({"content": null, "refusal": "no"}));
    assert_eq!(reply.finish.stop, StopReason::Refusal);
    let again = written(&reply);
    assert_eq!((&again["finish_reason"], &again["message"]["refusal"]), (&json!("stop"), &json!("no")));
    let mut foreign = message(&json!({"content": "I cannot help."}));
    foreign.finish.stop = StopReason::Refusal;
    assert_eq!(written(&foreign)["finish_reason"], "content_filter");
    assert!(matches!(foreign.blocks[0], Block::Text(_)));
}

#[test]
fn more_cached_tokens_than_prompt_tokens_do_not_raise_the_total() {
    let usage = json!({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7, "prompt_tokens_details": {"cached_tokens": 8}});
    let body = json!({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], "usage": usage});
    let reply = DIALECT.read_reply(body.to_string().as_bytes()).unwrap().value;
    let counts = reply.finish.usage.clone().unwrap();
    assert_eq!((counts.input, counts.cache_read, counts.total()), (0, 5, 7));
    let again = parse(&DIALECT.write_reply(&reply, &plain_context()).value);
    assert_eq!(again["usage"], usage);
}

#[test]
fn log_probabilities_keep_their_digits() {
    let digits =
        r#"{"content":[{"token":"a","logprob":-1.9361265e-7},{"token":"b","logprob":-0.00043202203}]}"#;
    let body = format!(
        r#"{{"choices":[{{"message":{{"content":"ab"}},"finish_reason":"stop","logprobs":{digits}}}]}}"#
    );
    let reply = DIALECT.read_reply(body.as_bytes()).unwrap().value;
    let again = DIALECT.write_reply(&reply, &plain_context()).value;
    assert!(String::from_utf8(again).unwrap().contains(digits));
}
