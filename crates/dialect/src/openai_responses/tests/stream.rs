//! Streams, read and written.

use serde_json::{Value, json};
use toolgate_model::{
    Block, BlockEnd, BlockStart, CallKind, Delta, ErrorKind, Extras, Finish, ReasoningKind, Reply, ReplyHead,
    Seal, StopReason, TurnError, TurnEvent, reply,
};

use super::{context, frames, read_stream, write_stream};
use crate::openai_responses::{DIALECT, ID};
use crate::{ClientDialect, UpstreamDialect};

pub(super) fn created() -> Value {
    json!({ "type": "response.created", "response": { "id": "resp_1", "model": "m", "status": "in_progress" } })
}

pub(super) fn completed(output: Value) -> Value {
    json!({ "type": "response.completed",
            "response": { "id": "resp_1", "model": "m", "status": "completed", "output": output } })
}

fn added(index: u32, item: Value) -> Value {
    json!({ "type": "response.output_item.added", "output_index": index, "item": item })
}

fn done(index: u32, item: Value) -> Value {
    json!({ "type": "response.output_item.done", "output_index": index, "item": item })
}

pub(super) fn message(text: &str) -> Value {
    json!({ "type": "message", "id": "msg_1", "role": "assistant", "content": [{ "type": "output_text", "text": text }] })
}

fn text(index: u32, delta: &str) -> Value {
    json!({ "type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": delta })
}

pub(super) fn call(name: &str, arguments: Value) -> Value {
    json!({ "type": "function_call", "id": format!("fc_{name}"), "call_id": format!("call_{name}"), "name": name,
            "arguments": arguments })
}

pub(super) fn folded(events: &[Value]) -> Reply {
    let (events, end) = read_stream(events);
    end.expect("the stream is complete");
    reply::fold(events).expect("the events are a reply")
}

/// The content of a reply, one line per block.
pub(super) fn content(reply: &Reply) -> Vec<String> {
    let brief = |block: &Block| match block {
        Block::Text(text) => format!("text {}", text.text),
        Block::Refusal(text) => format!("refusal {}", text.text),
        Block::Reasoning(reasoning) => format!("thought {}", reasoning.text()),
        Block::ToolCall(call) => format!("call {} {}", call.name, call.arguments),
        Block::Opaque(opaque) => format!("opaque {}", opaque.kind),
    };
    reply.blocks.iter().map(brief).collect()
}

/// T4
#[test]
fn a_reply_starts_once() {
    let queued = json!({ "type": "response.queued", "response": { "id": "resp_1" } });
    let running = json!({ "type": "response.in_progress", "response": { "id": "resp_1" } });
    let (events, end) = read_stream(&[created(), queued, running, completed(json!([]))]);
    assert_eq!(end, Ok(()));
    assert!(matches!(events.as_slice(), [TurnEvent::Started(_), TurnEvent::Finished(_)]));
}

#[test]
fn a_host_may_start_with_content() {
    let part = json!({ "type": "response.content_part.added", "output_index": 0, "content_index": 0,
                       "part": { "type": "output_text", "text": "" } });
    for first in [part, text(0, "h")] {
        let reply = folded(&[first, text(0, "i"), completed(json!([]))]);
        assert!(content(&reply)[0].ends_with('i'), "{reply:?}");
    }
}

/// T5 T6
#[test]
fn interleaved_items_are_emitted_one_after_another() {
    let part = |index: u32, delta: &str| json!({ "type": "response.function_call_arguments.delta", "output_index": index, "delta": delta });
    let reply = folded(&[
        created(),
        added(0, call("a", json!(""))),
        part(0, "{\"x\""),
        added(1, call("b", json!(""))),
        part(1, "{}"),
        added(2, message("")),
        text(2, "hel"),
        part(0, ":1}"),
        text(2, "lo"),
        done(1, call("b", json!("{}"))),
        done(0, call("a", json!("{\"x\":1}"))),
        done(2, message("hello")),
        completed(json!([])),
    ]);
    assert_eq!(content(&reply), ["call a {\"x\":1}", "call b {}", "text hello"]);
    assert_eq!(reply.finish.stop, StopReason::ToolUse);
}

/// T34
#[test]
fn content_that_was_not_streamed_is_emitted_at_the_end() {
    let arguments = json!({ "type": "response.function_call_arguments.done", "output_index": 0, "arguments": "{\"x\":1}" });
    let cases: [(&[Value], &str); 6] = [
        (
            &[added(0, call("a", json!(""))), arguments, done(0, call("a", json!("{\"x\":1}")))],
            "call a {\"x\":1}",
        ),
        (&[added(0, call("a", json!(""))), done(0, call("a", json!({ "x": 1 })))], "call a {\"x\":1}"),
        (&[done(0, call("a", json!("{}")))], "call a {}"),
        (&[added(0, message("")), text(0, "he"), done(0, message("hello"))], "text hello"),
        // The host contradicts itself: the streamed text is kept.
        (&[added(0, message("")), text(0, "he"), done(0, message("ha, other"))], "text he"),
        (&[added(0, json!({ "type": "mcp_list_tools", "id": "l" }))], "opaque mcp_list_tools"),
    ];
    for (events, expect) in cases {
        let is_listed = expect.starts_with("opaque");
        let output =
            if is_listed { json!([{ "type": "mcp_list_tools", "id": "l", "tools": [] }]) } else { json!([]) };
        let last = completed(output);
        let all: Vec<Value> = [created()].into_iter().chain(events.iter().cloned()).chain([last]).collect();
        assert_eq!(content(&folded(&all)), [expect]);
    }
    assert_eq!(content(&folded(&[completed(json!([message("all at once")]))])), ["text all at once"]);
}

