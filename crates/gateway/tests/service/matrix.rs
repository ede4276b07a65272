//! Every client API against every host dialect, whole and streamed, when the host misbehaves: each client gets the error
//! in its own format.

use std::time::Duration;

use crate::clients::{CLIENTS, Client, Frame};
use crate::gate::{Gate, backends, config};
use crate::hosts::{HOSTS, Host};
use toolgate_backend::config::BackendConfig;
use toolgate_testkit::{Script, ScriptedUpstream};

/// How the reply is requested.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Delivery {
    Whole,
    Streamed,
}

/// The error that the client gets, and a part of its message.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// A response with this status.
    Response(u16, &'static str),
    /// The text so far, then the API's own error event.
    Event(&'static str),
}

use Delivery::{Streamed, Whole};

/// Every client with every host.
fn pairs() -> impl Iterator<Item = (&'static Client, &'static Host, String)> {
    CLIENTS.iter().flat_map(|client| {
        HOSTS.iter().map(move |host| (client, host, format!("{} → {}", client.path, host.model)))
    })
}

/// What a host does, and what its clients get.
struct HostFailure {
    deliveries: &'static [Delivery],
    /// The response. A stream waits at the named gate after its first words.
    script: fn(&Host, &str) -> Script,
    expected: Expected,
}

/// Runs one failure over the matrix.
async fn check(failure: HostFailure) {
    check_with(failure, |backends| backends).await;
}

async fn check_with(failure: HostFailure, change: fn(BackendConfig) -> BackendConfig) {
    let HostFailure { deliveries, script, expected } = failure;
    let upstream = ScriptedUpstream::start().await;
    let mut backends = backends(&upstream);
    backends.upstreams.iter_mut().for_each(|host| host.retry.retries = 0);
    let gate = Gate::start(&config(), change(backends));
    for (client, host, case) in pairs() {
        for delivery in deliveries {
            let case = format!("{case}, {delivery:?}");
            upstream.on(script(host, &case));
            let mut answer = gate.post(client.path, &(client.ask)(host.model, *delivery == Streamed)).await;
            match expected {
                Expected::Response(status, message) => {
                    assert_eq!(answer.status(), status, "{case}");
                    let body = answer.json().await;
                    let sent = (client.error)(&body);
                    assert!(sent.is_some_and(|sent| sent.contains(message)), "{case}: {body}");
                }
                Expected::Event(message) => {
                    assert_eq!(answer.status(), 200, "{case}");
                    let begun = answer.until("hi there").await;
                    upstream.open(&case);
                    ends_in_error(client, &(begun + &answer.text().await), message, &case);
                }
            }
        }
    }
    assert_eq!(gate.get("/healthz").await.status(), 200);
}

fn ends_in_error(client: &Client, stream: &str, message: &str, case: &str) {
    assert!(stream.contains("hi there"), "{case}: the first events are not lost: {stream}");
    assert!(!stream.contains("HALF"), "{case}: half a frame is not sent: {stream}");
    let frames = Frame::read(stream);
    assert!(!(client.is_complete)(&frames), "{case}: {stream}");
    let sent = (client.stream_error)(&frames);
    assert!(sent.is_some_and(|sent| sent.contains(message)), "{case}: {stream}");
}

/// Short deadlines for hosts.
fn impatient(backends: BackendConfig) -> BackendConfig {
    let mut backends = impatient_later(backends);
    for host in &mut backends.upstreams {
        host.timeouts.first_byte = Duration::from_millis(200);
    }
    backends
}

/// A short idle deadline, and the usual one for the first byte.
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
    check(HostFailure {
        deliveries: &[Streamed],
        script: |host, gate| host.begun().gate(gate).cut(),
        expected: Expected::Event("incomplete"),
    })
    .await;
    check(HostFailure {
        deliveries: &[Whole],
        script: |host, _| json_head().bytes(&(host.whole)().to_string()[..40]).cut(),
        expected: Expected::Response(502, "incomplete"),
    })
    .await;
    check(HostFailure {
        deliveries: &[Whole, Streamed],
        script: |_, _| json_head().cut(),
        expected: Expected::Response(502, "upstream"),
    })
    .await;
}

