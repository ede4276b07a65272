//! Side requests, without a network: missing values, continuations and nudges.

use super::*;
use crate::options::Switch;
use crate::side::FollowUpReason;
use toolgate_model::{Choice, Usage};

pub(super) struct Turn {
    pub(super) prepared: PreparedRequest,
    pub(super) interpreter: Interpreter,
    pub(super) out: Vec<TurnEvent>,
}

impl Turn {
    pub(super) fn new(request: &TurnRequest, options: &PromptedOptions) -> Self {
        let prepared = prepared(request, options);
        let interpreter = Interpreter::new(prepared.plan.clone());
        Self { prepared, interpreter, out: Vec::new() }
    }

    /// Feeds a whole reply.
    pub(super) fn reply(&mut self, text: &str, stop: StopReason, split: Split) {
        let text = text.replace(MARK, self.prepared.plan.trigger().unwrap());
        let mut events = text_events(&text, split, stop);
        if let Some(TurnEvent::Finished(finish)) = events.last_mut() {
            finish.usage = Some(Usage { output: 10, ..Usage::default() });
        }
        for event in events {
            self.interpreter.event(event, &mut self.out);
        }
    }

    pub(super) fn outcome(mut self) -> (Outcome, u64) {
        self.interpreter.end(&mut self.out);
        let usage = fold(self.out.clone()).unwrap().finish.usage.unwrap_or_default().output;
        (outcome(&self.interpreter, self.out), usage)
    }
}

const INCOMPLETE: &str = "§\n<invoke name=\"Write\">\n<parameter name=\"content\">x</parameter>\n</invoke>";

#[test]
fn p26_a_missing_value_is_requested_and_appended() {
    for split in SPLITS {
        let mut turn = Turn::new(&request(), &PromptedOptions::default());
        turn.reply(INCOMPLETE, StopReason::EndTurn, split);
        let missing = turn.interpreter.missing_value().unwrap();
        assert_eq!((missing.call.as_str(), missing.parameter.as_str()), ("Write", "file_path"));
        let side = missing.request(&turn.prepared.request);
        assert_eq!(side.messages.len(), turn.prepared.request.messages.len() + 2);
        assert!(format!("{:?}", side.messages.last()).contains("file_path"));
        turn.interpreter.supply_value("/a.py\n", &mut turn.out);
        assert_eq!(turn.interpreter.missing_value(), None);
        let (outcome, _) = turn.outcome();
        assert_eq!(outcome.blocks, ["call Write {\"content\":\"x\",\"file_path\":\"/a.py\"}"]);
        assert_eq!(outcome.recoveries, [Recovery::ValueSupplied]);
        assert_eq!(outcome.stop, StopReason::ToolUse);
    }
}

#[test]
fn p26_without_the_value_the_call_is_sent_as_it_is() {
    let mut turn = Turn::new(&request(), &PromptedOptions::default());
    turn.reply(INCOMPLETE, StopReason::EndTurn, Split::Whole);
    assert!(turn.interpreter.missing_value().is_some());
    turn.interpreter.decline_value(&mut turn.out);
    assert_eq!(turn.outcome().0.blocks, ["call Write {\"content\":\"x\"}"]);
}

#[test]
fn p26_an_invalid_value_is_requested_and_later_calls_wait() {
    let bash = "<invoke name=\"Bash\">\n<parameter name=\"command\">ls</parameter>\n<parameter name=\"timeout\">soon</parameter>\n</invoke>";
    let text = format!("§\n{bash}\n<invoke name=\"Ping\">\n</invoke>");
    let mut turn = Turn::new(&request(), &PromptedOptions::default());
    turn.reply(&text, StopReason::EndTurn, Split::Whole);
    // The events after the call declined the value.
    let (outcome, _) = turn.outcome();
    assert_eq!(outcome.blocks, ["call Bash {\"command\":\"ls\",\"timeout\":\"soon\"}", "call Ping {}"]);

    let mut turn = Turn::new(&request(), &PromptedOptions::default());
    let whole = text.replace(MARK, turn.prepared.plan.trigger().unwrap());
    let events = text_events(&whole, Split::Whole, StopReason::EndTurn);
    for event in events {
        turn.interpreter.event(event, &mut turn.out);
        if let Some(missing) = turn.interpreter.missing_value() {
            assert_eq!(missing.written.as_deref(), Some("soon"));
            turn.interpreter.supply_value("<parameter name=\"timeout\">60</parameter>", &mut turn.out);
        }
    }
    let (outcome, _) = turn.outcome();
    assert_eq!(outcome.blocks, ["call Bash {\"command\":\"ls\",\"timeout\":60}", "call Ping {}"]);
}

