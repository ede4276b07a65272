//! The bus: bounds, resuming, slow subscribers and merging.

use std::sync::Arc;

use proptest::prelude::*;
use toolgate_model::observed::{
    BackendKind, Epoch, EventPosition, Observation, ObservedEvent, ObservedSession, SessionName,
    SessionState, Subject, TurnEnd, TurnEndKind, TurnStart,
};
use uuid::Uuid;

use super::*;

const EPOCH: Epoch = Epoch::new(1);

fn bus() -> Arc<Bus> {
    Bus::with_epoch(EPOCH)
}

fn subject(session: &str) -> Subject {
    Subject::turn(SessionName::new(session), Uuid::from_u128(1))
}

fn text(block: u32, text: &str) -> Observation {
    Observation::TextDelta { block, text: text.to_owned() }
}

fn input(call: &str, text: &str) -> Observation {
    Observation::InputDelta { call: call.into(), text: text.to_owned() }
}

fn complete(call: &str) -> Observation {
    Observation::InputComplete { call: call.into() }
}

fn publish(bus: &Bus, at: i64, observation: Observation) {
    bus.publish(UnixMillis(at), subject("s"), observation);
}

fn started() -> Observation {
    Observation::TurnStarted(TurnStart { model: "m".into(), dialect: "openai-chat".into() })
}

fn ended(outcome: TurnEndKind) -> Observation {
    Observation::TurnEnded(Box::new(TurnEnd {
        outcome,
        status: 200,
        duration_ms: 1,
        first_event_ms: None,
        stop_reason: None,
        usage: None,
        upstream: None,
        losses: Vec::new(),
        recoveries: Vec::new(),
        error: None,
    }))
}

fn described(title: &str) -> Observation {
    described_with_model(title, "m")
}

fn described_with_model(title: &str, model: &str) -> Observation {
    Observation::Session(ObservedSession {
        caller: "local".into(),
        title: Some(title.to_owned()),
        model: model.into(),
        backend: BackendKind::Native,
        state: SessionState::Starting,
    })
}

fn position(seq: u64) -> EventPosition {
    EventPosition { epoch: EPOCH, seq }
}

#[track_caller]
fn continued(bus: &Arc<Bus>, from: EventPosition) -> Subscription {
    joined(bus, Some(from))
}

#[track_caller]
fn live(bus: &Arc<Bus>) -> Subscription {
    joined(bus, None)
}

#[track_caller]
fn joined(bus: &Arc<Bus>, from: Option<EventPosition>) -> Subscription {
    match bus.subscribe(from).expect("a place") {
        Joined::Continued(subscription) => subscription,
        Joined::Reset(_) => panic!("a reset"),
    }
}

#[track_caller]
fn assert_reset(bus: &Arc<Bus>, from: EventPosition) {
    assert!(matches!(bus.subscribe(Some(from)), Ok(Joined::Reset(_))), "{from}");
}

/// The next events, up to the one with this number.
async fn read_to(subscription: &mut Subscription, seq: u64) -> Vec<Arc<ObservedEvent>> {
    let mut events = Vec::new();
    while events.last().is_none_or(|last: &Arc<ObservedEvent>| last.position.seq < seq) {
        events.extend(subscription.next().await.expect("more events"));
    }
    events
}

fn numbers(events: &[Arc<ObservedEvent>]) -> Vec<u64> {
    events.iter().map(|event| event.position.seq).collect()
}

fn texts(events: &[Arc<ObservedEvent>]) -> Vec<String> {
    let text_of = |event: &Arc<ObservedEvent>| {
        let (Observation::TextDelta { text, .. } | Observation::InputDelta { text, .. }) = &event.observation
        else {
            return None;
        };
        Some(text.clone())
    };
    events.iter().filter_map(text_of).collect()
}

