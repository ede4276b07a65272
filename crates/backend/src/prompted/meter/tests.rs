//! Whose figures a turn gets.

use toolgate_model::{Delta, Finish};

use super::*;

const CLIENT: DialectId = DialectId { name: "openai-chat", provider: "openai" };

fn meter() -> Meter {
    Meter::new(CLIENT, Arc::new(TurnRequest::new("m", Vec::new())))
}

fn said(meter: &mut Meter, bytes: usize) {
    meter.hear(&mut TurnEvent::BlockDelta(Delta::Text("x".repeat(bytes))));
}

fn usage(input: u64, output: u64) -> Usage {
    Usage { input, output, ..Usage::default() }
}

/// The counts of the reply's end, and whether they are marked.
fn finish(meter: &mut Meter, counted: Option<Usage>) -> (Option<Usage>, bool) {
    let mut end = TurnEvent::Finished(Finish { usage: counted, ..Finish::default() });
    meter.hear(&mut end);
    let TurnEvent::Finished(Finish { usage, .. }) = &end else { panic!("an end stays one") };
    let counts = usage.clone();
    let mut shown = [TurnEvent::Usage(Usage::default())];
    meter.mark(&mut shown);
    let [TurnEvent::Usage(shown)] = &shown else { panic!("counts stay counts") };
    (counts, shown.extras.field(CLIENT, "estimated") == Some(&Value::Bool(true)))
}

#[test]
fn the_hosts_figures_are_kept_and_what_it_does_not_say_is_estimated_and_marked() {
    let mut told = meter();
    said(&mut told, 400);
    assert_eq!(finish(&mut told, Some(usage(7, 9))), (Some(usage(7, 9)), false));

    let mut told_before = meter();
    told_before.hear(&mut TurnEvent::Usage(usage(7, 9)));
    assert_eq!(finish(&mut told_before, None), (None, false));

    let mut silent = meter();
    said(&mut silent, 400);
    assert_eq!(finish(&mut silent, None), (Some(usage(0, 100)), true));
}

#[test]
fn a_reply_that_is_left_counts_at_least_what_was_heard() {
    let mut begun = meter();
    begun.hear(&mut TurnEvent::Usage(usage(50, 1)));
    said(&mut begun, 400);
    assert_eq!(begun.leave(), usage(50, 100));

    let mut told = meter();
    told.hear(&mut TurnEvent::Usage(usage(50, 130)));
    said(&mut told, 400);
    assert_eq!(told.leave(), usage(50, 130));
    assert!(!finish(&mut told, Some(usage(1, 1))).1);
}
