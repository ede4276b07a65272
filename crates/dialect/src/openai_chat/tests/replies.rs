//! Whole replies, errors and the meter.

use serde_json::{Value, json};
use toolgate_model::{
    Block, CallKind, ErrorKind, Finish, Reply, ReplyHead, StopReason, Text, ToolCall, TurnError, Usage,
};

use super::super::merge_choices;
use super::{DIALECT, context, json, no_extras, plain_context, read_request};
use crate::frame::{MAX_FRAME_BYTES, SseDecoder, SseFrame};
use crate::{ClientDialect as _, MeterReading, UpstreamDialect as _};
use toolgate_conformance::equivalence::{Side, difference};

fn reply_json(message: &Value, finish_reason: &str) -> Value {
    json!({"id": "x1", "object": "chat.completion", "created": 5, "model": "m", "system_fingerprint": "fp",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason, "content_filter_results": {"hate": 1}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14,
            "prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 2}}})
}

#[test]
fn replies_round_trip() {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"s": 1}});
    for (message, finish) in [
        (json!({"role": "assistant", "content": "hi", "annotations": [{"type": "url_citation"}]}), "stop"),
        (json!({"role": "assistant", "content": "", "tool_calls": [call]}), "tool_calls"),
        (json!({"role": "assistant", "content": null, "refusal": "no"}), "content_filter"),
        (json!({"role": "assistant", "content": "a", "reasoning": "hm"}), "length"),
        (json!({"role": "assistant", "content": "a", "reasoning_content": "hm", "reasoning": "hm"}), "odd"),
        (
            json!({"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}, {"type": "text", "text": "a"}]}),
            "stop",
        ),
        (
            json!({"role": "assistant", "tool_calls": [{"id": "", "function": {"name": "f", "arguments": "{}"}}]}),
            "tool_calls",
        ),
    ] {
        let body = reply_json(&message, finish);
        let read = DIALECT.read_reply(body.to_string().as_bytes()).unwrap();
        let written = DIALECT.write_reply(&read.value, &plain_context());
        assert!(read.losses.is_empty() && written.losses.is_empty());
        assert_eq!(difference(super::super::ID, Side::Reply, body, json(&written.value)), None);
    }
}

#[test]
fn usage_is_read_in_fields_that_add_up() {
    let read = |usage: Value| {
        let mut body = reply_json(&json!({"role": "assistant", "content": "a"}), "stop");
        body["usage"] = usage;
        DIALECT.read_reply(body.to_string().as_bytes()).unwrap().value.finish.usage.unwrap()
    };
    let check = |usage: Value, expect: (u64, u64, u64, u64, Option<u64>)| {
        let usage = read(usage);
        assert_eq!((usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning), expect);
    };
    check(
        json!({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 1}}),
        (5, 3, 2, 4, Some(1)),
    );
    check(
        json!({"prompt_tokens": 10, "completion_tokens": 4, "prompt_cache_hit_tokens": 6}),
        (4, 6, 0, 4, None),
    );
}

#[test]
fn a_call_without_an_id_gets_one_in_other_dialects() {
    let message = json!({"role": "assistant", "tool_calls": [
        {"type": "function", "function": {"name": "f", "arguments": "{}"}}, {"id": "", "type": "function", "function": {"name": "f"}}]});
    let reply = DIALECT.read_reply(reply_json(&message, "tool_calls").to_string().as_bytes()).unwrap().value;
    let ids: Vec<_> = reply
        .blocks
        .iter()
        .map(|block| {
            let Block::ToolCall(call) = block else { panic!("{block:?}") };
            call.id.as_str()
        })
        .collect();
    assert_eq!(ids, ["call_0_x1", "call_1_x1"]); // T23
}

#[test]
fn foreign_replies_are_written_in_this_dialect() {
    let call = |id: &str| {
        Block::ToolCall(ToolCall {
            id: id.into(),
            name: "f".into(),
            kind: CallKind::Function,
            arguments: String::new(),
            extras: no_extras(),
        })
    };
    let reply = Reply {
        head: ReplyHead { id: Some("msg_1".into()), ..ReplyHead::default() },
        blocks: vec![Block::Text(Text::new("a")), call("c1"), call("c2")],
        finish: Finish {
            stop: StopReason::ToolUse,
            usage: Some(Usage { input: 1, cache_read: 2, cache_write: 3, output: 4, ..Usage::default() }),
            ..Finish::default()
        },
    };
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}); // T9
    let usage = json!({"prompt_tokens": 6, "completion_tokens": 4, "total_tokens": 10, "prompt_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 3}});
    assert_eq!(
        json(&DIALECT.write_reply(&reply, &plain_context()).value),
        json!({
        "id": "chatcmpl-msg_1", "object": "chat.completion", "created": 7, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "a", "tool_calls": [call("c1"), call("c2")]}, "finish_reason": "tool_calls"}],
        "usage": usage})
    );
    let legacy = read_request(
        &json!({"model": "m", "functions": [{"name": "f"}], "messages": [{"role": "user", "content": "x"}]}),
    );
    let written = DIALECT.write_reply(&reply, &context(legacy));
    let choice = &json(&written.value)["choices"][0];
    assert_eq!(
        choice["message"],
        json!({"role": "assistant", "content": "a", "function_call": {"name": "f", "arguments": "{}"}})
    );
    assert_eq!(choice["finish_reason"], "function_call");
    assert!(written.losses.contains("message.function_call"));
}