#[test]
fn reasoning_has_paragraphs_and_a_seal() {
    let summary = |index: u32, delta: &str| json!({ "type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": index, "delta": delta });
    let item = json!({ "type": "reasoning", "id": "rs_1", "encrypted_content": "secret",
                       "summary": [{ "type": "summary_text", "text": "one" }, { "type": "summary_text", "text": "two" }] });
    let started = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "not yet" });
    let reply = folded(&[
        created(),
        added(0, started),
        summary(0, "on"),
        summary(0, "e"),
        summary(1, "two"),
        done(0, item),
        completed(json!([])),
    ]);
    assert_eq!(content(&reply), ["thought one\n\ntwo"]);
    let Block::Reasoning(reasoning) = &reply.blocks[0] else { panic!("{reply:?}") };
    assert!(reasoning.parts.iter().all(|part| part.kind == ReasoningKind::Summary));
    assert_eq!(
        reasoning.seal,
        Some(Seal { id: Some("rs_1".into()), ..Seal::new(ID, "encrypted", "secret") })
    );
}

#[test]
fn plaintext_reasoning_does_not_delay_the_answer() {
    let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": [] });
    let raw = json!({ "type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "hm" });
    let (events, _) =
        read_stream(&[created(), added(0, reasoning), raw, added(1, message("")), text(1, "hi")]);
    assert_eq!(events.last(), Some(&TurnEvent::BlockDelta(Delta::Text("hi".into()))));
}

/// T17
#[test]
fn a_truncated_stream_and_an_error_event_are_errors() {
    let nested = json!({ "type": "error", "error": { "type": "rate_limit_error", "message": "slow down" } });
    let flat =
        json!({ "type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": null });
    let failed = json!({ "type": "response.failed", "response": { "id": "resp_1", "status": "failed", "output": [],
                         "error": { "code": "rate_limit_exceeded", "message": "slow down" } } });
    for event in [nested, flat, failed] {
        let (_, end) = read_stream(&[created(), event]);
        let error = end.expect_err("the host sent an error");
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::RateLimited, "slow down"));
    }
    let (_, end) = read_stream(&[created(), added(0, message("")), text(0, "hel")]);
    assert_eq!(end.map_err(|error| error.kind), Err(ErrorKind::Upstream));
}

fn foreign_events() -> Vec<TurnEvent> {
    let start = |start| TurnEvent::BlockStarted(start);
    let grow = |delta| TurnEvent::BlockDelta(delta);
    let end = || TurnEvent::BlockFinished(BlockEnd::default());
    let call = |kind| BlockStart::ToolCall { id: "c".into(), name: "f".into(), kind };
    vec![
        TurnEvent::Started(ReplyHead { id: Some("msg_abc".into()), ..ReplyHead::default() }),
        start(BlockStart::Reasoning(Extras::NONE)),
        grow(Delta::Text("hm".into())),
        grow(Delta::Paragraph(ReasoningKind::Summary)),
        grow(Delta::Text("in short".into())),
        end(),
        start(BlockStart::Text),
        grow(Delta::Text("hi".into())),
        end(),
        start(BlockStart::Refusal),
        grow(Delta::Text("no".into())),
        end(),
        start(call(CallKind::Function)),
        end(),
        start(call(CallKind::Custom)),
        grow(Delta::Arguments("*** begin".into())),
        end(),
        TurnEvent::Finished(Finish { stop: StopReason::MaxTokens, ..Finish::default() }),
    ]
}

