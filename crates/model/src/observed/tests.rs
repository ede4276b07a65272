//! The JSON of the events, which others read.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::approval::{Decision, Outcome, Question, QuestionId, Resolution, ToolUse};
use crate::message::{Message, Part, UserMessage};
use crate::{Extras, Losses, Usage};

fn subject() -> Subject {
    Subject::turn(SessionName::new("s-1"), Uuid::from_u128(7))
}

fn event(subject: Subject, observation: Observation) -> ObservedEvent {
    let position = EventPosition { epoch: Epoch::new(0xabc), seq: 3 };
    ObservedEvent { position, at: 1_700_000_000_000, subject, observation }
}

/// The event has this JSON, in both directions, beside the fields that all events have.
#[track_caller]
fn check(observation: Observation, expect: &Value) {
    let kind = observation.kind();
    let event = event(subject(), observation);
    let written = serde_json::to_value(&event).expect("JSON");
    let mut all = json!({
        "epoch": "0000000000000abc",
        "seq": 3,
        "at": 1_700_000_000_000_i64,
        "session": "s-1",
        "turn": "00000000-0000-0000-0000-000000000007",
        "type": kind,
    });
    let fields = all.as_object_mut().expect("an object");
    fields.extend(expect.as_object().expect("an object").clone());
    assert_eq!(written, all);
    assert_eq!(serde_json::from_value::<ObservedEvent>(written).expect("an event"), event);
}

#[test]
fn every_type_has_its_documented_json() {
    let call = || CallId::from("toolu_1");
    check(
        Observation::Session(ObservedSession {
            caller: "local".into(),
            title: Some("Fix the build".to_owned()),
            model: "agent".into(),
            backend: BackendKind::Agent,
            state: SessionState::Starting,
        }),
        &json!({ "caller": "local", "title": "Fix the build", "model": "agent", "backend": "agent", "state": "starting" }),
    );
    check(
        Observation::TurnStarted(TurnStart { model: "agent".into(), dialect: "anthropic-messages".into() }),
        &json!({ "model": "agent", "dialect": "anthropic-messages" }),
    );
    check(Observation::TextDelta { block: 0, text: "Hi".to_owned() }, &json!({ "block": 0, "text": "Hi" }));
    check(
        Observation::ReasoningDelta { block: 1, text: "Hm".to_owned() },
        &json!({ "block": 1, "text": "Hm" }),
    );
    check(
        Observation::CallStarted { call: call(), tool: "Bash".into(), runs_in: RunsIn::Agent },
        &json!({ "call": "toolu_1", "tool": "Bash", "runs_in": "agent" }),
    );
    check(
        Observation::InputDelta { call: call(), text: "{\"co".to_owned() },
        &json!({ "call": "toolu_1", "text": "{\"co" }),
    );
    check(Observation::InputComplete { call: call() }, &json!({ "call": "toolu_1" }));
    check(
        Observation::Asked {
            question: "q1".into(),
            call: Some(call()),
            tool: "Bash".into(),
            deadline: Some(5),
        },
        &json!({ "question": "q1", "call": "toolu_1", "tool": "Bash", "deadline": 5 }),
    );
    check(
        Observation::Decided {
            question: None,
            call: Some(call()),
            outcome: DecidedOutcome::TimedOut,
            by: "timeout".to_owned(),
        },
        &json!({ "call": "toolu_1", "outcome": "timed_out", "by": "timeout" }),
    );
    check(
        Observation::Running { call: call(), elapsed_ms: Some(2000), note: None },
        &json!({ "call": "toolu_1", "elapsed_ms": 2000 }),
    );
    check(
        Observation::result(call(), ToolOutcome::Error, "no".to_owned()),
        &json!({ "call": "toolu_1", "outcome": "error", "text": "no", "bytes": 2 }),
    );
    check(
        Observation::Usage(UsageCounts::from(&Usage { input: 1, output: 2, ..Usage::default() })),
        &json!({ "input": 1, "cache_read": 0, "cache_write": 0, "output": 2 }),
    );
    let mut losses = Losses::default();
    losses.add("top_k", "the host does not support it");
    check(
        Observation::Losses { losses: ObservedLoss::list(&losses) },
        &json!({ "losses": [{ "place": "top_k", "reason": "the host does not support it" }] }),
    );
}

#[test]
fn the_end_of_a_turn_leaves_out_what_is_unknown() {
    let end = TurnEnd {
        outcome: TurnEndKind::Interrupted,
        status: 499,
        duration_ms: 12,
        first_event_ms: None,
        stop_reason: None,
        usage: None,
        upstream: None,
        losses: Vec::new(),
        recoveries: Vec::new(),
        error: Some("the client went away".to_owned()),
    };
    check(
        Observation::TurnEnded(Box::new(end)),
        &json!({ "outcome": "interrupted", "status": 499, "duration_ms": 12, "error": "the client went away" }),
    );
}

