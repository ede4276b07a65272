//! Every client API against every host dialect, whole and streamed, when the host misbehaves: each client is told in
//! its own format.

use std::time::Duration;

use crate::clients::{CLIENTS, Client, Frame};
use crate::gate::{Gate, backends, config};
use crate::hosts::{HOSTS, Host};
use toolgate_backend::config::BackendConfig;
use toolgate_testkit::{Script, ScriptedUpstream};

/// What the host was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Asked {
    Whole,
    Streamed,
}

/// What the client gets.
#[derive(Clone, Copy, Debug)]
enum Told {
    /// An answer with this status whose error says this.
    Answer(u16, &'static str),
    /// The text so far, then the API's own error event that says this.
    Event(&'static str),
}

use Asked::{Streamed, Whole};

/// Every client with every host.
fn pairs() -> impl Iterator<Item = (&'static Client, &'static Host, String)> {
    CLIENTS.iter().flat_map(|client| {
        HOSTS.iter().map(move |host| (client, host, format!("{} → {}", client.path, host.model)))
    })
}

/// What a host does, and what its clients are told.
struct Misfortune {
    asked: &'static [Asked],
    /// The answer; a stream waits at the named gate once its first words are out.
    script: fn(&Host, &str) -> Script,
    told: Told,
}

/// Runs one misfortune over the matrix.
async fn check(misfortune: Misfortune) {
    check_with(misfortune, |backends| backends).await;
}

async fn check_with(misfortune: Misfortune, change: fn(BackendConfig) -> BackendConfig) {
    let Misfortune { asked, script, told } = misfortune;
    let upstream = ScriptedUpstream::start().await;
    let mut backends = backends(&upstream);
    backends.upstreams.iter_mut().for_each(|host| host.retry.retries = 0);
    let gate = Gate::start(&config(), change(backends));
    for (client, host, place) in pairs() {
        for asked in asked {
            let place = format!("{place}, {asked:?}");
            upstream.on(script(host, &place));
            let mut answer = gate.post(client.path, &(client.ask)(host.model, *asked == Streamed)).await;
            match told {
                Told::Answer(status, message) => {
                    assert_eq!(answer.status(), status, "{place}");
                    let body = answer.json().await;
                    let said = (client.error)(&body);
                    assert!(said.is_some_and(|said| said.contains(message)), "{place}: {body}");
                }
                Told::Event(message) => {
                    assert_eq!(answer.status(), 200, "{place}");
                    let begun = answer.until("hi there").await;
                    upstream.open(&place);
                    ends_in_error(client, &(begun + &answer.text().await), message, &place);
                }
            }
        }
    }
    assert_eq!(gate.get("/healthz").await.status(), 200);
}

fn ends_in_error(client: &Client, stream: &str, message: &str, place: &str) {
    assert!(stream.contains("hi there"), "{place}: what came first is not lost: {stream}");
    assert!(!stream.contains("HALF"), "{place}: half a frame reaches nobody: {stream}");
    let frames = Frame::read(stream);
    assert!(!(client.is_complete)(&frames), "{place}: {stream}");
    let said = (client.stream_error)(&frames);
    assert!(said.is_some_and(|said| said.contains(message)), "{place}: {stream}");
}

/// Hosts that are given up soon.
fn impatient(backends: BackendConfig) -> BackendConfig {
    let mut backends = impatient_later(backends);
    for host in &mut backends.upstreams {
        host.timeouts.first_byte = Duration::from_millis(200);
    }
    backends
}

/// Hosts that are given up soon, but not before their first words.
fn impatient_later(mut backends: BackendConfig) -> BackendConfig {
    for host in &mut backends.upstreams {
        host.timeouts.idle = Duration::from_millis(50);
    }
    backends
}

fn json_head() -> Script {
    Script::status(200).header("content-type", "application/json")
}

#[tokio::test]
async fn the_host_cuts_the_connection() {
    // T17
    check(Misfortune {
        asked: &[Streamed],
        script: |host, gate| host.begun().gate(gate).cut(),
        told: Told::Event("incomplete"),
    })
    .await;
    check(Misfortune {
        asked: &[Whole],
        script: |host, _| json_head().bytes(&(host.whole)().to_string()[..40]).cut(),
        told: Told::Answer(502, "incomplete"),
    })
    .await;
    check(Misfortune {
        asked: &[Whole, Streamed],
        script: |_, _| json_head().cut(),
        told: Told::Answer(502, "upstream"),
    })
    .await;
}

#[tokio::test]
async fn the_host_ends_its_stream_too_early() {
    check(Misfortune {
        asked: &[Streamed],
        script: |host, gate| host.begun().gate(gate),
        told: Told::Event("complete"),
    })
    .await;
}

#[tokio::test]
async fn the_host_sends_half_a_frame() {
    check(Misfortune {
        asked: &[Streamed],
        script: |host, gate| host.begun().gate(gate).bytes(host.half_frame).cut(),
        told: Told::Event("incomplete"),
    })
    .await;
    check(Misfortune {
        asked: &[Streamed],
        script: |host, gate| host.begun().gate(gate).bytes(host.half_frame),
        told: Told::Event("incomplete"),
    })
    .await;
}

#[tokio::test]
async fn the_host_falls_silent() {
    let stalls = Misfortune {
        asked: &[Streamed],
        script: |host, _| host.begun().in_one_write().stall(),
        told: Told::Event("said nothing"),
    };
    check_with(stalls, impatient_later).await;
    let stalls = Misfortune {
        asked: &[Whole],
        script: |_, _| json_head().stall(),
        told: Told::Answer(504, "said nothing"),
    };
    check_with(stalls, impatient).await;
    let never_answers = Misfortune {
        asked: &[Whole, Streamed],
        script: |_, _| Script::status(200).gate_before_head("never"),
        told: Told::Answer(504, "said nothing"),
    };
    check_with(never_answers, impatient).await;
}

#[tokio::test]
async fn the_host_tells_an_error_after_200() {
    // T17
    check(Misfortune {
        asked: &[Streamed],
        script: |host, gate| (host.error_frame)(host.begun().gate(gate), "out of cards"),
        told: Told::Event("out of cards"),
    })
    .await;
    check(Misfortune {
        asked: &[Whole],
        script: |host, _| Script::json(200, (host.error)(429, "out of cards")),
        told: Told::Answer(429, "out of cards"),
    })
    .await;
}

#[tokio::test]
async fn the_host_answers_with_a_page() {
    check(Misfortune {
        asked: &[Whole, Streamed],
        script: |_, _| Script::html(200, "<html>Welcome</html>"),
        told: Told::Answer(502, "base_url"),
    })
    .await;
    check(Misfortune {
        asked: &[Whole, Streamed],
        script: |_, _| Script::html(503, "<html>Service Unavailable</html>"),
        told: Told::Answer(503, "Service Unavailable"),
    })
    .await;
}

#[tokio::test]
async fn the_host_is_out_of_order() {
    // T38
    check(Misfortune {
        asked: &[Whole, Streamed],
        script: |host, _| Script::json(500, (host.error)(500, "fell over")),
        told: Told::Answer(500, "fell over"),
    })
    .await;
    check(Misfortune {
        asked: &[Whole, Streamed],
        script: |host, _| Script::json(422, (host.error)(422, "odd")),
        told: Told::Answer(422, "odd"),
    })
    .await;
}

#[tokio::test]
async fn the_host_asks_to_wait() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    for (client, host, place) in pairs() {
        for stream in [false, true] {
            upstream.on(Script::json(429, (host.error)(429, "slow down")).header("retry-after", "60"));
            let answer = gate.post(client.path, &(client.ask)(host.model, stream)).await;
            assert_eq!((answer.status(), answer.header("retry-after")), (429, "60"), "{place}");
            assert_eq!((client.error)(&answer.json().await).as_deref(), Some("slow down"), "{place}");
        }
    }
    let asked = pairs().count() * 2;
    assert_eq!(upstream.requests().len(), asked, "a long wait is the client's");
}

#[tokio::test]
async fn the_gateway_ends_in_the_middle_of_a_stream() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let mut open = Vec::new();
    for (client, host, place) in pairs() {
        upstream.on(host.begun().stall());
        let mut answer = gate.post(client.path, &(client.ask)(host.model, true)).await;
        let begun = answer.until("hi there").await;
        open.push((client, answer, begun, place));
    }
    gate.running.stop().await.expect("it ends well");
    for (client, answer, begun, place) in open {
        ends_in_error(client, &(begun + &answer.text().await), "shutting down", &place);
    }
}

