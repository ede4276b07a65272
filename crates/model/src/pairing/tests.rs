//! Invalid ids are rejected or repaired.

use super::*;
use crate::message::{AssistantMessage, ToolCall, ToolOutcome, ToolResults};
use crate::tool::CallKind;
use crate::{CallId, Extras};

const RULES: AcceptedId = |id| shortened(id, 12, |c| c.is_ascii_alphanumeric() || c == '_');

fn calls(ids: &[&str]) -> Message {
    let call = |id: &&str| {
        Block::ToolCall(ToolCall {
            id: CallId::from(*id),
            name: "f".into(),
            kind: CallKind::Function,
            arguments: "{}".into(),
            extras: Extras::NONE,
        })
    };
    Message::Assistant(AssistantMessage { content: ids.iter().map(call).collect(), extras: Extras::NONE })
}

fn results(ids: &[&str]) -> Message {
    let result = |id: &&str| ToolResult {
        call: CallId::from(*id),
        kind: CallKind::Function,
        content: vec![Part::text("ok")],
        outcome: ToolOutcome::Success,
        extras: Extras::NONE,
    };
    Message::ToolResults(ToolResults { results: ids.iter().map(result).collect() })
}

#[test]
fn strict_dialects_reject_unmatched_results() {
    let error = |messages: &[Message]| check(messages).map_err(|error| error.message);
    assert_eq!(error(&[calls(&["a", "b"]), results(&["b", "a"])]), Ok(()));
    assert_eq!(error(&[calls(&["a"]), results(&["a"]), calls(&["a"]), results(&["a"])]), Ok(()));
    assert!(error(&[results(&["a"])]).unwrap_err().contains("answers no tool_use"));
    assert!(error(&[calls(&["a"]), results(&["a", "a"])]).unwrap_err().contains("two tool_results"));
    assert_eq!(error(&[calls(&["a", "a"]), results(&["a", "a"])]), Ok(()));
    let third = error(&[calls(&["a", "a"]), results(&["a", "a", "a"])]);
    assert!(third.unwrap_err().contains("two tool_results"));
}

#[test]
fn lenient_dialects_keep_orphans_as_text_and_drop_second_results() {
    // T25
    let mut losses = Losses::default();
    let mut messages = vec![calls(&["a"]), results(&["x", "a", "a"])];
    repair(&mut messages, &mut losses);
    let Message::User(orphan) = &messages[2] else { panic!("{messages:?}") };
    assert_eq!(messages[1], results(&["a"]));
    assert_eq!(orphan.content[0], Part::text("Result of the tool call x:"));
    assert!(losses.contains("tool result"));

    let mut only_orphans = vec![results(&["x"])];
    repair(&mut only_orphans, &mut losses);
    assert!(matches!(only_orphans[..], [Message::User(_)]));
}

#[test]
fn invalid_ids_are_rewritten_alike_for_call_and_result() {
    // T23
    let messages = [
        calls(&["functions.Bash:0", "ok_1", ""]),
        results(&["ok_1", "functions.Bash:0", ""]),
        calls(&["ok_1"]),
        results(&["ok_1"]),
    ];
    let ids = host_ids(&messages, RULES);
    assert_eq!(ids.call(0, 1), "ok_1");
    assert_eq!(ids.call(0, 0).len(), 12);
    assert_eq!(ids.result(1, 1), ids.call(0, 0));
    assert_eq!(ids.call(0, 2), "call");
    assert_eq!(ids.call(2, 0), "ok_1_2");
    assert_eq!(ids.result(3, 0), "ok_1_2");
    assert_eq!(ids.results_in_order(1), [1, 0, 2]);
}

#[test]
fn calls_with_the_same_id_in_one_message_get_their_results_by_occurrence() {
    // T23
    let original = vec![calls(&["a", "b", "a"]), results(&["a", "a", "b"]), calls(&["a"]), results(&["a"])];
    let mut messages = original.clone();
    let mut losses = Losses::default();
    repair(&mut messages, &mut losses);
    assert_eq!((&messages, losses.is_empty()), (&original, true));

    let ids = host_ids(&messages, RULES);
    assert_eq!([ids.call(0, 0), ids.call(0, 1), ids.call(0, 2), ids.call(2, 0)], ["a", "b", "a_2", "a_3"]);
    assert_eq!([ids.result(1, 0), ids.result(1, 1), ids.result(1, 2)], ["a", "a_2", "b"]);
    assert_eq!(ids.result(3, 0), "a_3");
    assert_eq!(ids.results_in_order(1), [0, 2, 1]);
}
