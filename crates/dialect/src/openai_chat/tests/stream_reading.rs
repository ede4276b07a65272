//! Streams of hosts, especially unusual ones.

use toolgate_model::{Block, CallKind, ErrorKind, Reply, StopReason, TurnEvent};

use super::{DIALECT, chunk, fold_stream, last, read_stream};
use crate::UpstreamDialect as _;
use crate::frame::{MAX_FRAME_BYTES, SseDecoder};

/// The content of a reply, one line per block.
pub(super) fn content(reply: &Reply) -> Vec<String> {
    reply
        .blocks
        .iter()
        .map(|block| match block {
            Block::Text(text) => format!("text {}", text.text),
            Block::Refusal(text) => format!("refusal {}", text.text),
            Block::Reasoning(thought) => format!("thought {}", thought.text()),
            Block::ToolCall(call) => {
                let kind = if call.kind == CallKind::Custom { "custom" } else { "call" };
                format!("{kind} {} {} {}", call.id, call.name, call.arguments)
            }
            Block::Opaque(opaque) => format!("opaque {}", opaque.kind),
        })
        .collect()
}

pub(super) fn check(deltas: &[&str], finish_reason: &str, expect: &[&str]) -> Reply {
    let mut frames: Vec<String> = deltas.iter().map(|delta| chunk(delta)).collect();
    frames.extend([last(finish_reason), "[DONE]".to_owned()]);
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let reply = fold_stream(&frames);
    assert_eq!(content(&reply), expect);
    reply
}

