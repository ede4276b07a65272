//! A connection's deadlines and bounds, over real sockets with a paused clock.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use tokio::time::Instant;

use super::*;

const DEADLINES: ClientDeadlines = ClientDeadlines {
    head: Duration::from_secs(10),
    idle: Duration::from_mins(1),
    body_rate: 2,
    stalled: Duration::from_secs(30),
};

/// A client, and the connection it is served on.
async fn connected() -> (TcpStream, Connection) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (client, Connection::new(listener.accept().await.unwrap().0, DEADLINES))
}

#[track_caller]
fn check_timed_out<T>(outcome: io::Result<T>, began: Instant, expected: Duration) {
    assert_eq!(outcome.map(|_| ()).map_err(|error| error.kind()), Err(ErrorKind::TimedOut));
    assert_eq!(began.elapsed().as_secs(), expected.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_dropped_between_requests_and_within_one() {
    let (_client, mut connection) = connected().await;
    let running = CancellationToken::new();
    let began = Instant::now();
    let waited = connection.wait(std::pin::pin!(running.cancelled())).await;
    check_timed_out(waited, began, DEADLINES.idle);
    let began = Instant::now();
    connection.begin_head();
    check_timed_out(connection.receive_head().await, began, DEADLINES.head);
    let began = Instant::now();
    check_timed_out(connection.body(1).await, began, DEADLINES.head);
}

#[tokio::test(start_paused = true)]
async fn a_body_must_arrive_at_the_minimum_rate() {
    for (bytes_per_window, is_fast_enough) in [(19, false), (20, true)] {
        let (mut client, mut connection) = connected().await;
        let sending = async {
            for _ in 0..3 {
                tokio::time::sleep(DEADLINES.head.saturating_sub(Duration::from_secs(1))).await;
                client.write_all(&vec![b'.'; bytes_per_window]).await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            std::future::pending::<()>().await;
        };
        let received = tokio::select! {
            received = connection.body(60) => received.is_ok(),
            () = sending => false,
        };
        assert_eq!(received, is_fast_enough, "{bytes_per_window} bytes in each window");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_may_wait_for_its_reply_without_limit() {
    let (client, mut connection) = connected().await;
    let reply = std::pin::pin!(tokio::time::sleep(DEADLINES.idle * 100));
    assert!(connection.while_connected(reply).await.is_ok());
    drop(client);
    let reply = std::pin::pin!(std::future::pending::<()>());
    let closed = connection.while_connected(reply).await;
    assert_eq!(closed.map_err(|error| error.kind()), Err(ErrorKind::UnexpectedEof));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_reading_is_dropped() {
    let (_client, mut connection) = connected().await;
    let began = Instant::now();
    let endless = |_: &mut Context<'_>| Poll::Ready(Some(Bytes::from_static(&[b'.'; 4096])));
    let mut progress = Progress::BufferFull;
    let sent = poll_fn(|cx| connection.poll_stream(endless, &mut progress, cx)).await;
    check_timed_out(sent, began, DEADLINES.stalled);
}

#[tokio::test]
async fn a_client_may_send_ahead_only_so_much() {
    let (client, mut connection) = connected().await;
    client.writable().await.unwrap();
    let (mut sent, mut refused_in_a_row) = (0, 0);
    let mut cx = Context::from_waker(std::task::Waker::noop());
    // Until the socket buffers are full.
    while refused_in_a_row < 1000 {
        assert!(connection.poll_client_closed(&mut cx).is_pending());
        refused_in_a_row += 1;
        match client.try_write(&[b'.'; 16 * 1024]) {
            Ok(count) => (sent, refused_in_a_row) = (sent + count, 0),
            Err(_) => tokio::task::yield_now().await,
        }
        assert!(sent < 1024 * MAX_AHEAD_BYTES, "{} bytes are held", connection.received.len());
    }
    assert!(connection.received.len() < 2 * MAX_AHEAD_BYTES, "{}", connection.received.len());
}

#[tokio::test]
async fn a_last_chunk_that_has_to_wait_is_written_once() {
    let (mut client, mut connection) = connected().await;
    connection.stream.writable().await.unwrap();
    while connection.stream.try_write(&[b'.'; 4096]).is_ok() {}
    let mut left = vec![None, Some(Bytes::from_static(b"last"))];
    let mut progress = Progress::BufferFull;
    let sending = poll_fn(|cx| {
        connection.poll_stream(|_| Poll::Ready(left.pop().expect("nothing after the end")), &mut progress, cx)
    });
    let reading = async {
        let mut text = Vec::new();
        while !text.ends_with(b"0\r\n\r\n") {
            client.read_buf(&mut text).await.unwrap();
        }
        text
    };
    let (sent, text) = tokio::join!(sending, reading);
    sent.unwrap();
    assert!(text.ends_with(b".4\r\nlast\r\n0\r\n\r\n"));
}