#[test]
fn several_choices() {
    let mut body = reply_json(&json!({"role": "assistant", "content": "a"}), "stop");
    let merged = json(&merge_choices(vec![body.to_string().into(), body.to_string().into()]));
    assert_eq!(
        (&merged["choices"][1]["index"], &merged["choices"][1]["message"]["content"]),
        (&json!(1), &json!("a"))
    );
    assert_eq!(
        (
            &merged["usage"]["prompt_tokens"],
            &merged["usage"]["completion_tokens"],
            &merged["usage"]["total_tokens"]
        ),
        (&json!(10), &json!(8), &json!(18))
    );
    body["choices"] = merged["choices"].clone();
    let read = DIALECT.read_reply(body.to_string().as_bytes()).unwrap();
    assert!(read.losses.contains("choices[1]"));
}

#[test]
fn a_body_that_is_not_a_reply_is_a_clear_error() {
    let check = |body: &str, kind: ErrorKind, words: &str| {
        let error = DIALECT.read_reply(body.as_bytes()).unwrap_err();
        assert_eq!(error.kind, kind);
        assert!(error.message.contains(words), "{error}");
    };
    check(r#"{"text": "a transcript"}"#, ErrorKind::Upstream, "not a chat completion");
    check(r#"{"choices": []}"#, ErrorKind::Upstream, "no choices");
    check("<html>", ErrorKind::Upstream, "not a chat completion");
    check(r#"{"error": {"message": "slow down", "code": 429}}"#, ErrorKind::RateLimited, "slow down");
}

// T38
#[test]
fn errors_in_every_shape() {
    let check = |status: u16, body: &str, kind: ErrorKind, message: &str, code: Option<&str>| {
        let error = DIALECT.read_error(status, body.as_bytes());
        assert_eq!((error.kind, error.status(), error.code.as_deref()), (kind, status, code));
        assert!(error.message.contains(message), "{error}");
    };
    let by_the_book = r#"{"error": {"message": "no such model", "type": "invalid_request_error", "param": "model", "code": "model_not_found"}}"#;
    check(404, by_the_book, ErrorKind::NotFound, "no such model", Some("model_not_found"));
    check(422, r#"{"error": {"message": "bad", "code": 17}}"#, ErrorKind::InvalidRequest, "bad", Some("17"));
    check(
        429,
        r#"{"error": {"message": "pay", "type": "insufficient_quota"}}"#,
        ErrorKind::Billing,
        "pay",
        None,
    );
    check(400, r#"{"error": "just text"}"#, ErrorKind::InvalidRequest, "just text", None);
    check(400, r#"{"detail": [{"loc": ["body"]}]}"#, ErrorKind::InvalidRequest, "loc", None);
    check(401, r#"{"message": "who are you"}"#, ErrorKind::Authentication, "who are you", None);
    check(
        400,
        r#"[{"error": {"code": 400, "message": "in a list"}}]"#,
        ErrorKind::InvalidRequest,
        "in a list",
        Some("400"),
    );
    check(502, "<html><h1>Bad  gateway</h1>", ErrorKind::Upstream, "<h1>Bad gateway", None);
    check(503, "", ErrorKind::Unavailable, "an empty body", None);
}

#[test]
fn an_error_is_written_with_its_field_and_code() {
    let mut error = TurnError::invalid_param("model", "no");
    error.code = Some("c".into());
    assert_eq!(
        json(&DIALECT.write_error(&error)),
        json!({"error": {"message": "no", "type": "invalid_request_error", "param": "model", "code": "c"}})
    );
}

#[test]
fn the_meter_reads_usage_and_the_end() {
    let check = |frames: &[&str], expect: (Option<u64>, bool, bool)| {
        let mut meter = DIALECT.meter();
        let mut decoder = SseDecoder::new(MAX_FRAME_BYTES);
        for frame in frames {
            decoder.push(format!("data: {frame}\n\n").as_bytes());
            while let Some(frame) = decoder.next_frame().unwrap() {
                meter.frame(frame);
            }
        }
        let MeterReading { usage, complete, error, repeated: _, content_bytes: _ } = meter.reading();
        assert_eq!((usage.map(|usage| usage.total()), complete, error.is_some()), expect);
    };
    let delta = r#"{"choices":[{"delta":{"content":"the \"usage\" of \"error\""},"finish_reason":null}],"usage":null}"#;
    let counted = r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#;
    check(&[delta], (None, false, false));
    check(&[delta, counted, "[DONE]"], (Some(7), true, false));
    check(&[r#"{"choices":[{"delta":{},"finish_reason": "stop"}]}"#], (None, true, false));
    check(
        &[r#"{"choices":[],"x_groq":{"usage":{"prompt_tokens":1,"completion_tokens":1}}}"#],
        (Some(2), false, false),
    );
    check(&[r#"{"error":{"message":"x"}}"#], (None, false, true));
    let mut meter = DIALECT.meter();
    for text in ["", "hello ", "world"] {
        let data =
            json!({"id": "c", "choices": [{"delta": {"content": text}, "finish_reason": null}]}).to_string();
        meter.frame(SseFrame { event: "", data: &data });
    }
    assert_eq!(meter.reading().content_bytes, Some("hello world".len()), "the envelope does not count");
    let reading = DIALECT.measure(reply_json(&json!({"role": "assistant"}), "stop").to_string().as_bytes());
    assert_eq!(reading.usage.map(|usage| usage.total()), Some(14));
}
