//! A raw host and a raw client, against each other.

use super::*;

async fn host_and_client(steps: impl IntoIterator<Item = RawStep>) -> (RawHost, RawClient) {
    let host = RawHost::start().await;
    host.on(steps);
    let address = host.base_url().trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let client = RawClient::connect(address.parse().unwrap()).await;
    (host, client)
}

const REQUEST: &str = "POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\nhi";
const RESPONSE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

#[tokio::test]
async fn a_host_answers_every_request_and_records_them() {
    let (host, mut client) = host_and_client([RawStep::answer_all(RESPONSE)]).await;
    client.send([REQUEST, REQUEST].concat()).await;
    for _ in 0..2 {
        let response = client.response().await;
        assert_eq!((response.status(), response.text().as_str()), (200, "hello"));
    }
    drop(client);
    host.until("the end", |all| all[0].end == Some(RawEnd::PeerClosed)).await;
    let bodies: Vec<String> = host.requests().iter().map(RawMessage::text).collect();
    assert_eq!(bodies, ["hi", "hi"]);
    assert_eq!(host.connections().len(), 1);
}

#[tokio::test]
async fn gates_hold_back_what_comes_after_them() {
    let steps = [
        RawStep::ReadHead,
        RawStep::read_until("h"),
        RawStep::ReadBytes(1),
        RawStep::send("HTTP/1.1 200 OK\r\n"),
        RawStep::gate("rest"),
        RawStep::send("content-length: 0\r\n\r\n"),
    ];
    let (host, mut client) = host_and_client(steps).await;
    client.send(REQUEST).await;
    assert_eq!(client.read_until("\r\n").await, "HTTP/1.1 200 OK\r\n");
    assert_eq!(host.connections()[0].end, None);
    host.open("rest");
    let (rest, end) = client.rest().await;
    assert_eq!((rest[0].head.as_str(), end), ("content-length: 0", RawEnd::Played));
}

#[tokio::test]
async fn a_reset_is_seen_as_one() {
    let (_host, mut client) = host_and_client([RawStep::ReadMessage, RawStep::Reset]).await;
    assert_eq!(client.play([RawStep::send(REQUEST), RawStep::ReadMessage]).await, RawEnd::PeerReset);
    let (_host, mut client) = host_and_client([RawStep::ReadMessage, RawStep::Close]).await;
    assert_eq!(client.play([RawStep::send(REQUEST), RawStep::ReadMessage]).await, RawEnd::PeerClosed);
}

#[tokio::test]
async fn a_connection_without_steps_is_closed() {
    let (host, client) = host_and_client([]).await;
    assert_eq!(client.rest().await, (Vec::new(), RawEnd::Played));
    host.until("the end", |all| all.len() == 1 && all[0].end == Some(RawEnd::Played)).await;
}