#[tokio::test]
async fn the_host_ends_its_stream_too_early() {
    check(HostFailure {
        deliveries: &[Streamed],
        script: |host, gate| host.begun().gate(gate),
        expected: Expected::Event("complete"),
    })
    .await;
}

#[tokio::test]
async fn the_host_sends_half_a_frame() {
    check(HostFailure {
        deliveries: &[Streamed],
        script: |host, gate| host.begun().gate(gate).bytes(host.half_frame).cut(),
        expected: Expected::Event("incomplete"),
    })
    .await;
    check(HostFailure {
        deliveries: &[Streamed],
        script: |host, gate| host.begun().gate(gate).bytes(host.half_frame),
        expected: Expected::Event("incomplete"),
    })
    .await;
}

#[tokio::test]
async fn the_host_stalls() {
    let stalls = HostFailure {
        deliveries: &[Streamed],
        script: |host, _| host.begun().in_one_write().stall(),
        expected: Expected::Event("said nothing"),
    };
    check_with(stalls, impatient_later).await;
    let stalls = HostFailure {
        deliveries: &[Whole],
        script: |_, _| json_head().stall(),
        expected: Expected::Response(504, "said nothing"),
    };
    check_with(stalls, impatient).await;
    let never_answers = HostFailure {
        deliveries: &[Whole, Streamed],
        script: |_, _| Script::status(200).gate_before_head("never"),
        expected: Expected::Response(504, "said nothing"),
    };
    check_with(never_answers, impatient).await;
}

#[tokio::test]
async fn the_host_sends_an_error_after_200() {
    // T17
    check(HostFailure {
        deliveries: &[Streamed],
        script: |host, gate| (host.error_frame)(host.begun().gate(gate), "out of cards"),
        expected: Expected::Event("out of cards"),
    })
    .await;
    check(HostFailure {
        deliveries: &[Whole],
        script: |host, _| Script::json(200, (host.error)(429, "out of cards")),
        expected: Expected::Response(429, "out of cards"),
    })
    .await;
}

#[tokio::test]
async fn the_host_sends_an_html_page() {
    check(HostFailure {
        deliveries: &[Whole, Streamed],
        script: |_, _| Script::html(200, "<html>Welcome</html>"),
        expected: Expected::Response(502, "base_url"),
    })
    .await;
    check(HostFailure {
        deliveries: &[Whole, Streamed],
        script: |_, _| Script::html(503, "<html>Service Unavailable</html>"),
        expected: Expected::Response(503, "Service Unavailable"),
    })
    .await;
}

#[tokio::test]
async fn the_host_reports_a_server_error() {
    // T38
    check(HostFailure {
        deliveries: &[Whole, Streamed],
        script: |host, _| Script::json(500, (host.error)(500, "fell over")),
        expected: Expected::Response(500, "fell over"),
    })
    .await;
    check(HostFailure {
        deliveries: &[Whole, Streamed],
        script: |host, _| Script::json(422, (host.error)(422, "odd")),
        expected: Expected::Response(422, "odd"),
    })
    .await;
}

#[tokio::test]
async fn the_host_sends_retry_after() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    for (client, host, case) in pairs() {
        for stream in [false, true] {
            upstream.on(Script::json(429, (host.error)(429, "slow down")).header("retry-after", "60"));
            let answer = gate.post(client.path, &(client.ask)(host.model, stream)).await;
            assert_eq!((answer.status(), answer.header("retry-after")), (429, "60"), "{case}");
            assert_eq!((client.error)(&answer.json().await).as_deref(), Some("slow down"), "{case}");
        }
    }
    let sent = pairs().count() * 2;
    assert_eq!(upstream.requests().len(), sent, "the gateway does not wait that long itself");
}

