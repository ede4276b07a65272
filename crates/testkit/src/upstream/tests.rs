//! The server over plain sockets, so that every byte is visible.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

async fn send(upstream: &ScriptedUpstream, body: &str) -> TcpStream {
    let mut client = TcpStream::connect(upstream.address).await.unwrap();
    let head = format!("POST /v1/x?y=1 HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n\r\n", body.len());
    client.write_all((head + body).as_bytes()).await.unwrap();
    client
}

async fn read_until(client: &mut TcpStream, end: &str) -> String {
    let mut text = String::new();
    while !text.ends_with(end) {
        let mut bytes = [0; 1024];
        let length = client.read(&mut bytes).await.unwrap();
        assert_ne!(length, 0, "closed after {text:?}");
        text.push_str(std::str::from_utf8(&bytes[..length]).unwrap());
    }
    text
}

#[tokio::test]
async fn scripts_respond_in_order_and_requests_are_recorded() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(Script::json(200, serde_json::json!({"a": 1})));
    upstream.always(|request| Script::html(502, &format!("<p>{}</p>", request.path)));
    let first = read_until(&mut send(&upstream, "{\"n\":1}").await, "{\"a\":1}").await;
    assert!(first.starts_with("HTTP/1.1 200 OK\r\n"), "{first}");
    let second = read_until(&mut send(&upstream, "").await, "<p>/v1/x?y=1</p>").await;
    assert!(second.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{second}");
    assert_eq!(upstream.next_request().await.json(), serde_json::json!({"n": 1}));
    assert_eq!(upstream.next_request().await.body, "");
    assert_eq!(upstream.requests().len(), 2);
}

#[tokio::test]
async fn gates_delay_the_head_and_the_body() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(Script::sse().gate_before_head("head").frame("e", "1").gate("body").frame("", "2"));
    let mut client = send(&upstream, "").await;
    upstream.next_request().await;
    assert!(client.try_read(&mut [0]).is_err(), "nothing is sent before the gate");
    upstream.open("head");
    read_until(&mut client, "event: e\ndata: 1\n\n\r\n").await;
    upstream.open("body");
    assert_eq!(read_until(&mut client, "0\r\n\r\n").await, "9\r\ndata: 2\n\n\r\n0\r\n\r\n");
}

#[tokio::test]
async fn a_cut_sends_the_bytes_before_it_and_closes() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(Script::sse().bytes("data: ha").cut());
    let mut text = String::new();
    send(&upstream, "").await.read_to_string(&mut text).await.unwrap();
    assert!(text.ends_with("8\r\ndata: ha\r\n"), "{text:?}");
}

#[tokio::test]
async fn a_disconnect_is_noticed_before_the_head_and_in_the_body() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(Script::status(200).gate_before_head("never"));
    let client = send(&upstream, "").await;
    upstream.next_request().await;
    drop(client);
    upstream.disconnected().await;

    upstream.on(Script::sse().frame("", "1").stall());
    let mut client = send(&upstream, "").await;
    read_until(&mut client, "data: 1\n\n\r\n").await;
    drop(client);
    upstream.disconnected().await;
}

#[tokio::test]
async fn a_complete_response_is_not_a_disconnect() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(Script::json(200, "{}"));
    drop(read_until(&mut send(&upstream, "").await, "{}").await);
    upstream.on(Script::status(503).header("retry-after", "1"));
    let head = read_until(&mut send(&upstream, "").await, "\r\n\r\n").await;
    assert!(head.contains("retry-after: 1\r\n"), "{head}");
    assert_eq!(upstream.shared.disconnects.available_permits(), 0);
}
