//! Streams with more than text: the host's own reasoning, usage, and when the upstream is dropped.

use super::*;
use toolgate_model::{Extras, Grammar, Usage};

const LS: &str = "<invoke name=\"Bash\">\n<parameter name=\"command\">ls</parameter>\n</invoke>";

fn text(text: &str) -> TurnEvent {
    TurnEvent::BlockDelta(Delta::Text(text.to_owned()))
}

fn finished(stop: StopReason) -> TurnEvent {
    TurnEvent::Finished(Finish { stop, ..Finish::default() })
}

#[test]
fn reasoning_of_the_host_is_forwarded_and_may_contain_the_call() {
    // P3
    let prepared = prepared(&request(), &PromptedOptions::default());
    let thought = format!("I look.\n{}\n{LS}", prepared.plan.trigger().unwrap());
    let outcome = interpret(
        &prepared,
        vec![
            TurnEvent::Started(ReplyHead::default()),
            TurnEvent::BlockStarted(BlockStart::Reasoning(Extras::NONE)),
            text(&thought),
            TurnEvent::BlockFinished(BlockEnd::default()),
            finished(StopReason::EndTurn),
        ],
    );
    assert_eq!(outcome.blocks, [format!("think {thought}"), "call Bash {\"command\":\"ls\"}".to_owned()]);
    assert_eq!(outcome.recoveries, [Recovery::CallInReasoning]);
}

#[test]
fn blocks_of_the_host_are_deferred_until_the_call_ends() {
    let prepared = prepared(&request(), &PromptedOptions::default());
    let (before, after) = LS.split_at(60);
    let outcome = interpret(
        &prepared,
        vec![
            TurnEvent::Started(ReplyHead::default()),
            TurnEvent::BlockStarted(BlockStart::Text),
            text(&format!("{}\n{before}", prepared.plan.trigger().unwrap())),
            TurnEvent::BlockFinished(BlockEnd::default()),
            TurnEvent::BlockStarted(BlockStart::Reasoning(Extras::NONE)),
            text("hm"),
            TurnEvent::BlockFinished(BlockEnd::default()),
            TurnEvent::BlockStarted(BlockStart::Text),
            text(after),
            TurnEvent::BlockFinished(BlockEnd::default()),
            finished(StopReason::EndTurn),
        ],
    );
    assert_eq!(outcome.blocks, ["call Bash {\"command\":\"ls\"}", "think hm"]);
}

#[test]
fn the_upstream_is_dropped_once_the_calls_are_complete() {
    // P27
    let prepared = prepared(&request(), &PromptedOptions::default());
    let mut interpreter = Interpreter::new(prepared.plan.clone());
    let mut out = Vec::new();
    let mut feed = |interpreter: &mut Interpreter, event: TurnEvent| interpreter.event(event, &mut out);
    feed(&mut interpreter, TurnEvent::Started(ReplyHead::default()));
    feed(&mut interpreter, TurnEvent::BlockStarted(BlockStart::Text));
    feed(&mut interpreter, text(&format!("{}\n{LS}\n", prepared.plan.trigger().unwrap())));
    assert!(!interpreter.wants_stop());
    feed(&mut interpreter, TurnEvent::Usage(Usage { output: 3, ..Usage::default() }));
    feed(&mut interpreter, text("\nThe files are"));
    assert!(interpreter.wants_stop());
    interpreter.end(&mut out);
    let mut grammar = Grammar::new();
    for event in &out {
        grammar.accept(event).unwrap();
    }
    grammar.end().unwrap();
    let reply = fold(out).unwrap();
    assert_eq!(reply.finish.stop, StopReason::ToolUse);
    assert_eq!(reply.finish.usage.unwrap().output, 3);
    assert_eq!(interpreter.recoveries().collect::<Vec<_>>(), [Recovery::TailDropped]);
}

#[test]
fn prose_is_forwarded_at_once() {
    let prepared = prepared(&request(), &PromptedOptions::default());
    let mut interpreter = Interpreter::new(prepared.plan);
    let mut out = Vec::new();
    interpreter.event(TurnEvent::Started(ReplyHead::default()), &mut out);
    interpreter.event(TurnEvent::BlockStarted(BlockStart::Text), &mut out);
    for (piece, shown) in [("Hel", "Hel"), ("lo\n", "lo"), ("<<", ""), ("x", "\n<<x")] {
        out.clear();
        interpreter.event(text(piece), &mut out);
        let got = out.iter().filter_map(|event| {
            if let TurnEvent::BlockDelta(Delta::Text(text)) = event { Some(text.as_str()) } else { None }
        });
        assert_eq!(got.collect::<String>(), shown, "{piece}");
    }
}

#[test]
fn ids_differ_within_a_reply_and_between_turns() {
    let ids = |request: &TurnRequest| {
        let prepared = prepared(request, &PromptedOptions::default());
        let text = format!("{}\n{LS}\n{LS}", prepared.plan.trigger().unwrap());
        let mut interpreter = Interpreter::new(prepared.plan.clone());
        let mut out = Vec::new();
        for event in text_events(&text, Split::Whole, StopReason::EndTurn) {
            interpreter.event(event, &mut out);
        }
        let started = out.into_iter().filter_map(|event| {
            if let TurnEvent::BlockStarted(BlockStart::ToolCall { id, .. }) = event { Some(id) } else { None }
        });
        started.collect::<Vec<_>>()
    };
    let mut all = ids(&request());
    let mut later = request();
    later.messages.push(user("more"));
    all.extend(ids(&later));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 4);
}
