//! An answer whose call cannot be parsed is requested again, with an explanation of the fault, as long as none
//! of the call has been sent.

use toolgate_model::Delivery;

use super::side::Turn;
use super::*;
use crate::options::{Strictness, UnknownTool};
use crate::{CallFault, FollowUpReason};

const PING: &str = "§\n<invoke name=\"Ping\">\n</invoke>";
const MISSPELLED: &str = "Let me look.\n§\n<invok name=\"Ping\">\n</invoke>";

fn whole() -> TurnRequest {
    TurnRequest { delivery: Delivery::Whole, ..request() }
}

/// The fault that is reported to the model, if there is a retry.
fn fault_of(turn: &Turn) -> Option<CallFault> {
    turn.interpreter.follow_up().map(|follow_up| match follow_up.reason {
        FollowUpReason::InvalidCall(fault) => fault,
        reason @ (FollowUpReason::Truncated | FollowUpReason::NoCall) => panic!("{reason:?}"),
    })
}

fn sent(turn: &Turn) -> String {
    format!("{:?}", turn.out)
}

#[test]
fn the_fault_is_explained_and_the_new_answer_replaces_the_call() {
    for split in SPLITS {
        let mut turn = Turn::new(&request(), &PromptedOptions::default());
        turn.reply(MISSPELLED, StopReason::EndTurn, split);
        assert_eq!(fault_of(&turn), Some(CallFault::MalformedTag));
        assert!(sent(&turn).contains("BlockStarted(Text)") && !sent(&turn).contains('<'), "{}", sent(&turn));
        let asked = turn.interpreter.follow_up().unwrap().request(&turn.prepared.request);
        assert_eq!(asked.messages.len(), turn.prepared.request.messages.len() + 2);
        assert!(format!("{:?}", asked.messages.last()).contains("The first tag"));
        turn.reply(PING, StopReason::EndTurn, split);
        let (outcome, usage) = turn.outcome();
        assert_eq!(outcome.blocks, ["text Let me look.", "call Ping {}"]);
        assert_eq!((outcome.stop, usage), (StopReason::ToolUse, 20));
        assert_eq!(outcome.recoveries, [Recovery::Retried]);
    }
}

#[test]
fn a_second_failure_is_text_without_the_trigger() {
    let mut turn = Turn::new(&request(), &PromptedOptions::default());
    turn.reply(MISSPELLED, StopReason::EndTurn, Split::Every(3));
    turn.reply("§\n<invok name=\"Ping\">", StopReason::EndTurn, Split::Every(3));
    assert_eq!(turn.interpreter.follow_up(), None);
    let blocks = turn.outcome().0.blocks;
    assert_eq!(blocks, ["text Let me look.", "text <invok name=\"Ping\">"]);
}

#[test]
fn without_a_retry_the_call_is_text() {
    for options in [PromptedOptions::default(), PromptedOptions { retries: 0, ..PromptedOptions::default() }]
    {
        let mut turn = Turn::new(&request(), &options);
        turn.reply(MISSPELLED, StopReason::EndTurn, Split::Every(3));
        assert_eq!(turn.interpreter.follow_up().is_some(), options.retries > 0);
        assert_eq!(turn.outcome().0.blocks, [format!("text {}", MISSPELLED.replace("§\n", ""))]);
    }
}

#[test]
fn a_call_that_was_sent_is_not_retried() {
    for text in [
        // A later call is valid; an earlier call is valid; part of the call was sent.
        format!("§\n<invoke name=\"Ping\">rubbish</invoke>\n{PING}"),
        format!("{PING}\n<invok name=\"Ping\">"),
        "§\n<invoke name=\"Bash\">\n<parameter name=\"command\">ls</parameter>\nrubbish\n</invoke>"
            .to_owned(),
    ] {
        let mut turn = Turn::new(&request(), &PromptedOptions::default());
        turn.reply(&text, StopReason::EndTurn, Split::Every(3));
        assert_eq!(turn.interpreter.follow_up(), None, "{text}");
    }
}

#[test]
fn a_client_that_waits_for_the_whole_reply_never_sees_the_invalid_answer() {
    let broken =
        "Hm.\n§\n<invoke name=\"Bash\">\n<parameter name=\"command\">ls</parameter>\nrubbish\n</invoke>";
    for split in SPLITS {
        let mut turn = Turn::new(&whole(), &PromptedOptions::default());
        turn.reply(broken, StopReason::EndTurn, split);
        assert_eq!(fault_of(&turn), Some(CallFault::UnexpectedText));
        turn.reply(PING, StopReason::EndTurn, split);
        let (outcome, usage) = turn.outcome();
        assert_eq!((outcome.blocks, usage), (vec!["call Ping {}".to_owned()], 20));
        assert_eq!((outcome.stop, outcome.truncation), (StopReason::ToolUse, None));
    }
    let mut turn = Turn::new(&whole(), &PromptedOptions::default());
    turn.reply(broken, StopReason::EndTurn, Split::Whole);
    let (outcome, _) = turn.outcome();
    assert_eq!(outcome.blocks, ["text Hm.", "call Bash {\"command\":\"ls</parameter>\\nrubbish"]);
    assert_eq!(outcome.stop, StopReason::MaxTokens);
}