#[test]
fn a_split_surrogate_pair_is_joined() {
    // P21
    check(&[r#"{"content":"go \ud83d"}"#, r#"{"content":"\ude80!"}"#], "stop", &["text go 🚀!"]);
    check(&[r#"{"content":"go \ud83d"}"#, r#"{"content":"!"}"#], "stop", &["text go !"]);
}

#[test]
fn blocks_of_different_kinds_alternate_without_loss() {
    check(
        &[
            r#"{"role":"assistant","content":""}"#,
            r#"{"reasoning_content":"h"}"#,
            r#"{"reasoning_content":"m","content":null}"#,
            r#"{"content":"I"}"#,
            r#"{"content":"'m"}"#,
        ],
        "stop",
        &["thought hm", "text I'm"],
    ); // T1 T2
    let everything = r#"{"reasoning":"r","content":"t","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}"#;
    check(&[everything], "tool_calls", &["thought r", "text t", "call c f {}"]); // T3
    check(&[r#"{"content":"hi","tool_calls":[]}"#], "stop", &["text hi"]); // T11
    check(
        &[r#"{"content":"a","reasoning_content":""}"#, r#"{"content":"b","reasoning_content":""}"#],
        "stop",
        &["text ab"],
    ); // T12
    check(&[r#"{"refusal":"no"}"#, r#"{"refusal":"pe"}"#], "stop", &["refusal nope"]);
    check(
        &[
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]}]}"#,
            r#"{"content":[{"type":"text","text":"a"},{"type":"cite","n":1}]}"#,
        ],
        "stop",
        &["thought t", "text a", "opaque cite"],
    );
}

#[test]
fn calls_are_distinguished_however_the_host_numbers_them() {
    let begin = |index: &str, id: &str, name: &str| {
        format!(
            r#"{{"tool_calls":[{{{index}"id":"{id}","type":"function","function":{{"name":"{name}","arguments":""}}}}]}}"#
        )
    };
    let more = |index: &str, text: &str| {
        format!(r#"{{"tool_calls":[{{{index}"function":{{"arguments":"{text}"}}}}]}}"#)
    };
    let (i0, i1) = (r#""index":0,"#, r#""index":1,"#);
    let check = |deltas: &[String], expect: &[&str]| {
        check(&deltas.iter().map(String::as_str).collect::<Vec<_>>(), "tool_calls", expect);
    };
    check(
        &[begin(i0, "a", "f"), more(i0, "{}"), begin(i1, "b", "g"), more(i1, "[1]")],
        &["call a f {}", "call b g [1]"],
    ); // T5
    check(
        &[
            begin(i0, "a", "f"),
            begin(i1, "b", "g"),
            more(i0, "{"),
            more(i1, "["),
            more(i0, "}"),
            more(i1, "]"),
        ],
        &["call a f {}", "call b g []"],
    ); // T6
    check(
        &[begin(i0, "a", "f"), more(i0, "{}"), begin(i0, "b", "g"), more(i0, "[]")],
        &["call a f {}", "call b g []"],
    );
    check(
        &[begin("", "a", "f"), more("", "{}"), begin("", "b", "g"), more("", "[]")],
        &["call a f {}", "call b g []"],
    );
    check(&[begin(i0, "a", "f"), begin(i0, "a", "f"), more(i0, "{}")], &["call a f {}"]);
    check(&[more(i0, ""), begin(i0, "", "f"), more(i0, "{}")], &["call call_0_r1 f {}"]); // T23
    check(&[begin(i0, "a", ""), more(i0, "{"), begin(i0, "", "f"), more(i0, "}")], &["call a f {}"]);
    check(&[begin(i0, "a", "f")], &["call a f "]);
    check(&[more(i0, "{}")], &[]); // T15
    check(
        &[r#"{"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"g","input":"x"}}]}"#
            .to_owned()],
        &["custom a g x"],
    );
    check(
        &[
            r#"{"function_call":{"name":"f","arguments":"{"}}"#.to_owned(),
            r#"{"function_call":{"arguments":"}"}}"#.to_owned(),
        ],
        &["call call_0_r1 f {}"],
    );
    check(
        &[r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"k":1}}}]}"#.to_owned()],
        &[r#"call a f {"k":1}"#],
    ); // T34
}

#[test]
fn text_inside_an_unfinished_call_is_queued() {
    let call = |id: &str, text: &str| {
        format!(r#"{{"tool_calls":[{{"index":0,{id}"function":{{"name":"f","arguments":"{text}"}}}}]}}"#)
    };
    check(
        &[&call(r#""id":"a","#, "{"), r#"{"content":"t"}"#, &call("", "}")],
        "tool_calls",
        &["call a f {}", "text t"],
    ); // T6
}

#[test]
fn unknown_fields_of_the_reply_round_trip() {
    let reply = fold_stream(&[
        r#"{"id":"","model":"","choices":[],"prompt_filter_results":[1]}"#,
        r#"{"id":"r1","model":"m","created":5,"system_fingerprint":"fp","service_tier":"default","obfuscation":"xx","choices":[{"index":0,"delta":{"role":"assistant"}}]}"#,
        r#"{"id":"r1","model":"m","choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"a"}]}}]}"#,
        r#"{"id":"r1","model":"m","choices":[{"index":0,"delta":{"content":"b"},"logprobs":{"content":[{"token":"b"}]}}]}"#,
        r#"{"id":"r1","model":"m","choices":[{"index":0,"delta":{"annotations":[{"n":1}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":2,"completion_tokens":3}}"#,
        r#"{"id":"r1","choices":[],"moderation":{"flagged":false}}"#,
        "[DONE]",
    ]);
    let (id, model) = (reply.head.id.clone().unwrap(), reply.head.model.clone().unwrap());
    assert_eq!((id.as_str(), model.as_str(), reply.head.created), ("r1", "m", Some(5)));
    assert_eq!(reply.finish.usage.as_ref().map(toolgate_model::Usage::total), Some(5));
    let written = super::write_stream(super::plain_context(), reply.clone().into_events());
    let frames: Vec<&str> = written.iter().map(String::as_str).collect();
    assert_eq!(fold_stream(&frames), reply);
    assert!(frames[0].contains("prompt_filter_results") && !frames.concat().contains("obfuscation"));
}

/// How many events the first chunk gives; the second chunk has content.
#[test]
fn a_reply_starts_as_soon_as_its_head_is_complete() {
    let check = |first: &str, expect: usize| {
        let mut reader = DIALECT.reply_reader();
        let mut decoder = SseDecoder::new(MAX_FRAME_BYTES);
        let mut events = Vec::new();
        let mut counts = Vec::new();
        for frame in [first, &chunk(r#"{"content":"a"}"#)] {
            decoder.push(format!("data: {frame}\n\n").as_bytes());
            reader.frame(decoder.next_frame().unwrap().unwrap(), &mut events).unwrap();
            counts.push(events.len());
        }
        let starts = events.iter().filter(|event| matches!(event, TurnEvent::Started(_))).count();
        assert_eq!((counts[0], starts), (expect, 1), "{first}");
        let TurnEvent::Started(head) = &events[0] else { panic!("{first}: {events:?}") };
        let head = (head.id.as_ref().unwrap().as_str(), head.model.as_ref().unwrap().as_str(), head.created);
        assert_eq!(head, ("r1", "m", Some(5)), "{first}");
    };
    check(&chunk(r#"{"role":"assistant","content":""}"#), 1);
    check(&chunk("{}"), 1);
    let counted =
        r#"{"id":"r1","model":"m","created":5,"choices":[{"delta":{}}],"usage":{"prompt_tokens":2}}"#;
    check(counted, 2);
    let role = r#""choices":[{"index":0,"delta":{"role":"assistant","content":""}}]"#;
    check(&format!(r#"{{"id":"","model":"m","created":5,{role}}}"#), 0);
    check(&format!(r#"{{"id":"r1","model":"","created":5,{role}}}"#), 0);
    check(&format!(r#"{{"id":"r1","model":"m","created":0,{role}}}"#), 0);
    check(r#"{"id":"r1","model":"m","created":5,"choices":[],"prompt_filter_results":[1]}"#, 0);
    check(r#"{"id":"r1","model":"m","created":5,"choices":[],"usage":{"prompt_tokens":2}}"#, 0);
    check(r#"{"id":"r1","model":"m","created":5,"choices":[{"index":1,"delta":{}}]}"#, 0);
}

#[test]
fn reasoning_keeps_its_field() {
    let check = |delta: &str| {
        let frames = [&chunk(r#"{"role":"assistant","content":""}"#), &chunk(delta), &last("stop"), "[DONE]"];
        let events = read_stream(&frames).unwrap();
        let written = super::write_stream(super::plain_context(), events);
        assert!(written[1].contains(delta), "{written:?}");
    };
    check(r#"{"reasoning_content":"a"}"#);
    check(r#"{"reasoning":"a"}"#);
    check(r#"{"reasoning_content":"a","reasoning":"a"}"#);
    check(r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}"#);
}

#[test]
fn stop_reasons_are_read() {
    let check = |word: &str, expect: StopReason| {
        assert_eq!(check(&[r#"{"content":"a"}"#], word, &["text a"]).finish.stop, expect, "{word}");
    };
    check("stop", StopReason::EndTurn);
    check("length", StopReason::MaxTokens);
    check("tool_calls", StopReason::ToolUse);
    check("content_filter", StopReason::ContentFilter);
    check("eos", StopReason::EndTurn);
    check("", StopReason::EndTurn); // T14
    let call = r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}"#;
    let reply = fold_stream(&[&chunk(call), &last(""), "[DONE]"]);
    assert_eq!(reply.finish.stop, StopReason::ToolUse); // T14
}

// T17
#[test]
fn a_truncated_stream_is_an_error() {
    let (text, end) = (chunk(r#"{"content":"a"}"#), last("stop"));
    let started = chunk(r#"{"role":"assistant","content":""}"#);
    assert!(read_stream(&[&started, &last(""), "[DONE]"]).is_err(), "nothing was said");
    for frames in [&[][..], &["[DONE]"], &[&text], &[&text, &last("")]] {
        assert_eq!(read_stream(frames).unwrap_err().kind, ErrorKind::Upstream, "{frames:?}");
    }
    assert!(read_stream(&[&text, &end]).is_ok(), "some hosts send no [DONE]");
    let announced = r#"{"id":"r1","choices":[{"index":0,"delta":{"content":"a"}}],"usage":null}"#;
    assert!(read_stream(&[announced, &end]).is_err(), "token counts were announced and are missing");
    assert!(read_stream(&[&text, &end, "[DONE]", &text, "garbage"]).is_ok()); // T22
}

// T17 T38
#[test]
fn an_error_in_the_stream_is_read() {
    let text = chunk(r#"{"content":"a"}"#);
    let check = |frame: &str, kind: ErrorKind, message: &str| {
        let error = read_stream(&[&text, frame]).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (kind, message));
    };
    check(r#"{"error":{"message":"slow","type":"rate_limit_error"}}"#, ErrorKind::RateLimited, "slow");
    check(r#"{"error":{"message":"bad","code":400}}"#, ErrorKind::InvalidRequest, "bad");
    check(r#"{"error":"gone"}"#, ErrorKind::Upstream, "gone");
    let mut decoder = SseDecoder::new(MAX_FRAME_BYTES);
    decoder.push(b"event: error\ndata: {\"message\":\"named\"}\n\n");
    let frame = decoder.next_frame().unwrap().unwrap();
    assert_eq!(DIALECT.reply_reader().frame(frame, &mut Vec::new()).unwrap_err().message, "named");
}

#[test]
fn other_choices_are_a_reported_loss() {
    let mut reader = DIALECT.reply_reader();
    let mut decoder = SseDecoder::new(MAX_FRAME_BYTES);
    decoder.push(b"data: {\"id\":\"r\",\"choices\":[{\"index\":1,\"delta\":{\"content\":\"x\"}}]}\n\n");
    let mut events = Vec::new();
    reader.frame(decoder.next_frame().unwrap().unwrap(), &mut events).unwrap();
    assert!(events.is_empty() && reader.losses().contains("choices[1]"));
}
