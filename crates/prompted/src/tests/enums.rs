//! Enums whose values could be confused with each other: each rendered value parses back to itself, and the
//! prompt says how to write it.

use serde_json::Value;
use toolgate_model::{AssistantMessage, CallId, ToolCall};

use super::*;
use crate::options::{Repair, Strictness};

fn request_with(schema: &Value) -> TurnRequest {
    let tool = function("Pick", &json!({"properties": {"x": schema}, "required": ["x"]}));
    TurnRequest { tools: vec![tool], ..request() }
}

/// Schemas, each with values that must stay distinct.
fn schemas() -> Vec<(Value, Vec<Value>)> {
    let listed = |values: Value| (json!({"enum": values.clone()}), values.as_array().unwrap().clone());
    let nullable = vec![json!("null"), json!("a"), Value::Null];
    vec![
        listed(json!(["1", 1])),
        listed(json!(["null", null, "a"])),
        listed(json!(["true", true, "false"])),
        listed(json!(["{\"a\":1}", {"a": 1}, "[1]", [1]])),
        listed(json!(["a", "\"a\"", "'a'", "A", " a", "a ", ""])),
        listed(json!(["1.0", 1.5, "1", "[x", "{", "two\nlines", "\n", "</parameter>"])),
        (json!({"anyOf": [{"enum": ["1", "2"]}, {"enum": [1, 2]}]}), vec![json!("1"), json!(1), json!(2)]),
        (json!({"oneOf": [{"const": "null"}, {"type": "null"}]}), vec![json!("null"), Value::Null]),
        (json!({"anyOf": [{"enum": ["null", "a"]}, {"type": "null"}]}), nullable.clone()),
        (json!({"type": "string", "enum": ["null", "a"], "nullable": true}), nullable.clone()),
        (json!({"enum": ["null", "a"], "default": null}), nullable),
        // The type excludes one of the two values.
        (json!({"type": "string", "enum": ["1", 1]}), vec![json!("1")]),
        // Any integer is allowed, so a string that looks like one needs quotes.
        (json!({"anyOf": [{"enum": ["1"]}, {"type": "integer"}]}), vec![json!("1"), json!(1), json!(7)]),
    ]
}

#[test]
fn every_enum_value_round_trips_even_in_strict_mode() {
    for (schema, values) in schemas() {
        for value in values {
            for strictness in [Strictness::Lenient, Strictness::Strict] {
                let arguments = json!({"x": value}).to_string();
                let call = Block::ToolCall(ToolCall {
                    id: CallId::new("c"),
                    name: "Pick".into(),
                    kind: CallKind::Function,
                    arguments: arguments.clone(),
                    extras: Extras::NONE,
                });
                let mut request = request_with(&schema);
                let answer = AssistantMessage { content: vec![call], extras: Extras::NONE };
                request.messages.extend([Message::Assistant(answer), user("next")]);
                let prepared =
                    prepared(&request, &PromptedOptions { strictness, ..PromptedOptions::default() });
                let Message::Assistant(rendered) = &prepared.request.messages[1] else {
                    panic!("not an answer")
                };
                let [Block::Text(text)] = rendered.content.as_slice() else { panic!("{rendered:?}") };
                let outcome = read_prepared(&prepared, &text.text, &StopReason::EndTurn);
                assert_eq!(outcome.blocks, [format!("call Pick {arguments}")], "{schema}: {}", text.text);
                assert_eq!(outcome.recoveries, [], "{schema}: {}", text.text);
            }
        }
    }
}

/// Checks how a value is parsed.
fn check(schema: &Value, written: &str, json: &str, recoveries: &[Recovery]) {
    let options = PromptedOptions { repair: Repair::Off, ..PromptedOptions::default() };
    let prepared = prepared(&request_with(schema), &options);
    let text = format!("§\n<invoke name=\"Pick\">\n<parameter name=\"x\">{written}</parameter>\n</invoke>");
    let outcome = read_prepared(&prepared, &text, &StopReason::EndTurn);
    assert_eq!(outcome.blocks, [format!("call Pick {{\"x\":{json}}}")], "{schema} {written}");
    assert_eq!(outcome.recoveries, recoveries, "{schema} {written}");
}

#[test]
fn values_of_ambiguous_enums_are_json() {
    let numbers = json!({"enum": ["1", 1, "One"]});
    check(&numbers, "1", "1", &[]);
    check(&numbers, "\"1\"", "\"1\"", &[]);
    check(&numbers, "\n\"1\"\n", "\"1\"", &[]);
    check(&numbers, "\"One\"", "\"One\"", &[]);
    // Without quotes it can only be the string.
    check(&numbers, "One", "\"One\"", &[Recovery::Coerced]);
    check(&numbers, "one", "\"One\"", &[Recovery::Coerced]);
    let null = json!({"anyOf": [{"enum": ["null", "a"]}, {"type": "null"}]});
    check(&null, "null", "null", &[]);
    check(&null, "\"null\"", "\"null\"", &[]);
    let plain = json!({"enum": ["a", "b"]});
    check(&plain, "a", "\"a\"", &[]);
    check(&plain, "\"a\"", "\"a\"", &[Recovery::Coerced]);
}

#[test]
fn enum_values_in_json_calls_keep_their_types() {
    let prepared = prepared(&request_with(&json!({"enum": ["1", 1]})), &PromptedOptions::default());
    for value in ["1", "\"1\""] {
        let text = format!("§\n{{\"name\":\"Pick\",\"arguments\":{{\"x\":{value}}}}}");
        let outcome = read_prepared(&prepared, &text, &StopReason::EndTurn);
        assert_eq!(outcome.blocks, [format!("call Pick {{\"x\":{value}}}")]);
    }
}

#[test]
fn the_prompt_says_where_strings_need_quotes() {
    for (schema, is_stated) in [
        (json!({"enum": ["1", 1]}), true),
        (json!({"anyOf": [{"enum": ["null"]}, {"type": "null"}]}), true),
        (json!({"enum": ["a", "b", 1]}), false),
        (json!({"type": "string", "enum": ["1", 1]}), false),
        (json!({"type": "string"}), false),
    ] {
        for prompt_template in [None, Some("{tools_list} {trigger_signal}".to_owned())] {
            let options = PromptedOptions { prompt_template, ..PromptedOptions::default() };
            let prompt = format!("{:?}", prepared(&request_with(&schema), &options).request.system);
            assert_eq!(prompt.contains("write_as=\\\"JSON, strings in double quotes"), is_stated, "{schema}");
        }
    }
}

#[test]
fn a_side_request_says_where_strings_need_quotes() {
    let prepared = prepared(&request_with(&json!({"enum": ["1", 1]})), &PromptedOptions::default());
    let text = format!("{}\n<invoke name=\"Pick\">\n</invoke>", prepared.plan.trigger().unwrap());
    let mut interpreter = Interpreter::new(prepared.plan.clone());
    let mut out = Vec::new();
    for event in text_events(&text, Split::Whole, StopReason::EndTurn) {
        interpreter.event(event, &mut out);
        if interpreter.missing_value().is_some() {
            break;
        }
    }
    let asked = interpreter.missing_value().unwrap().request(&prepared.request);
    assert!(format!("{:?}", asked.messages.last()).contains("strings in double quotes"));
    interpreter.supply_value("\"1\"", &mut out);
    interpreter.end(&mut out);
    assert_eq!(outcome(&interpreter, out).blocks, ["call Pick {\"x\":\"1\"}"]);
}