#[test]
fn p28_a_truncated_answer_is_continued() {
    let start = "§\n<invoke name=\"Write\">\n<parameter name=\"file_path\">a</parameter>\n<parameter name=\"content\">\nfirst line\nlet value = compute(";
    let exact = "1)\nlast\n</parameter>\n</invoke>";
    let repeating = "first line\nlet value = compute(1)\nlast\n</parameter>\n</invoke>";
    for split in SPLITS {
        for (rest, stop) in [(exact, StopReason::MaxTokens), (repeating, StopReason::EndTurn)] {
            let mut turn = Turn::new(&request(), &PromptedOptions::default());
            turn.reply(start, stop, split);
            let follow_up = turn.interpreter.follow_up().unwrap();
            assert_eq!(follow_up.reason, FollowUpReason::Truncated);
            assert!(follow_up.answer.ends_with("compute("));
            let next = follow_up.request(&turn.prepared.request);
            assert_eq!(next.messages.len(), turn.prepared.request.messages.len() + 2);
            turn.reply(rest, StopReason::EndTurn, split);
            let (outcome, usage) = turn.outcome();
            let content = "first line\nlet value = compute(1)\nlast";
            assert_eq!(
                outcome.blocks,
                [format!("call Write {}", json!({"file_path": "a", "content": content}))]
            );
            assert_eq!((outcome.stop, outcome.truncation), (StopReason::ToolUse, None));
            assert_eq!(outcome.recoveries, [Recovery::Continued]);
            assert_eq!(usage, 20);
        }
    }
}

#[test]
fn p28_an_answer_that_ends_with_a_closed_call_is_not_continued() {
    // The opening tags in the value are only mentioned, but look like an example.
    let start = "§\n<invoke name=\"Write\">\n<parameter name=\"file_path\">a</parameter>\n<parameter name=\"content\">\n";
    let example = "<invoke name=\"Bash\">\n<parameter name=\"command\">ls\n</parameter>\n</invoke>";
    for (end, stop, continued) in [
        ("\n", StopReason::EndTurn, false),
        ("\n</function_calls>", StopReason::EndTurn, false),
        ("", StopReason::MaxTokens, true),
        ("\nand", StopReason::EndTurn, true),
    ] {
        let mut turn = Turn::new(&request(), &PromptedOptions::default());
        turn.reply(&format!("{start}{example}{end}"), stop.clone(), Split::Every(3));
        assert_eq!(turn.interpreter.follow_up().is_some(), continued, "{end:?} {stop:?}");
        assert_eq!(turn.outcome().0.stop, StopReason::MaxTokens);
    }
}

#[test]
fn p28_continuations_are_limited() {
    let mut turn = Turn::new(&request(), &PromptedOptions::default());
    turn.reply(
        "§\n<invoke name=\"Bash\">\n<parameter name=\"command\">a",
        StopReason::MaxTokens,
        Split::Whole,
    );
    assert!(turn.interpreter.follow_up().is_some());
    turn.reply("b", StopReason::MaxTokens, Split::Whole);
    assert_eq!(turn.interpreter.follow_up(), None);
    let (outcome, _) = turn.outcome();
    assert_eq!(outcome.blocks, ["call Bash {\"command\":\"ab"]);
    assert_eq!((outcome.stop, outcome.truncation), (StopReason::MaxTokens, Some(Truncation::InsideCall)));
}

#[test]
fn p32_a_model_that_skips_a_required_call_is_nudged_once() {
    let mut request = request();
    request.tool_choice.choice = Some(Choice::Any);
    let mut turn = Turn::new(&request, &PromptedOptions::default());
    assert!(format!("{:?}", turn.prepared.request.messages.last()).contains("You must call"));
    turn.reply("Let me check.", StopReason::EndTurn, Split::Every(3));
    assert_eq!(turn.interpreter.follow_up().unwrap().reason, FollowUpReason::NoCall);
    turn.reply("§\n<invoke name=\"Ping\">\n</invoke>", StopReason::EndTurn, Split::Every(3));
    let (outcome, usage) = turn.outcome();
    assert_eq!(outcome.blocks, ["text Let me check.", "call Ping {}"]);
    assert_eq!((outcome.stop, usage), (StopReason::ToolUse, 20));
    assert_eq!(outcome.recoveries, [Recovery::Nudged]);

    let mut turn = Turn::new(&request, &PromptedOptions::default());
    turn.reply("No.", StopReason::EndTurn, Split::Whole);
    turn.reply("No!", StopReason::EndTurn, Split::Whole);
    assert_eq!(turn.interpreter.follow_up(), None);
    assert_eq!(turn.outcome().0.stop, StopReason::EndTurn);

    let broken = "§\n<invoke name=\"Bash\">\n<parameter name=\"command\">ls</parameter>\nrubbish\n</invoke>";
    let mut half = Turn::new(&request, &PromptedOptions::default());
    half.reply(broken, StopReason::EndTurn, Split::Every(3));
    assert_eq!(half.interpreter.follow_up(), None);
    assert_eq!(half.outcome().0.stop, StopReason::MaxTokens);

    let mut free = Turn::new(&super::request(), &PromptedOptions::default());
    free.reply("Let me check.", StopReason::EndTurn, Split::Whole);
    assert_eq!(free.interpreter.follow_up(), None);
    let mut off = Turn::new(&request, &PromptedOptions { nudge: Switch::Off, ..PromptedOptions::default() });
    off.reply("Let me check.", StopReason::EndTurn, Split::Whole);
    assert_eq!(off.interpreter.follow_up(), None);
}
