//! Streams written for clients.

use serde_json::{Value, json};
use toolgate_model::{
    BlockEnd, BlockStart, CallKind, Delta, ErrorKind, Extras, Finish, ReasoningKind, ReplyHead, StopReason,
    TurnError, TurnEvent, Usage,
};

use super::super::ChatWriter;
use super::{DIALECT, context, frames, plain_context, read_request, write_stream};
use crate::{ClientDialect as _, ReplyContext, ReplyWriter as _};

fn started() -> TurnEvent {
    TurnEvent::Started(ReplyHead { id: Some("msg_1".into()), ..ReplyHead::default() })
}

fn text(words: &str) -> [TurnEvent; 3] {
    let delta = TurnEvent::BlockDelta(Delta::Text(words.into()));
    [TurnEvent::BlockStarted(BlockStart::Text), delta, TurnEvent::BlockFinished(BlockEnd::default())]
}

fn call(id: &str, kind: CallKind, arguments: &[&str]) -> Vec<TurnEvent> {
    let start = BlockStart::ToolCall { id: id.into(), name: "f".into(), kind };
    let mut events = vec![TurnEvent::BlockStarted(start)];
    events.extend(arguments.iter().map(|text| TurnEvent::BlockDelta(Delta::Arguments((*text).into()))));
    events.push(TurnEvent::BlockFinished(BlockEnd::default()));
    events
}

fn finished(stop: StopReason) -> TurnEvent {
    let usage = Some(Usage { input: 1, output: 2, ..Usage::default() });
    TurnEvent::Finished(Finish { stop, usage, ..Finish::default() })
}

fn asked(fields: &Value) -> ReplyContext {
    let mut body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "x"}]});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    context(read_request(&body))
}

/// The deltas of every chunk, and the finish reason.
fn check(context: ReplyContext, events: Vec<TurnEvent>, expect: &[Value], finish_reason: &str) {
    let frames = write_stream(context, events);
    let (done, chunks) = frames.split_last().unwrap();
    assert_eq!(done, "[DONE]"); // T22
    let chunks: Vec<Value> = chunks.iter().map(|chunk| serde_json::from_str(chunk).unwrap()).collect();
    let deltas: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
    assert_eq!(deltas, expect.iter().collect::<Vec<_>>());
    assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], finish_reason);
    for chunk in &chunks {
        assert_eq!(
            (&chunk["id"], &chunk["created"], &chunk["choices"][0]["index"]),
            (&json!("chatcmpl-msg_1"), &json!(7), &json!(0))
        ); // T8
    }
}

#[test]
fn text_then_calls_with_dense_indices() {
    let mut events = vec![started()];
    events.extend(text("hi \"ä\"\n"));
    events.extend(call("a", CallKind::Function, &["{\"x\"", ":1}"]));
    events.extend(text("more"));
    events.extend(call("b", CallKind::Function, &[]));
    events.extend(call("c", CallKind::Custom, &["free"]));
    events.push(finished(StopReason::ToolUse));
    let begin = |index: u32, id: &str| json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": "f", "arguments": ""}}]});
    let more =
        |index: u32, text: &str| json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]});
    check(
        asked(&json!({})),
        events,
        &[
            json!({"role": "assistant", "content": ""}),
            json!({"content": "hi \"ä\"\n"}), // T39
            begin(0, "a"),                    // T8
            more(0, "{\"x\""),
            more(0, ":1}"),
            json!({"content": "\n\n"}),
            json!({"content": "more"}),
            begin(1, "b"),
            more(1, "{}"), // T9
            json!({"tool_calls": [{"index": 2, "id": "c", "type": "custom", "custom": {"name": "f", "input": ""}}]}),
            json!({"tool_calls": [{"index": 2, "custom": {"input": "free"}}]}),
            json!({}),
        ],
        "tool_calls",
    );
}

#[test]
fn reasoning_and_refusals_are_written() {
    let paragraph = |text: &str| {
        [
            TurnEvent::BlockDelta(Delta::Paragraph(ReasoningKind::Full)),
            TurnEvent::BlockDelta(Delta::Text(text.into())),
        ]
    };
    let mut events = vec![started(), TurnEvent::BlockStarted(BlockStart::Reasoning(Extras::NONE))];
    events.extend(paragraph("one"));
    events.extend(paragraph("two"));
    events.extend([
        TurnEvent::BlockFinished(BlockEnd::default()),
        TurnEvent::BlockStarted(BlockStart::Refusal),
    ]);
    events.extend([
        TurnEvent::BlockDelta(Delta::Text("no".into())),
        TurnEvent::BlockFinished(BlockEnd::default()),
    ]);
    events.push(finished(StopReason::Refusal));
    check(
        asked(&json!({})),
        events,
        &[
            json!({"role": "assistant", "content": ""}),
            json!({"reasoning_content": "one"}),
            json!({"reasoning_content": "\n\n"}),
            json!({"reasoning_content": "two"}),
            json!({"refusal": "no"}),
            json!({}),
        ],
        "stop",
    );
}

#[test]
fn the_legacy_form_for_clients_that_offer_functions() {
    let mut events = vec![started()];
    events.extend(call("a", CallKind::Function, &["{}"]));
    events.extend(call("b", CallKind::Function, &["{}"]));
    events.push(finished(StopReason::ToolUse));
    check(
        asked(&json!({"functions": [{"name": "f"}]})),
        events,
        &[
            json!({"role": "assistant", "content": ""}),
            json!({"function_call": {"name": "f", "arguments": ""}}),
            json!({"function_call": {"arguments": "{}"}}),
            json!({}),
        ],
        "function_call",
    );
}

// T13
#[test]
fn usage_is_written_only_on_request() {
    let events = || vec![started(), finished(StopReason::EndTurn)];
    let asked_for = write_stream(asked(&json!({"stream_options": {"include_usage": true}})), events());
    let usage: Value = serde_json::from_str(&asked_for[2]).unwrap();
    assert_eq!((&usage["choices"], &usage["usage"]["total_tokens"]), (&json!([]), &json!(3)));
    assert_eq!(asked_for[3], "[DONE]");
    let unasked = write_stream(asked(&json!({})), events());
    assert!(unasked.len() == 3 && !unasked.concat().contains("usage"));
}

// T17 T19
#[test]
fn errors_and_pings_are_written() {
    let mut writer = DIALECT.reply_writer(plain_context());
    let mut bytes = Vec::new();
    writer.ping(&mut bytes);
    assert_eq!(bytes, b": ping\n");
    writer.error(&TurnError::new(ErrorKind::Overloaded, "full"), &mut bytes);
    let written = frames(&bytes);
    assert_eq!(
        written[0],
        r#"{"error":{"message":"full","type":"overloaded_error","param":null,"code":null}}"#
    );
    assert_eq!(written[1], "[DONE]");
}

#[test]
fn several_choices_share_one_end() {
    let mut bytes = Vec::new();
    let mut writer = ChatWriter::new(plain_context()).with_choice(2);
    writer.event(started(), &mut bytes);
    writer.event(finished(StopReason::EndTurn), &mut bytes);
    assert!(frames(&bytes).iter().all(|chunk| chunk.contains(r#""index":2"#)));
    writer.close(Some(&Usage::default()), &mut bytes);
    let written = frames(&bytes);
    assert_eq!((written.len(), written[3].as_str()), (4, "[DONE]"));
}