#[test]
fn a_step_of_a_sub_agent_names_the_call_that_started_it() {
    let step =
        event(subject().below(Some("toolu_9")), Observation::TextDelta { block: 0, text: "x".to_owned() });
    let written = serde_json::to_value(&step).expect("JSON");
    assert_eq!(written["parent"], "toolu_9");
    assert_eq!(serde_json::from_value::<ObservedEvent>(written).expect("an event"), step);
}

#[test]
fn only_the_id_of_an_event_is_a_position() {
    let position = EventPosition { epoch: Epoch::new(u64::MAX), seq: 42 };
    assert_eq!(position.to_string().parse(), Ok(position));
    for text in [
        "",
        "42",
        "ffff:42",
        ":",
        "0000000000000abc:",
        "0000000000000abc:-1",
        "+00000000000abc:1",
        "0000000000000abc:1:2",
    ] {
        assert_eq!(text.parse::<EventPosition>(), Err(InvalidPosition), "{text}");
    }
}

#[test]
fn a_long_result_is_cut_between_characters() {
    let text = "é".repeat(MAX_RESULT_BYTES);
    let Observation::Result { text, bytes, .. } =
        Observation::result(CallId::from("c"), ToolOutcome::Success, format!("x{text}"))
    else {
        panic!("a result");
    };
    assert_eq!((text.len(), bytes), (MAX_RESULT_BYTES - 1, 2 * MAX_RESULT_BYTES + 1));
}

#[test]
fn a_title_is_the_first_visible_line() {
    let check =
        |opening: &str, expect: Option<&str>| assert_eq!(title(opening).as_deref(), expect, "{opening:?}");
    check("Fix the build\nplease", Some("Fix the build"));
    check("\n \u{7}\n\t Fix\u{1b}[31m it \r\n", Some("Fix[31m it"));
    check("", None);
    check("\u{0}\n\u{1}", None);
    let long = "ü".repeat(200);
    check(&long, Some(&"ü".repeat(MAX_TITLE_CHARS)));
}

#[test]
fn a_session_is_named_after_its_caller_and_the_users_first_words() {
    let name = |caller: &str, opening: &str| SessionName::from_opening(caller, opening);
    assert_eq!(name("a", "hello"), name("a", "hello"));
    assert_ne!(name("a", "hello"), name("b", "hello"));
    assert_ne!(name("a", "hello"), name("a", "hello!"));
    assert_ne!(name("a", "bc"), name("ab", "c"));
    let long = "é".repeat(MAX_OPENING_BYTES);
    assert_eq!(name("a", &long), name("a", &format!("{long}!")));
    assert_eq!(name("a", "hello").as_str().len(), 22);
}

#[test]
fn the_opening_is_the_last_text_of_the_first_user_message() {
    let user = |parts: &[&str]| {
        let content = parts.iter().map(|part| Part::text(*part)).collect();
        Message::User(UserMessage { content, extras: Extras::NONE })
    };
    assert_eq!(opening_text(&[user(&["<context>", "Fix it", " "]), user(&["later"])]), "Fix it");
    assert_eq!(opening_text(&[]), "");
    let shared: Arc<str> = "x".into();
    assert_eq!(SessionName::new(shared).as_str(), "x");
}

#[test]
fn a_question_and_its_resolution_become_events_about_their_call() {
    let tool_use = ToolUse {
        session: "s".to_owned(),
        turn: Some(Uuid::from_u128(7).to_string()),
        call: Some("toolu_1".to_owned()),
        tool: "Bash".to_owned(),
        ..ToolUse::default()
    };
    assert_eq!(Subject::of_tool_use(&tool_use), Subject::turn(SessionName::new("s"), Uuid::from_u128(7)));
    let elsewhere = ToolUse { turn: None, ..tool_use.clone() };
    assert_eq!(Subject::of_tool_use(&elsewhere), Subject::session(SessionName::new("s")));
    let question = Question { id: "q".into(), tool_use, why: String::new(), asked_at: 1, deadline: Some(9) };
    let (id, call) = (QuestionId::from("q"), Some(CallId::from("toolu_1")));
    let asked = Observation::Asked {
        question: id.clone(),
        call: call.clone(),
        tool: "Bash".into(),
        deadline: Some(9),
    };
    assert_eq!(Observation::asked(&question), asked);
    for (outcome, expect) in [
        (Outcome::Decided(Decision::ALLOW), DecidedOutcome::Allowed),
        (Outcome::Decided(Decision::deny("no")), DecidedOutcome::Denied),
        (Outcome::Decided(Decision::Answer { text: "42".to_owned() }), DecidedOutcome::Answered),
        (Outcome::TimedOut, DecidedOutcome::TimedOut),
        (Outcome::Withdrawn, DecidedOutcome::Withdrawn),
    ] {
        let resolution = Resolution { outcome, by: "api".to_owned(), at: 2 };
        let decided = Observation::decided(Some(&id), &question.tool_use, &resolution);
        let expect = Observation::Decided {
            question: Some(id.clone()),
            call: call.clone(),
            outcome: expect,
            by: "api".to_owned(),
        };
        assert_eq!(decided, expect);
    }
}