#[test]
fn a_stream_has_every_event_in_order() {
    let written = write_stream(foreign_events(), context());
    let brief: Vec<String> = written
        .iter()
        .map(|event| {
            let name = event["type"].as_str().unwrap_or_default().trim_start_matches("response.");
            let places =
                ["output_index", "content_index", "summary_index"].map(|place| event[place].as_u64());
            let places: Vec<String> = places.iter().flatten().map(u64::to_string).collect();
            format!("{name} {} {}", places.join("."), event["delta"].as_str().unwrap_or_default())
                .trim_end()
                .to_owned()
        })
        .collect();
    let expect = [
        "created",
        "in_progress",
        "output_item.added 0",
        "content_part.added 0.0",
        "reasoning_text.delta 0.0 hm",
        "reasoning_text.done 0.0",
        "content_part.done 0.0",
        "reasoning_summary_part.added 0.0",
        "reasoning_summary_text.delta 0.0 in short",
        "reasoning_summary_text.done 0.0",
        "reasoning_summary_part.done 0.0",
        "output_item.done 0",
        "output_item.added 1",
        "content_part.added 1.0",
        "output_text.delta 1.0 hi",
        "output_text.done 1.0",
        "content_part.done 1.0",
        "output_item.done 1",
        "output_item.added 2",
        "content_part.added 2.0",
        "refusal.delta 2.0 no",
        "refusal.done 2.0",
        "content_part.done 2.0",
        "output_item.done 2",
        // T9
        "output_item.added 3",
        "function_call_arguments.delta 3 {}",
        "function_call_arguments.done 3",
        "output_item.done 3",
        "output_item.added 4",
        "custom_tool_call_input.delta 4 *** begin",
        "custom_tool_call_input.done 4",
        "output_item.done 4",
        "incomplete",
    ];
    assert_eq!(brief, expect);
    // The last event contains the same items as the stream, with the same ids.
    let response = &written.last().expect("there are events")["response"];
    assert_eq!(response["id"], "resp_ours");
    let done: Vec<&Value> =
        written.iter().filter(|event| event["type"] == "response.output_item.done").collect();
    let added: Vec<&Value> =
        written.iter().filter(|event| event["type"] == "response.output_item.added").collect();
    for (at, item) in response["output"].as_array().expect("the response has items").iter().enumerate() {
        assert_eq!((item, &item["id"]), (&done[at]["item"], &added[at]["item"]["id"]));
    }
}

#[test]
fn whole_and_streamed_replies_are_written_alike() {
    let reply = reply::fold(foreign_events()).expect("the events are a reply");
    let streamed = write_stream(foreign_events(), context());
    let mut last = streamed.last().expect("there are events")["response"].clone();
    let whole: Value =
        serde_json::from_slice(&DIALECT.write_reply(&reply, &context()).value).expect("it is JSON");
    assert_eq!(last["output"].take(), whole["output"]);
}

#[test]
fn ids_of_the_host_survive_a_written_stream() {
    let reasoning =
        json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret" });
    let events = [
        created(),
        done(0, reasoning),
        done(1, message("hello")),
        done(2, call("a", json!("{}"))),
        done(3, json!({ "type": "web_search_call", "id": "ws_1", "status": "completed" })),
        completed(json!([])),
    ];
    let mut reply = folded(&events);
    let again = folded(&write_stream(reply.clone().into_events(), context()));
    // The writer adds a date and a status; this host sent none.
    reply.head.created = again.head.created;
    assert_eq!(again.blocks.len(), 4);
    for (before, after) in reply.blocks.iter().zip(&again.blocks) {
        match (before, after) {
            (Block::Reasoning(before), Block::Reasoning(after)) => assert_eq!(before.seal, after.seal),
            (Block::Text(before), Block::Text(after)) => {
                let id = |text: &toolgate_model::Text| {
                    text.extras.field(ID, "message").map(|fields| fields["id"].clone())
                };
                assert_eq!((id(before), &before.text), (Some(json!("msg_1")), &after.text));
                assert_eq!(id(before), id(after));
            }
            (Block::ToolCall(before), Block::ToolCall(after)) => {
                assert_eq!(before.extras.field(ID, "id"), after.extras.field(ID, "id"));
            }
            (before, after) => assert_eq!(before, after),
        }
    }
}

#[test]
fn an_error_ends_the_stream() {
    let error = TurnError::upstream("the host went away");
    let mut bytes = Vec::new();
    let mut writer = DIALECT.reply_writer(context());
    // T19: a ping may be first, and is not an event.
    writer.ping(&mut bytes);
    writer.error(&error, &mut bytes);
    let written = frames(&bytes);
    assert_eq!(written[0]["type"], "error");
    assert_eq!(
        (&written[0]["message"], &written[0]["error"]["type"]),
        (&json!(error.message), &json!("upstream_error"))
    );

    let mut bytes = Vec::new();
    let mut writer = DIALECT.reply_writer(context());
    for event in foreign_events().into_iter().take(3) {
        writer.event(event, &mut bytes);
    }
    writer.error(&error, &mut bytes);
    writer.error(&error, &mut bytes);
    let written = frames(&bytes);
    let last = &written.last().expect("there are events")["response"];
    assert_eq!((&last["status"], &last["error"]["message"]), (&json!("failed"), &json!(error.message)));
    assert_eq!(written.iter().filter(|event| event["type"] == "response.failed").count(), 1);
    // The reader reads the same error.
    let mut reader = DIALECT.reply_reader();
    let data = written.last().expect("there are events").to_string();
    let frame = crate::frame::SseFrame { event: "response.failed", data: &data };
    assert_eq!(reader.frame(frame, &mut Vec::new()).map_err(|error| error.kind), Err(ErrorKind::Upstream));
}
