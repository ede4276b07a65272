//! Any text a model may write: no panic, a well-formed reply, little held back, the same result for every
//! split, no call without the trigger, no finished call that is incomplete.
//! The first three bytes select the options, the tool choice and the chunk size. The rest is text, in which
//! byte 1 stands for the trigger and byte 2 for the end of a reply.

#![no_main]

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use libfuzzer_sys::fuzz_target;
use toolgate_model::{CallKind, Choice, Delivery, Parallel, StopReason, UsageReport};
use toolgate_prompted::{
    AfterCalls, Markerless, PromptedOptions, PreparedRequest, Repair, Secret, Strictness, Switch, UnknownTool, prepare,
};
use toolgate_prompted_fuzz::{calls, is_whole, read, request};

fuzz_target!(|input: &[u8]| {
    let [choice, demand, size, text @ ..] = input else { return };
    let demand = demand & 31;
    let options = options(*choice);
    let stop = if demand & 8 != 0 { StopReason::MaxTokens } else { StopReason::EndTurn };
    let prepared = prepared(*choice, demand & 23);
    let trigger = prepared.plan.trigger().unwrap_or("<<CALL_none>>").to_owned();
    let text = String::from_utf8_lossy(text).replace('\u{1}', &trigger);
    let replies: Vec<&str> = text.split('\u{2}').collect();

    let whole = read(&prepared, &replies, &stop, usize::MAX);
    assert_eq!(read(&prepared, &replies, &stop, usize::from(*size)), whole, "in pieces of {size}");
    assert_eq!(read(&prepared, &replies, &stop, 1), whole, "in single characters");

    let no_tools = prepared.plan.trigger().is_none();
    let no_trigger = !text.contains(&trigger) && options.markerless == Markerless::Off;
    assert!(!(no_tools || no_trigger) || calls(&whole).next().is_none(), "a call without a trigger: {whole:?}");
    let unfinished = calls(&whole).filter(|call| !is_whole(call)).count();
    assert!(unfinished <= usize::from(whole.truncation.is_some()), "an incomplete call: {whole:?}");
    assert!(unfinished == 0 || whole.stop == StopReason::MaxTokens, "a truncation that is not reported: {whole:?}");
    if demand & 3 == 2 {
        assert!(calls(&whole).all(|call| call.name.as_str() == "Write"), "a tool that was not named: {whole:?}");
    }
    if demand & 4 != 0 {
        assert!(calls(&whole).count() <= 1, "more than one call: {whole:?}");
    }
});

/// PreparedRequest once for each choice, because only parsing is tested here.
fn prepared(choice: u8, demand: u8) -> Arc<PreparedRequest> {
    static MADE: LazyLock<Mutex<HashMap<(u8, u8), Arc<PreparedRequest>>>> = LazyLock::new(Mutex::default);
    let mut made = MADE.lock().expect("one thread");
    let new = || {
        let mut request = request();
        request.tool_choice.choice = match demand & 3 {
            0 => None,
            1 => Some(Choice::Any),
            2 => Some(Choice::Named("Write".into(), CallKind::Function)),
            _ => Some(Choice::None),
        };
        if demand & 16 != 0 {
            request.delivery = Delivery::Stream(UsageReport::Default);
        }
        request.tool_choice.parallel = (demand & 4 != 0).then_some(Parallel::Forbidden);
        Arc::new(prepare(&request, &options(choice), &Secret([7; 32])).value)
    };
    Arc::clone(made.entry((choice, demand)).or_insert_with(new))
}

fn options(choice: u8) -> PromptedOptions {
    let bit = |at: u8| choice & (1 << at) != 0;
    PromptedOptions {
        strictness: if bit(0) { Strictness::Strict } else { Strictness::Lenient },
        after_calls: if bit(1) { AfterCalls::Text } else { AfterCalls::Stop },
        markerless: if bit(2) { Markerless::Guarded } else { Markerless::Off },
        starts_in_reasoning: if bit(3) { Switch::On } else { Switch::Off },
        repair: if bit(4) { Repair::Off } else { Repair::Append },
        unknown_tool: match choice >> 5 & 3 {
            0 | 3 => UnknownTool::Fix,
            1 => UnknownTool::Pass,
            _ => UnknownTool::Text,
        },
        calls_in_fence: if bit(7) { Switch::Off } else { Switch::On },
        ..PromptedOptions::default()
    }
}
