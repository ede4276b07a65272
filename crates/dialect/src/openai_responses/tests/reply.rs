//! Whole replies, errors and the meter.

use serde_json::{Value, json};
use toolgate_model::{
    Block, CallKind, ErrorKind, Extras, Reasoning, ReasoningKind, ReasoningPart, Reply, Seal, StopReason,
    Text, ToolCall, TurnError, Usage,
};

use super::{context, context_of, read_request};
use crate::frame::SseFrame;
use crate::openai_responses::{DIALECT, ID};
use crate::{ClientDialect, UpstreamDialect};
use toolgate_conformance::equivalence::{Side, difference};

fn response(output: Value) -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 5, "status": "completed", "model": "m", "output": output,
        "error": null, "incomplete_details": null, "tools": [], "tool_choice": "auto", "temperature": 1.0,
        "metadata": {}, "parallel_tool_calls": true, "service_tier": "default",
        "usage": { "input_tokens": 10, "input_tokens_details": { "cached_tokens": 4, "cache_write_tokens": 0 },
                   "output_tokens": 3, "output_tokens_details": { "reasoning_tokens": 2 }, "total_tokens": 13 },
    })
}

fn message(text: &str) -> Value {
    json!({ "type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
            "content": [{ "type": "output_text", "text": text, "annotations": [], "logprobs": [] }] })
}

fn read(body: &Value) -> Result<Reply, TurnError> {
    DIALECT.read_reply(body.to_string().as_bytes()).map(|read| read.value)
}

fn written(reply: &Reply) -> Value {
    serde_json::from_slice(&DIALECT.write_reply(reply, &context()).value).expect("the reply is JSON")
}

#[test]
fn a_refusal_without_text_does_not_look_like_an_answer() {
    let mut reply = read(&response(json!([message("I c")]))).expect("it is a reply");
    reply.finish.stop = StopReason::Refusal;
    let body = written(&reply);
    assert_eq!(body["status"], "incomplete");
    assert_eq!(body["incomplete_details"], json!({ "reason": "content_filter" }));
}

#[test]
fn a_reply_round_trips_with_its_stop_reason() {
    let call = json!({ "type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}",
                       "status": "completed" });
    let refusal = json!({ "type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
                          "content": [{ "type": "refusal", "refusal": "no" }] });
    let search = json!({ "type": "web_search_call", "id": "ws_1", "status": "completed" });
    let cases = [
        (json!([search, message("hi")]), json!("completed"), Value::Null, StopReason::EndTurn),
        // T14
        (json!([message("hi"), call]), json!("completed"), Value::Null, StopReason::ToolUse),
        (json!([refusal]), json!("completed"), Value::Null, StopReason::Refusal),
        // T16
        (json!([call]), json!("incomplete"), json!({ "reason": "max_output_tokens" }), StopReason::MaxTokens),
        (json!([]), json!("incomplete"), json!({ "reason": "content_filter" }), StopReason::ContentFilter),
        (json!([]), json!("incomplete"), json!({ "reason": "steered" }), StopReason::Other("steered".into())),
        (json!([]), json!("queued"), Value::Null, StopReason::Other("queued".into())),
    ];
    for (output, status, details, stop) in cases {
        let mut body = response(output);
        body["status"] = status;
        body["incomplete_details"] = details;
        let reply = read(&body).expect("it is a reply");
        assert_eq!(reply.finish.stop, stop);
        assert_eq!(difference(ID, Side::Reply, body, written(&reply)), None);
    }
}

#[test]
fn cached_tokens_are_counted_once() {
    let usage = read(&response(json!([]))).expect("it is a reply").finish.usage.expect("it has usage");
    assert_eq!((usage.input, usage.cache_read, usage.output, usage.reasoning), (6, 4, 3, Some(2)));
    let foreign = Usage { input: 1, cache_read: 2, cache_write: 4, output: 8, ..Usage::default() };
    let mut reply = Reply::default();
    reply.finish.usage = Some(foreign);
    let expect = json!({
        "input_tokens": 7, "input_tokens_details": { "cached_tokens": 2, "cache_write_tokens": 4 },
        "output_tokens": 8, "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 15,
    });
    assert_eq!(written(&reply)["usage"], expect);
}

