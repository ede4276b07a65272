//! What hosts do differently from the specification in their streams.

use serde_json::json;
use toolgate_model::{Block, Reply, StopReason};

use super::stream_reading::{check, content};
use super::{DIALECT, ID, chunk, fold_stream, last, read_stream};
use crate::UpstreamDialect as _;

fn calls(pieces: &[&str]) -> Vec<String> {
    pieces.iter().map(|piece| format!(r#"{{"tool_calls":[{piece}]}}"#)).collect()
}

fn check_calls(pieces: &[&str], expect: &[&str]) -> Reply {
    let deltas = calls(pieces);
    check(&deltas.iter().map(String::as_str).collect::<Vec<_>>(), "tool_calls", expect)
}

fn stop(frames: &[&str]) -> StopReason {
    fold_stream(frames).finish.stop
}

#[test]
fn arguments_in_pieces_arrive_whole_on_a_call_with_an_unknown_field() {
    let start = r#"{"index":0,"id":"a","mark":1,"function":{"name":"f","arguments":""}}"#;
    let piece = |text: &str| format!(r#"{{"index":0,"function":{{"arguments":{}}}}}"#, json!(text));
    let all = r#"{"n":42,"text":"a \"}\" b","list":[[1],{}]}"#;
    for cut in (1..all.len()).filter(|cut| all.is_char_boundary(*cut)) {
        let (one, two) = (piece(&all[..cut]), piece(&all[cut..]));
        check_calls(&[start, &one, &two], &[&format!("call a f {all}")]);
    }
    let characters: Vec<String> = all.chars().map(|character| piece(&character.to_string())).collect();
    let pieces: Vec<&str> = std::iter::once(start).chain(characters.iter().map(String::as_str)).collect();
    check_calls(&pieces, &[&format!("call a f {all}")]);
    check_calls(&[start, &piece("{\"n\":"), &piece("42"), &piece("}")], &["call a f {\"n\":42}"]);
}

#[test]
fn unknown_fields_of_a_call_are_kept_even_if_another_block_follows() {
    let call = |id: &str, value: &str| {
        format!(
            r#"{{"index":0,"id":"{id}","function":{{"name":"f","arguments":"{{}}"}},"extra_content":{{"google":{{"cache":"{value}"}}}}}}"#
        )
    };
    // Gemini gives every call the index 0.
    let reply = check_calls(&[&call("a", "S"), &call("b", "T")], &["call a f {}", "call b f {}"]);
    let fields: Vec<_> = reply
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::ToolCall(call) => call.extras.known_to(ID)?.get("extra_content").cloned(),
            Block::Text(_) | Block::Refusal(_) | Block::Reasoning(_) | Block::Opaque(_) => None,
        })
        .collect();
    let expect = |value: &str| json!({"google": {"cache": value}});
    assert_eq!(fields, [expect("S"), expect("T")]);
}

#[test]
fn a_call_whose_id_arrives_late_stays_one_call() {
    let check_one = |calls: &[&str]| {
        let reply = check_calls(calls, &["call call_0_r1 f {\"a\":1}"]);
        assert_eq!(reply.blocks.len(), 1);
    };
    check_one(&[
        r#"{"index":0,"function":{"name":"f","arguments":"{\"a\":"}}"#,
        r#"{"index":0,"id":"late","function":{"arguments":"1}"}}"#,
    ]);
}

#[test]
fn a_call_is_known_by_its_id_else_its_index_else_it_is_the_latest() {
    let whole = |id: &str, name: &str, arguments: &str| {
        format!(r#"{{"id":"{id}","function":{{"name":"{name}","arguments":{arguments}}}}}"#)
    };
    check_calls(
        &[&whole("a", "f", "{\"x\":1}"), &whole("b", "f", "\"[]\"")],
        &["call a f {\"x\":1}", "call b f []"],
    );
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}"#,
            r#"{"index":1,"id":"b","function":{"name":"g","arguments":"["}}"#,
            r#"{"id":"a","function":{"arguments":"}"}}"#,
            r#"{"index":7,"id":"b","function":{"name":"","arguments":"]"}}"#,
        ],
        &["call a f {}", "call b g []"],
    );
    // `""` means the same as before.
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}"#,
            r#"{"index":0,"id":"","function":{"name":"","arguments":"}"}}"#,
        ],
        &["call a f {}"],
    );
    // A new id on an old index is a new call, even if its name comes later.
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":0,"id":"b"}"#,
            r#"{"index":0,"function":{"name":"g","arguments":"{}"}}"#,
        ],
        &["call a f {}", "call b g {}"],
    );
    // Unless it comes with a piece of the arguments.
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}"#,
            r#"{"index":0,"id":"b","function":{"arguments":"}"}}"#,
        ],
        &["call a f {}"],
    );
    // The same id twice, but not the same index.
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":1,"id":"a","function":{"name":"g","arguments":"[]"}}"#,
        ],
        &["call a f {}", "call a g []"],
    );
    // A repeated name is not a longer name.
    check_calls(
        &[
            r#"{"index":0,"function":{"name":"f"}}"#,
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":null}}"#,
            r#"{"index":0,"function":{"arguments":{"x":1}}}"#,
        ],
        &[r#"call a f {"x":1}"#],
    );
}

