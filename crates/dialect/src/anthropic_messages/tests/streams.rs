//! Streams, read and written.

use serde_json::{Value, json};
use toolgate_model::reply::fold;
use toolgate_model::{
    Block, BlockEnd, BlockStart, CallKind, Delta, ErrorKind, Extras, Finish, Reasoning, ReasoningKind,
    ReplyHead, Seal, StopReason, TurnError, TurnEvent, Usage,
};

use super::{context, data_of, events, folded, frames, write_stream};
use crate::anthropic_messages::{DIALECT, ID};
use crate::frame::{MAX_FRAME_BYTES, SseDecoder};
use crate::{ClientDialect, UpstreamDialect};

fn start() -> Value {
    json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5",
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": { "input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 1, "service_tier": "standard" } } })
}

fn block(index: u64, block: &Value, deltas: &[Value]) -> Vec<Value> {
    let mut out = vec![json!({ "type": "content_block_start", "index": index, "content_block": block })];
    out.extend(
        deltas.iter().map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta })),
    );
    out.push(json!({ "type": "content_block_stop", "index": index }));
    out
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
            "usage": { "output_tokens": 9 } }),
        json!({ "type": "message_stop" }),
    ]
}

fn json_delta(text: &str) -> Value {
    json!({ "type": "input_json_delta", "partial_json": text })
}

fn text_delta(text: &str) -> Value {
    json!({ "type": "text_delta", "text": text })
}

fn stream(blocks: &[Vec<Value>], reason: &str) -> String {
    let all: Vec<Value> = [start()].into_iter().chain(blocks.concat()).chain(end(reason)).collect();
    frames(&all)
}

/// A reply with a block of every kind.
fn rich_stream() -> String {
    stream(
        &[
            block(
                0,
                &json!({ "type": "thinking", "thinking": "", "signature": "" }),
                &[
                    json!({ "type": "thinking_delta", "thinking": "hm" }),
                    json!({ "type": "signature_delta", "signature": "sig" }),
                ],
            ),
            block(1, &json!({ "type": "redacted_thinking", "data": "xyz" }), &[]),
            block(
                2,
                &json!({ "type": "text", "text": "", "citations": [] }),
                &[
                    text_delta("h"),
                    json!({ "type": "citations_delta", "citation": { "n": 1 } }),
                    text_delta("é"),
                ],
            ),
            block(
                3,
                &json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} }),
                &[json_delta(""), json_delta("{\"q\":"), json_delta("1}")],
            ),
            block(
                4,
                &json!({ "type": "compaction", "content": null }),
                &[json!({ "type": "compaction_delta", "content": "short" })],
            ),
            block(
                5,
                &json!({ "type": "tool_use", "id": "a", "name": "f", "input": {}, "caller": { "type": "direct" } }),
                &[json_delta(""), json_delta("{\"city\""), json_delta(": \"Paris\"}")],
            ),
            block(6, &json!({ "type": "tool_use", "id": "b", "name": "g", "input": {} }), &[json_delta("")]),
        ],
        "tool_use",
    )
}

#[test]
fn a_stream_folds_into_the_whole_reply() {
    let whole = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5",
        "content": [
            { "type": "thinking", "thinking": "hm", "signature": "sig" },
            { "type": "redacted_thinking", "data": "xyz" },
            { "type": "text", "text": "hé", "citations": [{ "n": 1 }] },
            { "type": "server_tool_use", "id": "s", "name": "web_search", "input": { "q": 1 } },
            { "type": "compaction", "content": "short" },
            { "type": "tool_use", "id": "a", "name": "f", "input": { "city": "Paris" }, "caller": { "type": "direct" } },
            { "type": "tool_use", "id": "b", "name": "g", "input": {} },
        ],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": { "input_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 2, "output_tokens": 9,
            "service_tier": "standard" } });
    let written = DIALECT.write_reply(&folded(&rich_stream()), &context());
    assert_eq!(serde_json::from_slice::<Value>(&written.value).unwrap(), whole);
    assert!(written.losses.is_empty());
}

