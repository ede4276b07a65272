//! Whole replies, read and written.

use serde_json::{Value, json};
use toolgate_model::{
    Block, CallKind, DialectId, Extras, Finish, Reasoning, ReasoningKind, ReasoningPart, Reply, ReplyHead,
    Seal, StopReason, Text, ToolCall, Usage,
};

use super::{context, places};
use crate::anthropic_messages::DIALECT;
use crate::{ClientDialect, UpstreamDialect};

fn written(reply: &Reply) -> (Value, Vec<String>) {
    let written = DIALECT.write_reply(reply, &context());
    (serde_json::from_slice(&written.value).unwrap(), places(&written.losses))
}

#[test]
fn a_reply_survives() {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5",
        "content": [
            { "type": "thinking", "thinking": "hm", "signature": "sig" },
            { "type": "redacted_thinking", "data": "xyz" },
            { "type": "text", "text": "ok", "citations": [{ "type": "char_location" }] },
            { "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {} },
            { "type": "tool_use", "id": "toolu_1", "name": "f", "input": { "b": 1, "a": 2 }, "caller": { "type": "direct" } },
        ],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": { "input_tokens": 1, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 3, "output_tokens": 9,
            "output_tokens_details": { "thinking_tokens": 4 }, "service_tier": "standard" },
        "container": { "id": "c" }, "diagnostics": { "x": 1 },
    });
    let reply = DIALECT.read_reply(message.to_string().as_bytes()).unwrap().value;
    let usage = reply.finish.usage.clone().unwrap();
    assert_eq!((usage.total_input(), usage.output, usage.reasoning), (6, 9, Some(4)));
    assert_eq!(written(&reply), (message.clone(), Vec::new()));

    let reading = DIALECT.measure(message.to_string().as_bytes());
    assert_eq!((reading.usage, reading.complete), (Some(usage), true));
}

#[test]
fn a_foreign_reply_is_written_in_this_dialect() {
    // With a generated id: a host may use one id for all its replies.
    let other = DialectId { name: "other", provider: "other" };
    let reply = Reply {
        head: ReplyHead {
            id: Some("resp_1".into()),
            model: Some("gpt".into()),
            created: Some(5),
            service_tier: None,
            extras: Extras::NONE,
        },
        blocks: vec![
            Block::Reasoning(Reasoning {
                parts: ["one", "two"]
                    .map(|text| ReasoningPart { kind: ReasoningKind::Summary, text: text.into() })
                    .into(),
                seal: Some(Seal::new(other, "encrypted", "abc")),
                extras: Extras::NONE,
            }),
            Block::Refusal(Text::new("no")),
            Block::ToolCall(ToolCall {
                id: "c".into(),
                name: "f".into(),
                kind: CallKind::Custom,
                arguments: "ls".into(),
                extras: Extras::NONE,
            }),
        ],
        finish: Finish {
            stop: StopReason::ContentFilter,
            usage: Some(Usage::from_inclusive(10, 4, 2)),
            ..Finish::default()
        },
    };
    let (message, losses) = written(&reply);
    assert_eq!(
        message,
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "gpt",
            "content": [
                { "type": "thinking", "thinking": "one\n\ntwo", "signature": "toolgate:1:other:encrypted::abc" },
                { "type": "text", "text": "no" },
                { "type": "tool_use", "id": "c", "name": "f", "input": { "input": "ls" } },
            ],
            "stop_reason": "refusal", "stop_sequence": null,
            "usage": { "input_tokens": 6, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 4, "output_tokens": 2 },
        })
    );
    assert_eq!(losses, ["refusal", "stop_reason"]);
}

#[test]
fn a_foreign_seal_comes_back_through_the_client() {
    let seal =
        Seal { owner: "other".into(), kind: "encrypted".into(), id: Some("rs_1".into()), data: "a:b".into() };
    let request = json!({ "model": "m", "max_tokens": 1, "messages": [{ "role": "assistant", "content": [
        { "type": "thinking", "thinking": "", "signature": seal.to_token() }] }] });
    let turn = super::read(&request);
    let toolgate_model::Message::Assistant(assistant) = &turn.messages[0] else {
        panic!("no assistant message")
    };
    assert!(matches!(&assistant.content[0], Block::Reasoning(reasoning) if reasoning.seal == Some(seal)));
}

#[test]
fn stop_reasons_survive() {
    let reasons = [
        "end_turn",
        "tool_use",
        "max_tokens",
        "stop_sequence",
        "pause_turn",
        "refusal",
        "model_context_window_exceeded",
        "something_new",
    ];
    for reason in reasons {
        let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
            "stop_reason": reason, "stop_sequence": null, "usage": { "input_tokens": 1, "output_tokens": 1 } });
        let reply = DIALECT.read_reply(message.to_string().as_bytes()).unwrap().value;
        assert_eq!(written(&reply), (message, Vec::new()));
    }
}

#[test]
fn a_body_that_is_not_a_reply_is_an_upstream_error() {
    for body in [
        "<html>",
        "{}",
        "[]",
        r#"{"content":5}"#,
        r#"{"content":[{"type":"tool_result","tool_use_id":"a"}]}"#,
    ] {
        assert_eq!(DIALECT.read_reply(body.as_bytes()).unwrap_err().status(), 502, "{body}");
    }
}
