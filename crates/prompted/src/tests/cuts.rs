//! P28: wherever an answer ends, complete calls are kept, incomplete ones are reported as truncated, and the
//! trigger is never shown.

use super::side::Turn;
use super::*;
use crate::options::{AfterCalls, Repair, Switch};
use crate::{CallFault, FollowUpReason};

const PING: &str = "<invoke name=\"Ping\">\n</invoke>";
const LS: &str = "<invoke name=\"Bash\">\n<parameter name=\"command\">ls</parameter>\n</invoke>";
const CALL_LS: &str = "call Bash {\"command\":\"ls\"}";
const ENDS: [StopReason; 2] = [StopReason::EndTurn, StopReason::MaxTokens];

fn plain() -> PromptedOptions {
    PromptedOptions {
        continuations: 0,
        retries: 0,
        nudge: Switch::Off,
        repair: Repair::Off,
        ..PromptedOptions::default()
    }
}

/// Checks the blocks and that the reply is reported as truncated, for every stop reason and every policy for
/// text after calls.
fn check_cut(text: &str, blocks: &[&str]) {
    for stop in ENDS {
        for after_calls in [AfterCalls::Stop, AfterCalls::Text] {
            let outcome = read(text, &PromptedOptions { after_calls, ..plain() }, &stop);
            assert_eq!(outcome.blocks, blocks, "{stop:?} after {text}");
            assert_eq!(outcome.stop, StopReason::MaxTokens, "{stop:?} after {text}");
            assert!(outcome.truncation.is_some(), "{stop:?} after {text}");
        }
    }
}

/// Checks a clean end after complete calls.
fn check_whole(text: &str, blocks: &[&str]) {
    let outcome = read(text, &plain(), &StopReason::EndTurn);
    assert_eq!((outcome.blocks.as_slice(), outcome.truncation), (&strings(blocks)[..], None), "{text}");
    assert_eq!(outcome.stop, StopReason::ToolUse, "{text}");
}

fn strings(blocks: &[&str]) -> Vec<String> {
    blocks.iter().map(|block| (*block).to_owned()).collect()
}

#[test]
fn a_cut_inside_a_later_call_is_reported() {
    for next in [
        "<",
        "<inv",
        "<invoke",
        "<invoke name=\"Ba",
        "<invoke name=\"Bash\">",
        "<invoke name=\"Bash\">\n<para",
        "<invoke name=\"Bash\">\n<parameter name=\"comm",
        "<tool_ca",
        "<function_call><tool>Ba",
        "<function=Ba",
        "<｜DSML｜invoke name=\"Ba",
        "＜invoke na",
        "{",
    ] {
        check_cut(&format!("§\n{LS}\n{next}"), &[CALL_LS]);
        check_cut(&format!("§\n{LS}\n§\n{next}"), &[CALL_LS]);
    }
    let open = "call Bash {\"command\":\"l";
    check_cut(&format!("§\n{LS}\n<invoke name=\"Bash\">\n<parameter name=\"command\">l"), &[CALL_LS, open]);
    // The text after a closing tag decides whether it is one, so the value is still open.
    let half = "call Bash {\"command\":\"ls";
    let next = LS.replace("</invoke>", "<parameter name=\"time");
    check_cut(&format!("§\n{LS}\n{next}"), &[CALL_LS, half]);
}

#[test]
fn a_misspelled_later_call_is_reported() {
    check_cut(&format!("§\n{LS}\n<invok name=\"Ping\">\n</invoke>"), &[CALL_LS]);
    check_cut(&format!("§\n{LS}\n<invoke>\n</invoke>"), &[CALL_LS]);
}

#[test]
fn text_that_cannot_become_a_call_leaves_the_calls_complete() {
    for tail in ["", "\n", "\n<tool_resul", "\n</function_ca", "\n</invok>", "\n``", "\nDone: 1 <"] {
        check_whole(&format!("§\n{LS}{tail}"), &[CALL_LS]);
    }
    // Every parameter is closed, and the model stopped inside the closing tag of the call.
    let all = "§\n<invoke name=\"Patch\">\n<parameter name=\"input\">x</parameter>";
    check_whole(all, &["custom Patch x"]);
}

