//! What comes in interleaved goes out in order.

use super::*;
use crate::tool::CallKind;

enum Step {
    Start(u8),
    Text(u8, &'static str),
    Call(u8),
    Args(u8, &'static str),
    End(u8),
}
use Step::{Args, Call, End, Start, Text};

fn check(steps: &[Step], expect: &str) {
    let mut sequencer = Sequencer::new();
    let mut out = Vec::new();
    for step in steps {
        match *step {
            Start(key) => sequencer.start(key, BlockStart::Text, &mut out),
            Text(key, text) => sequencer.delta(key, Delta::Text(text.into()), &mut out),
            Call(key) => {
                let start = BlockStart::ToolCall {
                    id: format!("c{key}").into(),
                    name: "f".into(),
                    kind: CallKind::Function,
                };
                sequencer.start(key, start, &mut out);
            }
            Args(key, text) => sequencer.delta(key, Delta::Arguments(text.into()), &mut out),
            End(key) => sequencer.finish(key, BlockEnd::default(), &mut out),
        }
    }
    sequencer.finish_all(&mut out);
    let shown: Vec<String> = out.into_iter().map(show).collect();
    assert_eq!(shown.join(" "), expect);
}

fn show(event: TurnEvent) -> String {
    match event {
        TurnEvent::BlockStarted(BlockStart::ToolCall { id, .. }) => format!("<{id}"),
        TurnEvent::BlockStarted(_) => "<t".into(),
        TurnEvent::BlockDelta(Delta::Text(text) | Delta::Arguments(text)) => text,
        TurnEvent::BlockFinished(_) => ">".into(),
        event @ (TurnEvent::Started(_)
        | TurnEvent::BlockDelta(_)
        | TurnEvent::Usage(_)
        | TurnEvent::Finished(_)) => {
            format!("{event:?}")
        }
    }
}

#[test]
fn prose_ends_where_another_block_begins() {
    check(
        &[Start(0), Text(0, "a"), Call(1), Args(1, "{}"), Start(2), Text(2, "b")],
        "<t a > <c1 {} > <t b >",
    );
}

#[test]
fn calls_in_turn_stream_in_turn() {
    // T5
    check(
        &[Call(0), Args(0, r#"{"a":"#), Args(0, "1}"), Call(1), Args(1, "{}")],
        r#"<c0 {"a": 1} > <c1 {} >"#,
    );
}

#[test]
fn alternating_calls_come_out_one_after_the_other() {
    // T6
    let steps =
        [Call(0), Args(0, "["), Call(1), Args(1, "{"), Args(0, "]"), Args(1, "}"), Call(2), Args(2, "3")];
    check(&steps, "<c0 [ ] > <c1 { } > <c2 3 >");
}

#[test]
fn text_inside_an_unfinished_call_waits_for_it() {
    // T6
    check(&[Call(0), Args(0, "["), Start(9), Text(9, "hi"), Args(0, "]"), End(0)], "<c0 [ ] > <t hi >");
}

#[test]
fn empty_deltas_and_deltas_for_nothing_are_dropped() {
    // T12
    check(&[Start(0), Text(0, ""), Text(7, "lost"), End(0)], "<t >");
}