#[tokio::test]
async fn the_gateway_stops_in_the_middle_of_a_stream() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let mut open = Vec::new();
    for (client, host, case) in pairs() {
        upstream.on(host.begun().stall());
        let mut answer = gate.post(client.path, &(client.ask)(host.model, true)).await;
        let begun = answer.until("hi there").await;
        open.push((client, answer, begun, case));
    }
    gate.running.stop().await.expect("it stops in order");
    for (client, answer, begun, case) in open {
        ends_in_error(client, &(begun + &answer.text().await), "shutting down", &case);
    }
}

/// A gateway that starts streams before their hosts respond.
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
    for (client, host, case) in pairs() {
        upstream.on((host.tail)((host.head)(Script::sse().gate_before_head(&case))));
        let mut answer = gate.post(client.path, &(client.ask)(host.model, true)).await;
        assert_eq!(answer.status(), 200, "{case}");
        let early = answer.until(client.ping).await;
        assert!(!early.contains("hi there"), "{case}: {early}");
        upstream.open(&case);
        let stream = early + &answer.text().await;
        assert!(stream.contains("hi there"), "{case}: {stream}");
        assert!((client.is_complete)(&Frame::read(&stream)), "{case}: {stream}");
    }
}

/// A host's stream that waits at the gate after its first frame.
fn first_frame(host: &Host, gate: &str) -> Script {
    let all = (host.tail)(host.begun());
    let mut steps = all.steps().cloned();
    let first = Script::sse().step(steps.next().expect("a first frame")).gate(gate);
    steps.fold(first, Script::step)
}

#[tokio::test]
async fn a_stream_begins_with_the_hosts_first_frame() {
    let upstream = ScriptedUpstream::start().await;
    let mut config = config();
    // A ping would flush the first frame.
    config.limits.ping_every = Duration::from_mins(10);
    let gate = Gate::start(&config, backends(&upstream));
    for (client, host, case) in pairs() {
        upstream.on(first_frame(host, &case));
        let mut answer = gate.post(client.path, &(client.ask)(host.model, true)).await;
        let early = answer.until("data: {").await;
        assert!(!early.contains("hi there"), "{case}: {early}");
        upstream.open(&case);
        let stream = early + &answer.text().await;
        assert!(stream.contains("hi there"), "{case}: {stream}");
        assert!((client.is_complete)(&Frame::read(&stream)), "{case}: {stream}");
    }
}

#[tokio::test]
async fn an_error_that_comes_with_the_first_words_still_has_its_status() {
    let upstream = ScriptedUpstream::start().await;
    let mut backends = backends(&upstream);
    backends.upstreams.iter_mut().for_each(|host| host.retry.retries = 0);
    let gate = Gate::start(&config(), backends);
    for (client, host, case) in pairs() {
        upstream.on((host.error_frame)(host.begun(), "out of cards").in_one_write());
        let answer = gate.post(client.path, &(client.ask)(host.model, true)).await;
        assert!(answer.status() >= 500, "{case}");
        assert_eq!((client.error)(&answer.json().await).as_deref(), Some("out of cards"), "{case}");
    }
}

#[tokio::test]
async fn an_error_after_the_first_ping_is_an_event() {
    let upstream = ScriptedUpstream::start().await;
    let gate = eager(&upstream);
    for (client, host, case) in pairs() {
        upstream.on(Script::json(400, (host.error)(400, "too long")).gate_before_head(&case));
        let mut answer = gate.post(client.path, &(client.ask)(host.model, true)).await;
        let early = answer.until(client.ping).await;
        upstream.open(&case);
        let stream = early + &answer.text().await;
        let sent = (client.stream_error)(&Frame::read(&stream));
        assert_eq!(sent.as_deref(), Some("too long"), "{case}: {stream}");
    }
}
