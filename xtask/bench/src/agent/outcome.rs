//! The outcome: lines for people and JSON for scripts.

use std::fmt;

use serde_json::{Value, json};

/// A warm start may take this part of a cold one.
const WARM_GOAL: f64 = 0.3;

pub(super) struct Outcome {
    pub(super) starts: Starts,
    pub(super) resumed: Resumed,
    pub(super) paused: Paused,
    pub(super) crowd: Crowd,
}

/// Time to the first event of a new conversation, medians.
pub(super) struct Starts {
    pub(super) warm_ms: f64,
    pub(super) cold_ms: f64,
}

/// Time to the first event, medians: a process that knows the conversation, and one that is told all of it.
pub(super) struct Resumed {
    pub(super) live_ms: f64,
    pub(super) from_nothing_ms: f64,
}

/// Sessions that wait for a client's result, their processes asleep.
pub(super) struct Paused {
    pub(super) sessions: usize,
    pub(super) added_memory_mib: f64,
    pub(super) added_store_mib: f64,
    pub(super) woken_ms: f64,
}

/// Conversations at once on few processes, none of which failed.
pub(super) struct Crowd {
    pub(super) conversations: usize,
    pub(super) requests: usize,
    pub(super) processes: u32,
    pub(super) seconds: f64,
}

impl Outcome {
    pub(super) fn json(&self) -> Value {
        let Self { starts, resumed, paused, crowd } = self;
        json!({
            "first_event": {
                "warm_ms": starts.warm_ms,
                "cold_ms": starts.cold_ms,
                "ratio": starts.warm_ms / starts.cold_ms,
                "goal": WARM_GOAL,
            },
            "resumed": {
                "live_ms": resumed.live_ms,
                "from_nothing_ms": resumed.from_nothing_ms,
                "ratio": resumed.from_nothing_ms / resumed.live_ms,
            },
            "paused": {
                "sessions": paused.sessions,
                "added_memory_mib": paused.added_memory_mib,
                "added_store_mib": paused.added_store_mib,
                "woken_ms": paused.woken_ms,
            },
            "crowd": {
                "conversations": crowd.conversations,
                "requests": crowd.requests,
                "processes": crowd.processes,
                "seconds": crowd.seconds,
                "failures": 0,
            },
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { starts, resumed, paused, crowd } = self;
        writeln!(
            f,
            "first event, warm / cold            {:.0} ms / {:.0} ms = {:.2} (goal {WARM_GOAL})",
            starts.warm_ms,
            starts.cold_ms,
            starts.warm_ms / starts.cold_ms
        )?;
        writeln!(
            f,
            "first event, from nothing / live    {:.0} ms / {:.0} ms = {:.2}",
            resumed.from_nothing_ms,
            resumed.live_ms,
            resumed.from_nothing_ms / resumed.live_ms
        )?;
        writeln!(
            f,
            "{} paused sessions                 {:+.1} MiB in the gateway, {:+.1} MiB in the store; one woken in {:.0} ms",
            paused.sessions, paused.added_memory_mib, paused.added_store_mib, paused.woken_ms
        )?;
        writeln!(
            f,
            "{} conversations on {} processes     {} requests in {:.1} s, no failure",
            crowd.conversations, crowd.processes, crowd.requests, crowd.seconds
        )
    }
}