#[test]
fn a_foreign_reply_repeats_the_request() {
    let request = read_request(&json!({
        "model": "m", "input": "hi", "instructions": "be brief", "metadata": { "a": "b" }, "store": false,
        "tools": [{ "type": "function", "name": "f", "parameters": { "type": "object" }, "strict": true }],
        "max_output_tokens": 99, "temperature": 0.5, "text": { "verbosity": "low" },
    }));
    let seal = Seal { owner: "elsewhere".into(), kind: "signature".into(), id: None, data: "proof".into() };
    let part = ReasoningPart { kind: ReasoningKind::Full, text: "hm".into() };
    let mut reply = Reply {
        blocks: vec![
            Block::Reasoning(Reasoning { parts: vec![part], seal: Some(seal), extras: Extras::NONE }),
            Block::Text(Text::new("one")),
            Block::Text(Text::new("two")),
            Block::ToolCall(ToolCall {
                id: "c".into(),
                name: "f".into(),
                kind: CallKind::Function,
                arguments: String::new(),
                extras: Extras::NONE,
            }),
        ],
        ..Reply::default()
    };
    reply.head.id = Some("chatcmpl-1".into());
    reply.finish.stop = StopReason::ToolUse;
    let body: Value = serde_json::from_slice(&DIALECT.write_reply(&reply, &context_of(request)).value)
        .expect("the reply is JSON");
    let text = |id: &str, text: &str| {
        json!({ "id": id, "status": "completed", "type": "message", "role": "assistant",
                "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
    };
    let expect = json!({
        "id": "resp_ours", "object": "response", "created_at": 1_700_000_000, "status": "completed", "model": "m",
        "error": null, "incomplete_details": null, "usage": null, "instructions": "be brief",
        "metadata": { "a": "b" }, "max_output_tokens": 99, "parallel_tool_calls": true,
        "previous_response_id": null, "reasoning": { "effort": null, "summary": null }, "store": false,
        "temperature": 0.5, "text": { "verbosity": "low", "format": { "type": "text" } }, "tool_choice": "auto",
        "tools": [{ "type": "function", "name": "f", "parameters": { "type": "object" }, "strict": true }],
        "top_p": null, "truncation": "disabled", "user": null,
        "output": [
            { "id": "rs_ours_0", "type": "reasoning", "summary": [],
              "encrypted_content": "toolgate:2:elsewhere:signature::5:proofhm",
              "content": [{ "type": "reasoning_text", "text": "hm" }] },
            text("msg_ours_1", "one"),
            text("msg_ours_2", "two"),
            { "id": "fc_ours_3", "status": "completed", "type": "function_call", "call_id": "c", "name": "f",
              "arguments": "{}" },
        ],
    });
    assert_eq!(body, expect);
}

#[test]
fn a_failed_response_is_an_error() {
    let mut body = response(json!([]));
    body["status"] = json!("failed");
    body["error"] = json!({ "code": "rate_limit_exceeded", "message": "slow down" });
    let error = read(&body).expect_err("it failed");
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::RateLimited, "slow down"));
    assert_eq!(read(&json!({ "hello": 1 })).expect_err("no reply").kind, ErrorKind::Upstream);
}

/// T38
#[test]
fn errors_keep_kind_status_and_message() {
    let cases = [
        (
            400,
            r#"{"error":{"message":"m","type":"invalid_request_error","param":"p","code":null}}"#,
            ErrorKind::InvalidRequest,
        ),
        (
            401,
            r#"{"error":{"message":"m","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            ErrorKind::Authentication,
        ),
        (
            429,
            r#"{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            ErrorKind::Billing,
        ),
        (422, r#"{"error":{"message":"m","code":422}}"#, ErrorKind::InvalidRequest),
        (500, r#"{"error":"m"}"#, ErrorKind::Internal),
        (404, r#"{"detail":"m"}"#, ErrorKind::NotFound),
    ];
    for (status, body, kind) in cases {
        let error = DIALECT.read_error(status, body.as_bytes());
        assert_eq!((error.kind, error.status(), error.message.as_str()), (kind, status, "m"), "{body}");
        assert_eq!(DIALECT.read_error(status, &DIALECT.write_error(&error)), error);
    }
    let page = DIALECT.read_error(502, b"<html>Bad gateway</html>");
    assert_eq!((page.kind, page.status()), (ErrorKind::Upstream, 502));
    assert!(page.message.contains("<html>Bad gateway</html>"));
}

#[test]
fn the_meter_reads_the_last_event_only() {
    let last = |kind: &str, response: Value| json!({ "type": kind, "response": response }).to_string();
    let mut meter = DIALECT.meter();
    meter.frame(SseFrame { event: "response.output_text.delta", data: "no JSON, and nobody looks" });
    assert_eq!(meter.reading(), crate::MeterReading::default());
    meter.frame(SseFrame { event: "", data: &last("response.completed", response(json!([]))) });
    let reading = meter.reading();
    assert!(reading.complete && reading.error.is_none());
    assert_eq!(reading.repeated.as_deref(), Some(response(json!([])).to_string().as_str()));
    assert_eq!(reading.usage.map(|usage| usage.total()), Some(13));

    let mut failed = response(json!([]));
    failed["status"] = json!("failed");
    failed["error"] = json!({ "code": "server_error", "message": "broken" });
    let mut meter = DIALECT.meter();
    meter.frame(SseFrame { event: "response.failed", data: &last("response.failed", failed) });
    assert!(!meter.reading().complete);
    assert_eq!(meter.reading().error.map(|error| error.message), Some("broken".into()));

    assert!(DIALECT.measure(response(json!([])).to_string().as_bytes()).complete);
}
