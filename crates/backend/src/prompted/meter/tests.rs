//! Reported and estimated usage.

use toolgate_model::{Delta, Finish};

use super::*;

const CLIENT: DialectId = DialectId { name: "openai-chat", provider: "openai" };

fn meter() -> UsageMeter {
    UsageMeter::new(CLIENT, Delivery::Whole, Arc::new(TurnRequest::new("m", Vec::new())))
}

fn observe_text(meter: &mut UsageMeter, bytes: usize) {
    meter.observe(&mut TurnEvent::BlockDelta(Delta::Text("x".repeat(bytes))));
}

fn usage(input: u64, output: u64) -> Usage {
    Usage { input, output, ..Usage::default() }
}

/// The usage in the last event of the reply, and whether it is marked as an estimate.
fn finish(meter: &mut UsageMeter, reported: Option<Usage>) -> (Option<Usage>, bool) {
    let mut end = TurnEvent::Finished(Finish { usage: reported, ..Finish::default() });
    meter.observe(&mut end);
    let TurnEvent::Finished(Finish { usage, .. }) = &end else { panic!("not a finish: {end:?}") };
    let usage = usage.clone();
    let mut events = [TurnEvent::Usage(Usage::default())];
    meter.mark_estimates(&mut events);
    let [TurnEvent::Usage(marked)] = &events else { panic!("not usage: {events:?}") };
    (usage, marked.extras.field(CLIENT, "estimated") == Some(&Value::Bool(true)))
}

#[test]
fn reported_usage_is_kept_and_missing_usage_is_estimated_and_marked() {
    let mut reported_at_the_end = meter();
    observe_text(&mut reported_at_the_end, 400);
    assert_eq!(finish(&mut reported_at_the_end, Some(usage(7, 9))), (Some(usage(7, 9)), false));

    let mut reported_earlier = meter();
    reported_earlier.observe(&mut TurnEvent::Usage(usage(7, 9)));
    assert_eq!(finish(&mut reported_earlier, None), (None, false));

    let mut unreported = meter();
    observe_text(&mut unreported, 400);
    assert_eq!(finish(&mut unreported, None), (Some(usage(0, 100)), true));
}

#[test]
fn an_abandoned_reply_counts_at_least_what_arrived() {
    let mut input_only = meter();
    input_only.observe(&mut TurnEvent::Usage(usage(50, 1)));
    observe_text(&mut input_only, 400);
    assert_eq!(input_only.abandon(), usage(50, 100));

    let mut reported = meter();
    reported.observe(&mut TurnEvent::Usage(usage(50, 130)));
    observe_text(&mut reported, 400);
    assert_eq!(reported.abandon(), usage(50, 130));
    assert!(!finish(&mut reported, Some(usage(1, 1))).1);
}

#[test]
fn a_chat_stream_shows_usage_only_on_request() {
    let usage = Some(usage(7, 9));
    let finished = |usage: Option<Usage>| TurnEvent::Finished(Finish { usage, ..Finish::default() });
    let shown = vec![finished(usage.clone())];
    let hidden = vec![TurnEvent::Usage(Usage { input: 7, output: 9, ..Usage::default() }), finished(None)];
    let other = DialectId { name: "anthropic-messages", provider: "anthropic" };
    for (dialect, delivery, expected) in [
        (CLIENT, Delivery::Whole, &shown),
        (CLIENT, Delivery::Stream(UsageReport::Included), &shown),
        (CLIENT, Delivery::Stream(UsageReport::Default), &hidden),
        (CLIENT, Delivery::Stream(UsageReport::Omitted), &hidden),
        (other, Delivery::Stream(UsageReport::Default), &shown),
    ] {
        let meter = UsageMeter::new(dialect, delivery, Arc::new(TurnRequest::new("m", Vec::new())));
        let mut events = shown.clone();
        meter.hide_usage(&mut events);
        assert_eq!(&events, expected, "{dialect:?} {delivery:?}");
    }
}