/// A gateway whose streams begin before their hosts answer.
fn eager(upstream: &ScriptedUpstream) -> Gate {
    let mut config = config();
    config.limits.commit_after = Duration::from_millis(10);
    Gate::start(&config, backends(upstream))
}

#[tokio::test]
async fn pings_come_before_the_first_byte_and_the_reply_after_them() {
    // T19
    let upstream = ScriptedUpstream::start().await;
    let gate = eager(&upstream);
    for (client, host, place) in pairs() {
        upstream.on((host.tail)((host.head)(Script::sse().gate_before_head(&place))));
        let mut answer = gate.post(client.path, &(client.ask)(host.model, true)).await;
        assert_eq!(answer.status(), 200, "{place}");
        let early = answer.until(client.ping).await;
        assert!(!early.contains("hi there"), "{place}: {early}");
        upstream.open(&place);
        let stream = early + &answer.text().await;
        assert!(stream.contains("hi there"), "{place}: {stream}");
        assert!((client.is_complete)(&Frame::read(&stream)), "{place}: {stream}");
    }
}

/// A host's stream, held at the gate after its first frame.
fn begun(host: &Host, gate: &str) -> Script {
    let all = (host.tail)(host.begun());
    let mut steps = all.steps().cloned();
    let first = Script::sse().step(steps.next().expect("a first frame")).gate(gate);
    steps.fold(first, Script::step)
}