#[test]
fn a_rewritten_stream_has_the_same_content() {
    // D7 T4 T7 T18 T22
    let read = events(&rich_stream()).unwrap();
    let written = write_stream(read.clone());
    assert_eq!(fold(events(&written).unwrap()).unwrap(), fold(read).unwrap());
    assert!(!written.contains("[DONE]"));
    let data = data_of(&written);
    let kinds: Vec<&str> = data.iter().map(|data| data["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[0], "message_start");
    assert_eq!(kinds[kinds.len() - 2..], ["message_delta", "message_stop"]);
    assert_eq!(kinds.iter().filter(|kind| **kind == "message_start").count(), 1);
    assert_eq!(data[0]["message"]["usage"]["input_tokens"], 5);
    let numbers = |kind: &str| {
        data.iter()
            .filter(|data| data["type"] == kind)
            .map(|data| data["index"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(numbers("content_block_start"), (0..7).collect::<Vec<_>>());
    assert_eq!(numbers("content_block_stop"), (0..7).collect::<Vec<_>>());
}

#[test]
fn every_truncation_is_an_error() {
    // T17
    let whole = rich_stream();
    let ends: Vec<usize> = whole.match_indices("\n\n").map(|(at, _)| at + 2).collect();
    for end in &ends[..ends.len() - 1] {
        assert_eq!(events(&whole[..*end]).unwrap_err().kind, ErrorKind::Upstream);
    }
    assert!(events("").is_err());
}

#[test]
fn arguments_start_with_the_first_delta_and_are_never_empty() {
    // T9 T10
    let cases: [(Value, &[&str], &str); 4] = [
        (json!({}), &[""], "{}"),
        (json!({}), &[], "{}"),
        (json!({ "player": "one" }), &[], r#"{"player":"one"}"#),
        (json!({}), &["", "{\"a\"", ":1}"], r#"{"a":1}"#),
    ];
    for (input, deltas, expected) in cases {
        let deltas: Vec<Value> = deltas.iter().map(|text| json_delta(text)).collect();
        let reply = folded(&stream(
            &[block(0, &json!({ "type": "tool_use", "id": "a", "name": "f", "input": input }), &deltas)],
            "tool_use",
        ));
        assert!(
            matches!(&reply.blocks[0], Block::ToolCall(call) if call.arguments == expected),
            "{:?}",
            reply.blocks
        );
    }
}

#[test]
fn interleaved_blocks_come_one_after_the_other() {
    // T5 T6
    let call = |index: u64| {
        json!({ "type": "content_block_start", "index": index,
        "content_block": { "type": "tool_use", "id": format!("c{index}"), "name": "f", "input": {} } })
    };
    let delta = |index: u64, text: &str| json!({ "type": "content_block_delta", "index": index, "delta": json_delta(text) });
    let stop = |index: u64| json!({ "type": "content_block_stop", "index": index });
    let mixed = vec![
        call(0),
        delta(0, "{\"a\":"),
        call(1),
        delta(1, "{\"b\":"),
        delta(0, "1}"),
        delta(1, "2}"),
        stop(0),
        stop(1),
    ];
    let mut arguments = Vec::new();
    for block in folded(&stream(&[mixed], "tool_use")).blocks {
        let Block::ToolCall(call) = block else { panic!("{block:?} is no call") };
        arguments.push(call.arguments);
    }
    assert_eq!(arguments, [r#"{"a":1}"#, r#"{"b":2}"#]);
}

#[test]
fn a_repeated_start_is_ignored_and_a_second_reply_is_an_error() {
    // T4
    let hello = block(0, &json!({ "type": "text", "text": "" }), &[text_delta("hi")]);
    let repeated = [vec![start()], hello.clone()].concat();
    assert_eq!(folded(&stream(&[repeated], "end_turn")).blocks.len(), 1);
    let mut other = start();
    other["message"]["id"] = json!("msg_2");
    let spliced = [hello.clone(), vec![other]].concat();
    assert!(events(&stream(&[spliced], "end_turn")).unwrap_err().message.contains("second reply"));
    // Frames after the end are dropped.
    let followed = stream(&[hello], "end_turn") + &rich_stream();
    assert_eq!(folded(&followed).blocks.len(), 1);
}

#[test]
fn broken_streams_are_upstream_errors() {
    let delta = json!({ "type": "content_block_delta", "index": 3, "delta": text_delta("x") });
    let cases = [
        (frames(std::slice::from_ref(&delta)), "instead of message_start"),
        (frames(&[start(), delta]), "block 3, which is not open"),
        (
            frames(&[start()]) + "event: content_block_start\ndata: {\n\n",
            "reading a content_block_start event",
        ),
        (
            frames(&[
                start(),
                json!({ "type": "error", "error": { "type": "overloaded_error", "message": "busy" } }),
            ]),
            "busy",
        ), // T17
    ];
    for (stream, expected) in cases {
        let error = events(&stream).unwrap_err();
        assert!(error.message.contains(expected), "{}", error.message);
    }
}

#[test]
fn frames_without_names_pings_and_unknown_events_are_fine() {
    let nameless: String = rich_stream()
        .lines()
        .filter(|line| !line.starts_with("event: "))
        .fold(String::new(), |all, line| all + line + "\n");
    assert_eq!(folded(&nameless), folded(&rich_stream()));
    let noisy = vec![json!({ "type": "ping" }), json!({ "type": "brand_new" })];
    assert!(folded(&stream(&[noisy], "end_turn")).blocks.is_empty());
}

#[test]
fn a_foreign_stream_is_written_in_the_order_of_this_dialect() {
    // T1 T2 T18
    let text = |text: &str| TurnEvent::BlockDelta(Delta::Text(text.into()));
    let finished = || TurnEvent::BlockFinished(BlockEnd::default());
    let usage = Usage::from_inclusive(10, 4, 3);
    let written = write_stream(vec![
        TurnEvent::Started(ReplyHead::default()),
        TurnEvent::BlockStarted(BlockStart::Reasoning(Extras::NONE)),
        text("a"),
        TurnEvent::BlockDelta(Delta::Paragraph(ReasoningKind::Full)),
        text("b"),
        finished(),
        TurnEvent::BlockStarted(BlockStart::ToolCall {
            id: "c".into(),
            name: "f".into(),
            kind: CallKind::Function,
        }),
        finished(),
        TurnEvent::BlockStarted(BlockStart::ToolCall {
            id: "d".into(),
            name: "g".into(),
            kind: CallKind::Custom,
        }),
        TurnEvent::BlockDelta(Delta::Arguments("say \"".into())),
        TurnEvent::BlockDelta(Delta::Arguments("hi\"".into())),
        finished(),
        TurnEvent::Finished(Finish { stop: StopReason::ToolUse, usage: Some(usage), ..Finish::default() }),
    ]);
    let start = |index: u64, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let delta =
        |index: u64, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let stop = |index: u64| json!({ "type": "content_block_stop", "index": index });
    let thinking = |text: &str| json!({ "type": "thinking_delta", "thinking": text });
    assert_eq!(
        data_of(&written),
        [
            json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message", "role": "assistant",
            "model": "claude-opus-5", "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": { "input_tokens": 77, "output_tokens": 0 } } }),
            start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
            delta(0, thinking("a")),
            delta(0, thinking("\n\n")),
            delta(0, thinking("b")),
            stop(0),
            start(1, json!({ "type": "tool_use", "id": "c", "name": "f", "input": {} })),
            delta(1, json_delta("{}")), // T9
            stop(1),
            start(2, json!({ "type": "tool_use", "id": "d", "name": "g", "input": {} })),
            delta(2, json_delta("{\"input\":\"")),
            delta(2, json_delta("say \\\"")),
            delta(2, json_delta("hi\\\"")),
            delta(2, json_delta("\"}")),
            stop(2),
            json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use", "stop_sequence": null },
            "usage": { "input_tokens": 6, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 4, "output_tokens": 3 } }),
            json!({ "type": "message_stop" }),
        ]
    );
}

#[test]
fn pause_flushes_the_held_back_head() {
    let usage = TurnEvent::Usage(Usage { input: 7, ..Usage::default() });
    for (events, input) in [(vec![], 77), (vec![usage], 7)] {
        let mut writer = DIALECT.reply_writer(context());
        let mut out = Vec::new();
        writer.event(TurnEvent::Started(ReplyHead::default()), &mut out);
        assert!(out.is_empty(), "the head is held back for the host's usage");
        for event in events {
            writer.event(event, &mut out);
        }
        // The head is written once, however often `pause` is called.
        writer.pause(&mut out);
        writer.pause(&mut out);
        let started = data_of(&String::from_utf8(out).unwrap());
        assert_eq!(started.len(), 1);
        assert_eq!(started[0]["message"]["usage"]["input_tokens"], input);
    }
}

#[test]
fn pings_and_errors_are_allowed_at_any_time() {
    // T17 T19
    let mut writer = DIALECT.reply_writer(context());
    let mut out = Vec::new();
    writer.ping(&mut out);
    assert_eq!(String::from_utf8(out.clone()).unwrap(), "event: ping\ndata: {\"type\":\"ping\"}\n\n");
    writer.event(TurnEvent::Started(ReplyHead::default()), &mut out);
    writer.ping(&mut out);
    writer.error(&TurnError::new(ErrorKind::Overloaded, "busy"), &mut out);
    let kinds: Vec<Value> =
        data_of(&String::from_utf8(out).unwrap()).into_iter().map(|data| data["type"].clone()).collect();
    assert_eq!(kinds, ["ping", "message_start", "ping", "error"]);
}

#[test]
fn a_seal_without_text_is_kept() {
    let seal = Seal { owner: "other".into(), kind: "encrypted".into(), id: None, data: "abc".into() };
    for seal in [seal, Seal::new(ID, "redacted", "xyz"), Seal::new(ID, "signature", "sig")] {
        let end = BlockEnd { seal: Some(seal.clone()), ..BlockEnd::default() };
        let written = write_stream(vec![
            TurnEvent::Started(ReplyHead::default()),
            TurnEvent::BlockStarted(BlockStart::Reasoning(Extras::NONE)),
            TurnEvent::BlockFinished(end),
            TurnEvent::Finished(Finish::default()),
        ]);
        assert_eq!(
            folded(&written).blocks,
            [Block::Reasoning(Reasoning { seal: Some(seal), ..Reasoning::default() })]
        );
    }
}

#[test]
fn the_meter_reads_usage_end_and_error() {
    let metered = |stream: &str| {
        let mut decoder = SseDecoder::new(MAX_FRAME_BYTES);
        let mut meter = DIALECT.meter();
        decoder.push(stream.as_bytes());
        while let Some(frame) = decoder.next_frame().unwrap() {
            meter.frame(frame);
        }
        meter.reading()
    };
    let seen = metered(&rich_stream());
    assert_eq!((seen.usage, seen.complete), (folded(&rich_stream()).finish.usage, true));
    let failed = metered(&frames(&[
        start(),
        json!({ "type": "error", "error": { "type": "rate_limit_error", "message": "slow" } }),
    ]));
    assert_eq!((failed.error.unwrap().kind, failed.complete), (ErrorKind::RateLimited, false));
}