#[test]
fn a_cut_in_the_first_call_shows_no_trigger_and_no_markup() {
    for begun in [
        "§",
        "§\n",
        "§\n<",
        "§<inv",
        "§\n<inv",
        "§\n<invoke",
        "§\n<invoke name=\"Ba",
        "§\n<invoke name=\"Bash\">",
        "§\n<invoke name=\"Bash\">\n<parameter na",
        "§\n<function_call><tool>Ba",
    ] {
        check_cut(&format!("Hm.\n{begun}"), &["text Hm."]);
        check_cut(begun, &[]);
    }
    check_cut("§\nI call it now.\n<invo", &["text I call it now."]);
}

#[test]
fn an_answer_that_ends_inside_the_trigger_is_truncated() {
    let prepared = prepared(&request(), &plain());
    let trigger = prepared.plan.trigger().unwrap();
    for stop in ENDS {
        for len in 7..trigger.len() {
            let outcome = read_prepared(&prepared, &format!("Hm.\n{}", &trigger[..len]), &stop);
            assert_eq!(outcome.blocks, ["text Hm."]);
            assert_eq!(outcome.stop, StopReason::MaxTokens);
        }
    }
}

#[test]
fn a_cut_after_complete_calls_is_continued() {
    for (begun, rest) in
        [("<inv", "oke name=\"Ping\">\n</invoke>"), ("<invoke name=\"Ping\">\n</in", "voke>")]
    {
        for (split, stop) in SPLITS.into_iter().zip(ENDS.into_iter().cycle()) {
            let mut turn = Turn::new(&request(), &PromptedOptions::default());
            turn.reply(&format!("§\n{LS}\n{begun}"), stop, split);
            let reason = turn.interpreter.follow_up().map(|follow_up| follow_up.reason);
            assert_eq!(reason, Some(FollowUpReason::Truncated), "{begun}");
            turn.reply(rest, StopReason::EndTurn, split);
            let (outcome, _) = turn.outcome();
            assert_eq!(outcome.blocks, [CALL_LS, "call Ping {}"]);
            assert_eq!((outcome.stop, outcome.truncation), (StopReason::ToolUse, None));
        }
    }
}

#[test]
fn a_malformed_first_tag_is_retried() {
    for begun in ["<invoke", "<invoke name=\"Pi", "<invoke>\n</invoke>", "<invok name=\"Ping\">"] {
        for delivery in [Delivery::Whole, request().delivery] {
            let mut turn = Turn::new(&TurnRequest { delivery, ..request() }, &PromptedOptions::default());
            turn.reply(&format!("Hm.\n§\n{begun}"), StopReason::EndTurn, Split::Every(3));
            let reason = turn.interpreter.follow_up().map(|follow_up| follow_up.reason);
            assert_eq!(reason, Some(FollowUpReason::InvalidCall(CallFault::MalformedTag)), "{begun}");
            turn.reply(&format!("§\n{PING}"), StopReason::EndTurn, Split::Every(3));
            let (outcome, _) = turn.outcome();
            assert_eq!(outcome.blocks.last().map(String::as_str), Some("call Ping {}"), "{begun}");
            assert_eq!(outcome.stop, StopReason::ToolUse);
        }
    }
}

#[test]
fn a_stream_that_breaks_off_is_truncated() {
    for text in ["Hel", "Hm.\n§\n", &format!("§\n{LS}\n"), &format!("§\n{LS}\n<invo")] {
        let prepared = prepared(&request(), &plain());
        let text = text.replace(MARK, prepared.plan.trigger().unwrap());
        let mut events = text_events(&text, Split::Every(3), StopReason::EndTurn);
        events.truncate(events.len() - 2);
        assert_eq!(interpret(&prepared, events).stop, StopReason::MaxTokens, "{text}");
    }
}

#[test]
fn a_rejected_call_is_text_without_its_trigger() {
    let options = PromptedOptions { unknown_tool: crate::UnknownTool::Text, ..plain() };
    for call in [
        "<invoke name=\"Shell\">\n</invoke>",
        "<invok name=\"Ping\">\n</invoke>",
        "<invoke>\n</invoke>",
        "<invoke name=\"Bash\">\nrubbish\n</invoke>",
        "{\"name\":\"Shell\",\"arguments\":{}}",
        "{\"name\":\"Ping\",\"arguments\":{,}}",
        "<function_call><tool>Shell</tool><args_json>{}",
    ] {
        let outcome = read(&format!("Hm.\n§\n{call}"), &options, &StopReason::EndTurn);
        assert_eq!(outcome.blocks.concat(), format!("text Hm.\n{call}"), "{call}");
    }
}
