//! An answer whose call cannot be understood is asked for again, with the fault explained, while nothing of a call has
//! been sent.

use toolgate_model::Delivery;

use super::side::Turn;
use super::*;
use crate::options::Strictness;
use crate::{Fault, Reason};

const PING: &str = "§\n<invoke name=\"Ping\">\n</invoke>";
const SLIP: &str = "Let me look.\n§\n<invok name=\"Ping\">\n</invoke>";

fn whole() -> TurnRequest {
    TurnRequest { delivery: Delivery::Whole, ..request() }
}

/// The fault that the model is told of, if it is.
fn fault_of(turn: &Turn) -> Option<Fault> {
    turn.interpreter.continuation().map(|continuation| match continuation.reason {
        Reason::Unreadable(fault) => fault,
        reason @ (Reason::Truncated | Reason::NoCall) => panic!("{reason:?}"),
    })
}

fn sent(turn: &Turn) -> String {
    format!("{:?}", turn.out)
}

#[test]
fn the_fault_is_explained_and_the_new_answer_takes_the_place_of_the_call() {
    for cutting in CUTTINGS {
        let mut turn = Turn::new(&request(), &Options::default());
        turn.reply(SLIP, StopReason::EndTurn, cutting);
        assert_eq!(fault_of(&turn), Some(Fault::BrokenTag));
        assert!(sent(&turn).contains("BlockStarted(Text)") && !sent(&turn).contains('<'), "{}", sent(&turn));
        let asked = turn.interpreter.continuation().unwrap().request(&turn.prepared.request);
        assert_eq!(asked.messages.len(), turn.prepared.request.messages.len() + 2);
        assert!(format!("{:?}", asked.messages.last()).contains("The first tag"));
        turn.reply(PING, StopReason::EndTurn, cutting);
        let (outcome, usage) = turn.outcome();
        assert_eq!(outcome.blocks, ["text Let me look.", "call Ping {}"]);
        assert_eq!((outcome.stop, usage), (StopReason::ToolUse, 20));
        assert_eq!(outcome.recoveries, [Recovery::Retried]);
    }
}

#[test]
fn the_second_failure_comes_out_as_it_is_written_but_for_the_trigger() {
    let mut turn = Turn::new(&request(), &Options::default());
    turn.reply(SLIP, StopReason::EndTurn, Cutting::Every(3));
    turn.reply("§\n<invok name=\"Ping\">", StopReason::EndTurn, Cutting::Every(3));
    assert_eq!(turn.interpreter.continuation(), None);
    let blocks = turn.outcome().0.blocks;
    assert_eq!(blocks, ["text Let me look.", "text <invok name=\"Ping\">"]);
}

#[test]
fn whoever_does_not_ask_again_gets_the_text() {
    for options in [Options::default(), Options { retries: 0, ..Options::default() }] {
        let mut turn = Turn::new(&request(), &options);
        turn.reply(SLIP, StopReason::EndTurn, Cutting::Every(3));
        assert_eq!(turn.interpreter.continuation().is_some(), options.retries > 0);
        assert_eq!(turn.outcome().0.blocks, [format!("text {}", SLIP.replace("§\n", ""))]);
    }
}

#[test]
fn a_call_that_was_sent_is_not_asked_for_again() {
    for text in [
        // A later call is sound, an earlier one was, and this one had begun.
        format!("§\n<invoke name=\"Ping\">rubbish</invoke>\n{PING}"),
        format!("{PING}\n<invok name=\"Ping\">"),
        "§\n<invoke name=\"Bash\">\n<parameter name=\"command\">ls</parameter>\nrubbish\n</invoke>"
            .to_owned(),
    ] {
        let mut turn = Turn::new(&request(), &Options::default());
        turn.reply(&text, StopReason::EndTurn, Cutting::Every(3));
        assert_eq!(turn.interpreter.continuation(), None, "{text}");
    }
}

#[test]
fn a_client_that_waits_for_the_whole_reply_never_sees_the_first_one() {
    let broken =
        "Hm.\n§\n<invoke name=\"Bash\">\n<parameter name=\"command\">ls</parameter>\nrubbish\n</invoke>";
    for cutting in CUTTINGS {
        let mut turn = Turn::new(&whole(), &Options::default());
        turn.reply(broken, StopReason::EndTurn, cutting);
        assert_eq!(fault_of(&turn), Some(Fault::Stray));
        turn.reply(PING, StopReason::EndTurn, cutting);
        let (outcome, usage) = turn.outcome();
        assert_eq!((outcome.blocks, usage), (vec!["call Ping {}".to_owned()], 20));
        assert_eq!((outcome.stop, outcome.truncation), (StopReason::ToolUse, None));
    }
    let mut turn = Turn::new(&whole(), &Options::default());
    turn.reply(broken, StopReason::EndTurn, Cutting::Whole);
    let (outcome, _) = turn.outcome();
    assert_eq!(outcome.blocks, ["text Hm.", "call Bash {\"command\":\"ls</parameter>\\nrubbish"]);
    assert_eq!(outcome.stop, StopReason::MaxTokens);
}

#[test]
fn strict_asks_for_the_exact_form() {
    let strict = Options { strictness: Strictness::Strict, ..Options::default() };
    for (text, fault) in [
        (PING.replace("Ping", "ping"), Fault::NotAsTaught),
        (PING.replace("</invoke>", ""), Fault::NotAsTaught),
    ] {
        let mut turn = Turn::new(&whole(), &strict);
        turn.reply(&text, StopReason::EndTurn, Cutting::Every(3));
        assert_eq!(fault_of(&turn), Some(fault), "{text}");
        turn.reply(PING, StopReason::EndTurn, Cutting::Every(3));
        assert_eq!(turn.outcome().0.blocks, ["call Ping {}"]);
    }
}

#[test]
fn a_tool_that_nobody_offered_is_a_fault_only_where_its_call_would_be_text() {
    let options = Options { unknown_tool: crate::UnknownTool::Text, ..Options::default() };
    let mut turn = Turn::new(&request(), &options);
    turn.reply(&PING.replace("Ping", "Fly"), StopReason::EndTurn, Cutting::Every(3));
    assert_eq!(fault_of(&turn), Some(Fault::WrongTool("Fly".to_owned())));
    let mut turn = Turn::new(&request(), &Options::default());
    turn.reply(&PING.replace("Ping", "Fly"), StopReason::EndTurn, Cutting::Every(3));
    assert_eq!(turn.outcome().0.blocks, ["call Fly {}"]);
}

#[test]
fn an_answer_that_grows_and_grows_goes_out() {
    let mut turn = Turn::new(&request(), &Options::default());
    let text = format!("{SLIP}\n{}", "word ".repeat(300_000));
    turn.reply(&text, StopReason::EndTurn, Cutting::Every(100_000));
    assert_eq!(turn.interpreter.continuation(), None);
    assert!(turn.outcome().0.blocks[0].contains("<invok"));
}

#[test]
fn the_operators_own_words_are_filled_in() {
    let retry_template = Some("WRONG: {error_details} IN {original_response}".to_owned());
    let mut turn = Turn::new(&request(), &Options { retry_template, ..Options::default() });
    turn.reply(SLIP, StopReason::EndTurn, Cutting::Whole);
    let asked = turn.interpreter.continuation().unwrap().request(&turn.prepared.request);
    let told = format!("{:?}", asked.messages.last());
    assert!(told.contains("WRONG: The first tag") && told.contains("IN Let me look."), "{told}");
}
