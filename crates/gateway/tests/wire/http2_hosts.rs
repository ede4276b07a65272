//! Hosts that speak HTTP/2, frame by frame.
//!
//! Only `SSL_CERT_FILE` makes a gateway trust a test's authority, and a process cannot change its own environment
//! safely. So each test here starts itself again with the variable set: the child runs the gateway and the client, the
//! parent the host.

use std::process::Command;
use std::time::Duration;

use toolgate_testkit::{Offer, RawHost, RawStep};

use crate::gate::{Gate, backends_at, config};
use crate::replies;
use crate::stage::{Ask, assert_next_request_works, request, turn};

/// Where the child finds the host. Not set in the parent.
const HOST_VARIABLE: &str = "TOOLGATE_WIRE_HOST";

/// An empty SETTINGS frame, and the acknowledgement of one.
const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
const SETTINGS_ACK: &[u8] = b"\0\0\0\x04\x01\0\0\0\0";

/// Reads the client's preface and the start of its settings, and answers with its own.
fn handshake() -> [RawStep; 3] {
    [RawStep::ReadBytes(33), RawStep::send(SETTINGS), RawStep::send(SETTINGS_ACK)]
}

/// Reads one request on stream 1 and answers it.
fn answer() -> [RawStep; 2] {
    let body = replies::whole().to_string();
    // `:status: 200` from the static table, and a media type spelled out.
    let fields = b"\x88\x00\x0ccontent-type\x10application/json";
    let frames = [frame(1, 4, fields), frame(0, 1, body.as_bytes())].concat();
    [RawStep::read_until("\"messages\""), RawStep::send(frames)]
}

/// A frame on stream 1.
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a small frame").to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
}

/// Runs the test of this name again, as a child that trusts `host`.
async fn run_child(test: &str, host: &RawHost) {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = folder.path().join("authority.pem");
    std::fs::write(&authority, host.authority()).expect("write the authority");
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child
        .args(["--exact", test, "--nocapture"])
        .env(HOST_VARIABLE, host.base_url())
        .env("SSL_CERT_FILE", authority);
    let ended = tokio::task::spawn_blocking(move || child.status()).await.expect("a thread");
    assert!(ended.expect("a child").success(), "{test} failed in its child");
}

fn host_of_this_child() -> Option<String> {
    std::env::var_os(HOST_VARIABLE).and_then(|url| url.into_string().ok())
}

#[tokio::test]
async fn a_connection_that_answers_no_pings_is_given_up_and_replaced() {
    if let Some(base_url) = host_of_this_child() {
        let mut backends = backends_at(&base_url);
        backends.upstreams[0].timeouts.http2_keep_alive = Duration::from_millis(300);
        let gate = Gate::start(&config(), backends);
        let answer = request(&gate, &turn(Ask::Whole)).await;
        assert!([502, 504].contains(&answer.status()), "{}", answer.text());
        return assert_next_request_works(&gate).await;
    }
    let host = RawHost::start_tls(Offer::Http2).await;
    host.on(handshake().into_iter().chain([RawStep::ReadToEnd]));
    host.always(handshake().into_iter().chain(answer()).chain([RawStep::ReadToEnd]));
    run_child("http2_hosts::a_connection_that_answers_no_pings_is_given_up_and_replaced", &host).await;
    assert_eq!(
        host.connections().len(),
        2,
        "the request was not sent again, and the next one went elsewhere"
    );
}

#[tokio::test]
async fn a_connection_that_its_host_closed_is_replaced() {
    if let Some(base_url) = host_of_this_child() {
        let gate = Gate::start(&config(), backends_at(&base_url));
        assert_next_request_works(&gate).await;
        return assert_next_request_works(&gate).await;
    }
    let host = RawHost::start_tls(Offer::Http2).await;
    host.on(handshake().into_iter().chain(answer()));
    host.always(handshake().into_iter().chain(answer()).chain([RawStep::ReadToEnd]));
    run_child("http2_hosts::a_connection_that_its_host_closed_is_replaced", &host).await;
    assert_eq!(host.connections().len(), 2);
}