#[tokio::test]
async fn a_stream_begins_with_the_hosts_first_frame() {
    let upstream = ScriptedUpstream::start().await;
    let mut config = config();
    // A sign of life would bring the beginning along.
    config.limits.ping_every = Duration::from_mins(10);
    let gate = Gate::start(&config, backends(&upstream));
    for (client, host, place) in pairs() {
        upstream.on(begun(host, &place));
        let mut answer = gate.post(client.path, &(client.ask)(host.model, true)).await;
        let early = answer.until("data: {").await;
        assert!(!early.contains("hi there"), "{place}: {early}");
        upstream.open(&place);
        let stream = early + &answer.text().await;
        assert!(stream.contains("hi there"), "{place}: {stream}");
        assert!((client.is_complete)(&Frame::read(&stream)), "{place}: {stream}");
    }
}

#[tokio::test]
async fn an_error_that_comes_with_the_first_words_still_has_its_status() {
    let upstream = ScriptedUpstream::start().await;
    let mut backends = backends(&upstream);
    backends.upstreams.iter_mut().for_each(|host| host.retry.retries = 0);
    let gate = Gate::start(&config(), backends);
    for (client, host, place) in pairs() {
        upstream.on((host.error_frame)(host.begun(), "out of cards").in_one_write());
        let answer = gate.post(client.path, &(client.ask)(host.model, true)).await;
        assert!(answer.status() >= 500, "{place}");
        assert_eq!((client.error)(&answer.json().await).as_deref(), Some("out of cards"), "{place}");
    }
}

#[tokio::test]
async fn an_error_after_the_first_ping_is_an_event() {
    let upstream = ScriptedUpstream::start().await;
    let gate = eager(&upstream);
    for (client, host, place) in pairs() {
        upstream.on(Script::json(400, (host.error)(400, "too long")).gate_before_head(&place));
        let mut answer = gate.post(client.path, &(client.ask)(host.model, true)).await;
        let early = answer.until(client.ping).await;
        upstream.open(&place);
        let stream = early + &answer.text().await;
        let said = (client.stream_error)(&Frame::read(&stream));
        assert_eq!(said.as_deref(), Some("too long"), "{place}: {stream}");
    }
}