#[test]
fn strict_mode_retries_for_the_exact_format() {
    let strict = PromptedOptions { strictness: Strictness::Strict, ..PromptedOptions::default() };
    for (text, fault) in [
        (PING.replace("Ping", "ping"), CallFault::NotExact),
        (PING.replace("</invoke>", ""), CallFault::NotExact),
    ] {
        let mut turn = Turn::new(&whole(), &strict);
        turn.reply(&text, StopReason::EndTurn, Split::Every(3));
        assert_eq!(fault_of(&turn), Some(fault), "{text}");
        turn.reply(PING, StopReason::EndTurn, Split::Every(3));
        assert_eq!(turn.outcome().0.blocks, ["call Ping {}"]);
    }
}

#[test]
fn an_unknown_tool_is_a_fault_only_if_its_call_becomes_text() {
    let options = PromptedOptions { unknown_tool: UnknownTool::Text, ..PromptedOptions::default() };
    let mut turn = Turn::new(&request(), &options);
    turn.reply(&PING.replace("Ping", "Fly"), StopReason::EndTurn, Split::Every(3));
    assert_eq!(fault_of(&turn), Some(CallFault::WrongTool("Fly".to_owned())));
    let mut turn = Turn::new(&request(), &PromptedOptions::default());
    turn.reply(&PING.replace("Ping", "Fly"), StopReason::EndTurn, Split::Every(3));
    assert_eq!(turn.outcome().0.blocks, ["call Fly {}"]);
}

#[test]
fn a_call_to_a_tool_that_was_not_offered_after_a_valid_call_is_not_retried() {
    let bash = "§\n<invoke name=\"Bash\">\n<parameter name=\"command\">ls</parameter>\n</invoke>";
    let fly = "<invoke name=\"Fly\">\n<parameter name=\"to\">Rome</parameter>\n</invoke>";
    let call_bash = "call Bash {\"command\":\"ls\"}";
    for request in [request(), whole()] {
        for (unknown_tool, second) in [
            (UnknownTool::Fix, "call Fly {\"to\":\"Rome\"}".to_owned()),
            (UnknownTool::Text, format!("text {fly}")),
        ] {
            let mut turn =
                Turn::new(&request, &PromptedOptions { unknown_tool, ..PromptedOptions::default() });
            turn.reply(&format!("{bash}\n{fly}"), StopReason::EndTurn, Split::Every(3));
            assert_eq!(turn.interpreter.follow_up(), None);
            let (outcome, _) = turn.outcome();
            assert_eq!(outcome.blocks, [call_bash.to_owned(), second]);
            assert_eq!((outcome.stop, outcome.truncation), (StopReason::ToolUse, None));
        }
    }
}

#[test]
fn a_refused_call_is_text_without_the_trigger_in_every_syntax() {
    let xml = "<invoke name=\"Fly\">\n<parameter name=\"to\">Rome</parameter>\n</invoke>";
    let json = "{\"name\": \"Fly\", \"arguments\": {\"to\": \"Rome\"}}";
    let unclosed = "{\"name\": \"Fly\", \"arguments\": {\"to\": \"Rome\"}";
    for strictness in [Strictness::Lenient, Strictness::Strict] {
        let options = PromptedOptions {
            strictness,
            unknown_tool: UnknownTool::Text,
            retries: 0,
            continuations: 0,
            ..PromptedOptions::default()
        };
        for call in [
            xml.to_owned(),
            json.to_owned(),
            format!("[{json}]"),
            format!("<tool_call>\n{json}\n</tool_call>"),
            format!("{unclosed}\n§\n{json}}}"),
        ] {
            let outcome = read(&format!("I fly.\n§\n{call}"), &options, &StopReason::EndTurn);
            let text = outcome.blocks.concat();
            assert!(text.starts_with("text I fly.") && text.contains("Rome"), "{text}");
            assert!(!text.contains(MARK), "{strictness:?}: {call} became {text}");
        }
    }
}

#[test]
fn an_answer_over_the_hold_limit_is_sent() {
    let mut turn = Turn::new(&request(), &PromptedOptions::default());
    let text = format!("{MISSPELLED}\n{}", "word ".repeat(300_000));
    turn.reply(&text, StopReason::EndTurn, Split::Every(100_000));
    assert_eq!(turn.interpreter.follow_up(), None);
    assert!(turn.outcome().0.blocks[0].contains("<invok"));
}

#[test]
fn the_operators_retry_template_is_filled_in() {
    let retry_template = Some("WRONG: {error_details} IN {original_response}".to_owned());
    let mut turn = Turn::new(&request(), &PromptedOptions { retry_template, ..PromptedOptions::default() });
    turn.reply(MISSPELLED, StopReason::EndTurn, Split::Whole);
    let asked = turn.interpreter.follow_up().unwrap().request(&turn.prepared.request);
    let prompt = format!("{:?}", asked.messages.last());
    assert!(prompt.contains("WRONG: The first tag") && prompt.contains("IN Let me look."), "{prompt}");
}