#[tokio::test(start_paused = true)]
async fn deltas_of_one_block_within_the_window_become_one_event() {
    let bus = bus();
    let mut subscription = live(&bus);
    for (at, delta) in [
        (0, text(0, "a")),
        (29, text(0, "b")),
        (30, text(0, "c")),
        (31, text(1, "d")),
        (32, input("x", "e")),
        (32, input("x", "f")),
        (32, input("y", "g")),
        (33, complete("y")),
        (34, input("y", "h")),
        // The clock went back.
        (20, input("y", "i")),
    ] {
        publish(&bus, at, delta);
    }
    let events = read_to(&mut subscription, 8).await;
    assert_eq!(texts(&events), ["ab", "c", "d", "ef", "g", "h", "i"]);
    assert_eq!(numbers(&events), [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[tokio::test(start_paused = true)]
async fn deltas_of_different_turns_and_sub_agents_are_kept_apart() {
    let bus = bus();
    let mut subscription = live(&bus);
    let other_turn = Subject::turn(SessionName::new("s"), Uuid::from_u128(2));
    for subject in [subject("s"), subject("t"), other_turn, subject("s").below(Some("call"))] {
        bus.publish(UnixMillis(0), subject, text(0, "x"));
    }
    assert_eq!(texts(&read_to(&mut subscription, 4).await), ["x"; 4]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_was_read_does_not_change() {
    let bus = bus();
    publish(&bus, 0, text(0, "a"));
    let mut live = live(&bus);
    publish(&bus, 0, text(0, "b"));
    assert_eq!(texts(&read_to(&mut live, 2).await), ["b"], "subscribing seals what is there");
    publish(&bus, 0, text(0, "c"));
    assert_eq!(bus.snapshot().position.seq, 3);
    publish(&bus, 0, text(0, "d"));
    assert_eq!(texts(&read_to(&mut live, 4).await), ["c", "d"], "so does a snapshot");
    let mut resumed = continued(&bus, position(0));
    publish(&bus, 0, text(0, "e"));
    assert_eq!(texts(&read_to(&mut resumed, 5).await).concat(), "abcde");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_delta_is_passed_on_after_the_window() {
    let bus = bus();
    let mut subscription = live(&bus);
    publish(&bus, 0, text(0, "a"));
    let began = tokio::time::Instant::now();
    assert_eq!(texts(&read_to(&mut subscription, 1).await), ["a"]);
    assert!(began.elapsed() <= 2 * COALESCE_WINDOW);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_waits_is_woken_by_the_next_event() {
    let bus = bus();
    let mut subscription = live(&bus);
    let publisher = Arc::clone(&bus);
    let (events, ()) = tokio::join!(subscription.next(), async {
        tokio::task::yield_now().await;
        publish(&publisher, 0, complete("x"));
    });
    assert_eq!(numbers(&events.expect("events")), [1]);
}

#[tokio::test(start_paused = true)]
async fn resuming_from_any_position_in_the_ring_loses_nothing() {
    let bus = bus();
    let kept = u64::try_from(MAX_BUS_EVENTS).expect("a number");
    let last = kept + 100;
    for number in 0..last {
        publish(&bus, 0, complete(&number.to_string()));
    }
    for seq in [100, 101, last - 1] {
        let mut resumed = continued(&bus, position(seq));
        let events = numbers(&read_to(&mut resumed, last).await);
        assert_eq!(events, (seq + 1..=last).collect::<Vec<_>>());
    }
    assert_reset(&bus, position(99));
}

#[test]
fn a_position_outside_the_ring_is_a_reset() {
    let bus = bus();
    publish(&bus, 0, complete("x"));
    assert_reset(&bus, EventPosition { epoch: Epoch::new(2), seq: 1 });
    assert_reset(&bus, position(2));
    assert_reset(&bus, position(u64::MAX));
    continued(&bus, position(0));
    continued(&bus, position(1));
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_falls_behind_is_closed_and_counted() {
    let bus = bus();
    let mut stuck = live(&bus);
    for number in 0..=MAX_BUS_EVENTS {
        publish(&bus, 0, complete(&number.to_string()));
    }
    assert!(stuck.next().await.is_none());
    assert_eq!((bus.subscribers(), bus.dropped_subscribers()), (1, 1));
    drop(stuck);
    assert_eq!(bus.subscribers(), 0);
    assert!(!bus.is_watched());
}

#[test]
fn the_ring_is_bounded_in_bytes() {
    let bus = bus();
    for number in 0..200 {
        publish(&bus, number * 1000, text(0, &"x".repeat(MAX_DELTA_BYTES)));
    }
    let kept = bus.ring.lock().read_after(200, Tail::Complete);
    assert!(matches!(kept, Reading::Nothing), "{kept:?}");
    assert!(!bus.ring.lock().has_all_after(200 - 128));
    assert!(bus.ring.lock().has_all_after(200 - 120));
}

#[tokio::test(start_paused = true)]
async fn a_long_delta_becomes_several_events_with_the_same_bytes() {
    let bus = bus();
    let mut subscription = live(&bus);
    let long = format!("x{}", "é".repeat(MAX_DELTA_BYTES));
    publish(&bus, 0, text(0, &long));
    let events = read_to(&mut subscription, 3).await;
    assert_eq!(texts(&events).concat(), long);
    assert!(texts(&events).iter().all(|text| text.len() <= MAX_DELTA_BYTES));
}

#[test]
fn no_more_than_the_limit_may_watch() {
    let bus = bus();
    let watching: Vec<_> = (0..MAX_SUBSCRIBERS).map(|_| live(&bus)).collect();
    assert_eq!(bus.subscribe(None).err(), Some(TooManySubscribers));
    drop(watching);
    live(&bus);
}

#[test]
fn a_session_is_described_again_only_when_its_description_changes() {
    let bus = bus();
    for (title, model) in [("one", "m"), ("one", "m"), ("two", "m"), ("two", "n"), ("one", "n")] {
        publish(&bus, 0, described_with_model(title, model));
    }
    publish(&bus, 1, started());
    publish(&bus, 2, described_with_model("one", "n"));
    assert_eq!(bus.published(), 3);
    let rows = bus.snapshot().sessions;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].description.title.as_deref(), Some("one"), "the first title stays");
    assert_eq!(&*rows[0].description.model, "n");
}

#[test]
fn the_state_of_a_session_follows_its_events() {
    let bus = bus();
    let check = |observation: Observation, expect: SessionState| {
        publish(&bus, 0, observation);
        assert_eq!(bus.snapshot().sessions[0].description.state, expect);
    };
    let asked = |question: &str| Observation::Asked {
        question: question.into(),
        call: None,
        tool: "Bash".into(),
        deadline: None,
    };
    let decided = |question: &str| Observation::Decided {
        question: Some(question.into()),
        call: None,
        outcome: toolgate_model::observed::DecidedOutcome::Denied,
        by: "local".to_owned(),
    };
    check(described("t"), SessionState::Starting);
    check(started(), SessionState::Running);
    check(asked("1"), SessionState::Waiting);
    check(asked("2"), SessionState::Waiting);
    check(decided("1"), SessionState::Waiting);
    check(decided("2"), SessionState::Running);
    check(ended(TurnEndKind::Finished), SessionState::Idle);
    check(started(), SessionState::Running);
    check(ended(TurnEndKind::Failed), SessionState::Failed);
    check(asked("3"), SessionState::Waiting);
    check(decided("3"), SessionState::Idle);
    check(started(), SessionState::Running);
    check(ended(TurnEndKind::Interrupted), SessionState::Interrupted);
}

#[test]
fn a_snapshot_has_the_events_of_open_turns_only() {
    let bus = bus();
    for (session, is_over) in [("over", true), ("open", false)] {
        for observation in [described("t"), started(), text(0, "x")] {
            bus.publish(UnixMillis(0), subject(session), observation);
        }
        if is_over {
            bus.publish(UnixMillis(0), subject(session), ended(TurnEndKind::Finished));
        }
    }
    let snapshot = bus.snapshot();
    assert!(snapshot.open.iter().all(|event| event.subject.session.as_str() == "open"));
    assert_eq!(texts(&snapshot.open), ["x"]);
    assert_eq!(snapshot.sessions.len(), 2);
}

#[test]
fn old_sessions_are_forgotten_and_open_ones_are_not() {
    let bus = bus();
    for number in 0..3 * i64::try_from(MAX_SESSIONS).expect("a number") {
        bus.publish(UnixMillis(number), subject(&number.to_string()), described("t"));
        if number < 5 {
            bus.publish(UnixMillis(number), subject(&number.to_string()), started());
        }
    }
    let rows = bus.snapshot().sessions;
    assert!(rows.len() <= MAX_SESSIONS, "{}", rows.len());
    assert_eq!(rows.iter().filter(|row| !row.open_turns.is_empty()).count(), 5);
    assert_eq!(rows[0].session.as_str(), (3 * MAX_SESSIONS - 1).to_string());
}

proptest! {
    /// However a text is split, whenever its parts arrive and whenever somebody reads, its bytes are the same.
    #[test]
    fn merging_keeps_the_bytes(
        parts in prop::collection::vec((".{0,20}", 0..3_u32, 0..40_i64, 0..4_u8), 1..80),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let bus = bus();
            let mut early = live(&bus);
            let (mut at, mut read) = (0, Vec::new());
            let mut expected = [String::new(), String::new(), String::new()];
            for (part, block, pause, action) in parts {
                at += pause;
                expected[usize::try_from(block).unwrap()].push_str(&part);
                publish(&bus, at, text(block, &part));
                match action {
                    0 if bus.published() > u64::try_from(read.len()).unwrap() => {
                        read.extend(early.next().await.expect("events"));
                    }
                    1 => drop(bus.snapshot()),
                    2 => drop(live(&bus)),
                    _ => {}
                }
            }
            if bus.published() > 0 {
                let last = bus.published();
                if read.last().is_none_or(|event: &Arc<ObservedEvent>| event.position.seq < last) {
                    read.extend(read_to(&mut early, last).await);
                }
                let late = read_to(&mut continued(&bus, position(0)), last).await;
                assert_eq!(read, late);
            }
            for (block, expected) in (0..).zip(&expected) {
                let is_of_block = |event: &&Arc<ObservedEvent>| {
                    matches!(&event.observation, Observation::TextDelta { block: own, .. } if *own == block)
                };
                let joined: Vec<_> = read.iter().filter(is_of_block).cloned().collect();
                assert_eq!(&texts(&joined).concat(), expected);
            }
        });
    }
}