#[test]
fn an_empty_function_call_is_no_call() {
    for empty in [r#"{"name":""}"#, r#"{"name":"","arguments":""}"#, r#"{"name":null}"#, "{}", "null"] {
        let delta = format!(r#"{{"content":"hi","function_call":{empty}}}"#);
        let reply = check(&[&delta], "stop", &["text hi"]);
        assert_eq!(reply.finish.stop, StopReason::EndTurn);
        let call = r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#;
        let delta = format!(r#"{{"tool_calls":[{call}],"function_call":{empty}}}"#);
        check(&[&delta], "tool_calls", &["call a f {}"]);
    }
    let mut reader = DIALECT.reply_reader();
    assert!(reader.losses().is_empty());
}

#[test]
fn done_without_a_finish_reason_is_an_end() {
    let text = chunk(r#"{"content":"hi"}"#);
    let call = chunk(r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}"#);
    assert_eq!(stop(&[&text, "[DONE]"]), StopReason::EndTurn);
    assert_eq!(stop(&[&call, "[DONE]"]), StopReason::ToolUse);
    assert_eq!(stop(&[&text, &last(""), "[DONE]"]), StopReason::EndTurn);
    assert_eq!(stop(&[&call, &last(""), "[DONE]"]), StopReason::ToolUse);
    let cut = chunk(
        r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"city\":\"Par"}}]}"#,
    );
    for cut in [vec![cut.as_str(), "[DONE]"], vec!["[DONE]"], vec![text.as_str()], vec![]] {
        let error = read_stream(&cut).unwrap_err();
        assert!(error.message.contains("before the reply was complete"), "{cut:?}: {error}");
    }
}

#[test]
fn finish_reasons_of_hosts_are_mapped() {
    let text = chunk(r#"{"content":"hi"}"#);
    let check = |reason: &str, expect: StopReason| {
        assert_eq!(stop(&[&text, &last(reason), "[DONE]"]), expect, "{reason}");
    };
    check("eos", StopReason::EndTurn);
    check("STOP", StopReason::EndTurn);
    check("model_length", StopReason::MaxTokens);
    check("sensitive", StopReason::ContentFilter);
    check("weird", StopReason::Other("weird".to_owned()));
    for reason in ["error", "insufficient_system_resource", "network_error"] {
        let error = read_stream(&[&text, &last(reason), "[DONE]"]).unwrap_err();
        assert!(error.message.contains(reason), "{error}");
    }
}

#[test]
fn reasoning_is_read_from_the_first_field_that_holds_it() {
    check(&[r#"{"reasoning_text":"t"}"#, r#"{"content":"a"}"#], "stop", &["thought t", "text a"]);
    let details = r#"{"reasoning_details":[{"type":"reasoning.text","text":"t","index":0}]}"#;
    check(&[details, details, r#"{"content":"a"}"#], "stop", &["thought tt", "text a"]);
    let both = r#"{"reasoning":"t","reasoning_details":[{"type":"reasoning.text","text":"t","index":0}]}"#;
    let signed = r#"{"reasoning_details":[{"type":"reasoning.text","signature":"S","index":0}]}"#;
    let reply = check(&[both, both, signed, r#"{"content":"a"}"#], "stop", &["thought tt", "text a"]);
    let Block::Reasoning(reasoning) = &reply.blocks[0] else { panic!("no reasoning") };
    let seal = reasoning.seal.as_ref().unwrap();
    let data: serde_json::Value = serde_json::from_str(&seal.data).unwrap();
    assert_eq!(data, json!([{"type": "reasoning.text", "text": "tt", "index": 0, "signature": "S"}]));
    let encrypted = r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}"#;
    check(&[encrypted, r#"{"content":"a"}"#], "stop", &["thought ", "text a"]);
    check(&[r#"{"content":"a"}"#, encrypted], "stop", &["text a", "thought "]);
    let part = r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}],"closed":false}]}"#;
    check(&[part, part, r#"{"content":[{"type":"text","text":"a"}]}"#], "stop", &["thought tt", "text a"]);
}

#[test]
fn content_may_be_an_object_and_a_message_may_replace_a_delta() {
    check(&[r#"{"content":{"type":"text","text":"a"}}"#], "stop", &["text a"]);
    check(&[r#"{"content":{"city":"Bonn"}}"#], "stop", &[r#"text {"city":"Bonn"}"#]);
    let frame = |choice: &str| format!(r#"{{"id":"r1","model":"m","created":5,"choices":[{choice}]}}"#);
    let whole = frame(r#"{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}"#);
    assert_eq!(content(&fold_stream(&[&whole, "[DONE]"])), ["text a"]);
    let beside = |text: &str, all: &str| {
        frame(&format!(r#"{{"index":0,"delta":{{"content":"{text}"}},"message":{{"content":"{all}"}}}}"#))
    };
    let frames = [beside("a", "a"), beside("b", "ab"), last("stop")];
    let reply = fold_stream(&frames.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(content(&reply), ["text ab"]);
    assert!(reply.finish.extras.is_empty());
}

#[test]
fn chunks_may_lack_choices_and_deltas_and_the_last_usage_wins() {
    let frames = [
        r#"{"id":"","model":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]}"#.to_owned(),
        r#"{"id":"r1","model":"m","created":5,"choices":[{"index":0}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#.to_owned(),
        chunk(r#"{"content":"hi"}"#),
        r#"{"id":"r1","choices":[{"index":0,"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":3,"completion_tokens":4}}}"#.to_owned(),
    ];
    let reply = fold_stream(&frames.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(content(&reply), ["text hi"]);
    assert_eq!(reply.finish.usage.map(|usage| usage.total()), Some(7));
}

#[test]
fn a_refusal_is_a_stop_reason_too() {
    let reply = check(&[r#"{"refusal":"no"}"#], "stop", &["refusal no"]);
    assert_eq!(reply.finish.stop, StopReason::Refusal);
    let reply = check(&[r#"{"refusal":"no"}"#], "content_filter", &["refusal no"]);
    assert_eq!(reply.finish.stop, StopReason::ContentFilter);
}
