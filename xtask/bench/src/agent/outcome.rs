//! The result: lines for people and JSON for scripts.

use std::fmt;

use serde_json::{Value, json};

/// The most that a warm start may take, as a fraction of a cold one.
const WARM_GOAL: f64 = 0.3;

/// The most milliseconds that the sandbox may add to a start.
const SANDBOX_GOAL_MS: f64 = 20.0;

pub(super) struct Outcome {
    pub(super) starts: Starts,
    pub(super) resumed: Resumed,
    pub(super) paused: Paused,
    pub(super) crowd: Crowd,
}

/// Time to the first event of a new conversation, medians in milliseconds.
pub(super) struct Starts {
    /// With an opening that the gateway recognises.
    pub(super) warm: f64,
    /// With an opening that the gateway has not seen before.
    pub(super) warm_unseen: f64,
    pub(super) cold: f64,
    /// Cold, without a sandbox.
    pub(super) cold_unfenced: f64,
}

/// Median time to the first event: with a process that has the conversation, and with one that gets all of it.
pub(super) struct Resumed {
    pub(super) live_ms: f64,
    pub(super) from_nothing_ms: f64,
}

/// Sessions that wait for a client's result, with paused processes.
pub(super) struct Paused {
    pub(super) sessions: usize,
    /// A gateway before its first request.
    pub(super) empty_memory_mib: f64,
    /// Compared with a gateway that has served a few sessions.
    pub(super) added_memory_mib: f64,
    pub(super) added_store_mib: f64,
    pub(super) woken_ms: f64,
}

/// Concurrent conversations on few processes, none of which failed.
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
                "warm_ms": starts.warm,
                "cold_ms": starts.cold,
                "sandbox_ms": starts.cold - starts.cold_unfenced,
                "ratio": starts.warm / starts.cold,
                "goal": WARM_GOAL,
                "warm_unseen_ms": starts.warm_unseen,
                "ratio_unseen": starts.warm_unseen / starts.cold,
            },
            "resumed": {
                "live_ms": resumed.live_ms,
                "from_nothing_ms": resumed.from_nothing_ms,
                "ratio": resumed.from_nothing_ms / resumed.live_ms,
            },
            "paused": {
                "sessions": paused.sessions,
                "empty_memory_mib": paused.empty_memory_mib,
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

impl fmt::Display for Starts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { warm, warm_unseen, cold, cold_unfenced } = self;
        let sandbox = cold - cold_unfenced;
        let (ratio, ratio_unseen) = (warm / cold, warm_unseen / cold);
        write!(
            f,
            "first event, warm / cold: {warm:.0} ms / {cold:.0} ms = {ratio:.2} (goal {WARM_GOAL}), where \
             conversations begin alike; {warm_unseen:.0} ms / {cold:.0} ms = {ratio_unseen:.2} with \
             instructions not seen before; the sandbox adds {sandbox:+.0} ms to a cold start (goal {SANDBOX_GOAL_MS})"
        )
    }
}

impl fmt::Display for Resumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { live_ms, from_nothing_ms } = self;
        let ratio = from_nothing_ms / live_ms;
        write!(f, "first event, from nothing / live: {from_nothing_ms:.0} ms / {live_ms:.0} ms = {ratio:.2}")
    }
}

impl fmt::Display for Paused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sessions, empty_memory_mib, added_memory_mib, added_store_mib, woken_ms } = self;
        write!(
            f,
            "{sessions} paused sessions: {added_memory_mib:+.1} MiB in the gateway (empty: {empty_memory_mib:.1}), \
             {added_store_mib:+.1} MiB in the store; one woken in {woken_ms:.0} ms"
        )
    }
}

impl fmt::Display for Crowd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { conversations, requests, processes, seconds } = self;
        write!(
            f,
            "{conversations} conversations on {processes} processes: {requests} requests in {seconds:.1} s, no failure"
        )
    }
}
