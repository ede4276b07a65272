//! Interleaved blocks come out one after another.

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
    check_closing(BlockClosing::OnNextStart, steps, expect);
}

fn check_closing(closing: BlockClosing, steps: &[Step], expect: &str) {
    let mut sequencer = Sequencer::new(closing);
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
fn text_ends_where_the_next_block_starts() {
    check(
        &[Start(0), Text(0, "a"), Call(1), Args(1, "{}"), Start(2), Text(2, "b")],
        "<t a > <c1 {} > <t b >",
    );
}

#[test]
fn consecutive_calls_stream_directly() {
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
fn text_inside_an_unfinished_call_is_queued() {
    // T6
    check(&[Call(0), Args(0, "["), Start(9), Text(9, "hi"), Args(0, "]"), End(0)], "<c0 [ ] > <t hi >");
}

#[test]
fn empty_deltas_and_deltas_for_unknown_blocks_are_dropped() {
    // T12
    check(&[Start(0), Text(0, ""), Text(7, "lost"), End(0)], "<t >");
}

#[test]
fn only_finish_closes_a_block_whose_end_carries_data() {
    let steps = [Start(0), Text(0, "a"), Call(1), Args(1, "{}"), Start(2), Text(0, "b"), End(1), End(0)];
    check_closing(BlockClosing::OnFinishOnly, &steps, "<t a b > <c1 {} > <t >");
}

#[test]
fn an_overflowing_queue_closes_the_open_block_or_is_reported() {
    let fill = |closing| {
        let mut sequencer = Sequencer::new(closing);
        let mut out = Vec::new();
        let call =
            |id: &str| BlockStart::ToolCall { id: id.into(), name: "f".into(), kind: CallKind::Function };
        sequencer.start(0, call("c0"), &mut out);
        sequencer.delta(0, Delta::Arguments("{".to_owned()), &mut out);
        sequencer.start(1, call("c1"), &mut out);
        let piece = "x".repeat(1024 * 1024);
        for _ in 0..33 {
            sequencer.delta(1, Delta::Arguments(piece.clone()), &mut out);
        }
        (sequencer.open_key(), sequencer.is_overflowing())
    };
    assert_eq!(fill(BlockClosing::OnNextStart), (Some(1), false));
    assert_eq!(fill(BlockClosing::OnFinishOnly), (Some(0), true));
}

#[test]
fn queued_blocks_keep_their_order() {
    check(
        &[
            Call(0),
            Args(0, "{"),
            Start(1),
            Text(1, "a"),
            Start(2),
            Text(2, "b"),
            Start(1),
            Text(1, "c"),
            Args(0, "}"),
        ],
        "<c0 { } > <t a > <t b > <t c >",
    );
}
