//! Whatever we accept means the same to hyper. The generator and the comparison are shared with the fuzz targets.

#[path = "../fuzz/src/lib.rs"]
pub mod differential;

use differential::{requests, responses};
use proptest::prelude::*;
use toolgate_h1::{MAX_FIELDS, MAX_HEAD_BYTES};

fn choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..160)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn accepted_requests_mean_the_same_to_hyper(choices in choices()) {
        requests::check(&requests::generate(&choices));
    }

    #[test]
    fn accepted_responses_mean_the_same_to_hyper(choices in choices()) {
        responses::check(&responses::generate(&choices));
    }
}

#[test]
fn a_plain_generated_message_is_accepted() {
    assert_eq!(requests::check(&requests::generate(&[])), 1);
    assert!(responses::check(&responses::generate(&[])));
}

#[test]
fn these_requests_are_accepted() {
    for (bytes, count) in [
        ("GET / HTTP/1.1\r\nhost:\r\n\r\n", 1),
        ("GET /a?b[]={c}|d^\\ HTTP/1.1\r\nhost: a\r\n\r\n", 1),
        ("POST / HTTP/1.1\r\nHOST: a\r\nCONTENT-LENGTH: 003\r\n\r\nabcGET / HTTP/1.0\r\n\r\n", 2),
        ("POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\na", 1),
        ("POST / HTTP/1.1\r\nhost: a\r\nupgrade: h2c\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n", 2),
        ("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n", 1),
        ("GET / HTTP/1.0\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n", 1),
        ("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n", 2),
    ] {
        assert_eq!(requests::check(bytes.as_bytes()), count, "{bytes:?}");
    }
    for body in [
        "0\r\n\r\n",
        "0000\r\n\r\n",
        "1;a=\"b;\\\"c\"\r\n0\r\n0 \t; d\r\ncontent-length: 5\r\n\r\n",
        "A \r\n0123456789\r\n0\r\ntransfer-encoding: gzip\r\nx:\r\n\r\n",
    ] {
        assert_eq!(requests::check(chunked(body).as_bytes()), 2, "{body:?}");
    }
}

#[test]
fn hyper_accepts_the_largest_requests_that_we_accept() {
    let check =
        |bytes: &str, count| assert_eq!(requests::check(bytes.as_bytes()), count, "{} bytes", bytes.len());
    let with_fields = |count| format!("GET / HTTP/1.1\r\nhost: a\r\n{}\r\n", "x:\r\n".repeat(count));
    check(&with_fields(MAX_FIELDS - 1), 1);
    check(&with_fields(MAX_FIELDS), 0);
    let with_target = |length| format!("GET /{} HTTP/1.0\r\n\r\n", "x".repeat(length));
    let most = MAX_HEAD_BYTES - with_target(0).len();
    check(&with_target(most), 1);
    check(&with_target(most + 1), 0);
    for length in (7_000..9_000).step_by(250) {
        let long = "x".repeat(length);
        requests::check(chunked(&format!("0\r\n{long}:\r\n\r\n")).as_bytes());
        let extensions = format!("1;{}\r\na\r\n", &long[..length / 4]).repeat(4);
        requests::check(chunked(&format!("{extensions}0\r\n\r\n")).as_bytes());
    }
    let trailers = "x:\r\n".repeat(MAX_FIELDS);
    check(&chunked(&format!("0\r\n{trailers}\r\n")), 2);
    check(&chunked(&format!("0\r\nx:\r\n{trailers}\r\n")), 0);
}

#[test]
fn these_requests_are_refused() {
    for line in [
        "GET /a#b HTTP/1.1",
        "GET /<a> HTTP/1.1",
        "GET /` HTTP/1.1",
        "GET /?\" HTTP/1.1",
        "GET /\u{e9} HTTP/1.1",
        "GET http://a/ HTTP/1.1",
        "GET http:///a HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "CONNECT a:1 HTTP/1.1",
        "CONNECT / HTTP/1.1",
        "GET / HTTP/1.2",
        "\r\nGET / HTTP/1.1",
        "GET  / HTTP/1.1",
    ] {
        let bytes = format!("{line}\r\nhost: a\r\n\r\n");
        assert_eq!(requests::check(bytes.as_bytes()), 0, "{line:?}");
    }
    for fields in [
        "content-length: 1\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 1",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: chunked, identity",
        "transfer-encoding : chunked",
        "transfer-encoding:\r\n chunked",
        "transfer-encoding: \u{b}chunked",
        "transfer-encoding: chunked\rx",
        "x: y\r\n transfer-encoding: chunked",
        "x: y\ntransfer-encoding: chunked",
        "content-length: 18446744073709551615",
        "content-length: 1\r\ncontent-length: 1",
        "content-length: 1\r\ncontent-length: 2",
        "content-length: 1,1",
        "content-length: +1",
        "content-length: 1\0",
        "host: b",
        "x",
        ": x",
    ] {
        let bytes = format!("POST / HTTP/1.1\r\nhost: a\r\n{fields}\r\n\r\n1\r\na\r\n0\r\n\r\n");
        assert_eq!(requests::check(bytes.as_bytes()), 0, "{fields:?}");
    }
    for body in [
        "1\na\r\n0\r\n\r\n",
        "1;\na\r\n0\r\n\r\n",
        "1;a\r;\r\na\r\n0\r\n\r\n",
        "1\r\na\n0\r\n\r\n",
        "1\r\naa\r\n0\r\n\r\n",
        "0x1\r\na\r\n0\r\n\r\n",
        " 1\r\na\r\n0\r\n\r\n",
        "10000000000000001\r\na\r\n0\r\n\r\n",
        "ffffffffffffffff\r\na\r\n0\r\n\r\n",
        "0\r\nGET / HTTP/1.1\r\n\r\n",
        "0\r\nx : y\r\n\r\n",
        "0\r\n x: y\r\n\r\n",
        "0\r\nx: y\r\n z\r\n\r\n",
        "0\r\nx: y\n\r\n",
        "0\r\n\n",
    ] {
        assert_eq!(requests::check(chunked(body).as_bytes()), 0, "{body:?}");
    }
}

/// A request with this body, and another request after it.
fn chunked(body: &str) -> String {
    format!(
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{body}GET / HTTP/1.1\r\nhost: a\r\n\r\n"
    )
}

#[test]
fn these_responses_are_accepted() {
    for bytes in [
        "HTTP/1.1 200\r\ncontent-length: 1\r\n\r\na",
        "HTTP/1.1 200 \u{e9}\r\nx: \u{e9}\r\n\r\nuntil the end",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n1;x\r\na\r\n0\r\nx: y\r\n\r\n",
        "HTTP/1.0 100 Continue\r\ntransfer-encoding: gzip\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\ncontent-length: 3\r\n\r\n",
        "HTTP/1.1 205 Reset Content\r\ncontent-length: 1\r\n\r\na",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n",
        "HTTP/1.0 200 OK\r\nconnection: keep-alive, \u{e9}\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    ] {
        assert!(responses::check(bytes.as_bytes()), "{bytes:?}");
    }
}

#[test]
fn these_responses_are_refused() {
    for bytes in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\na",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n",
        "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx : y\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: gzip\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1, 1\r\n\r\na",
        "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\nx: y\n\n",
        "HTTP/1.1 200 OK\r\nx: y\r\n z\r\n\r\n",
        "\r\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
    ] {
        assert!(!responses::check(bytes.as_bytes()), "{bytes:?}");
    }
}
