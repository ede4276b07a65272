//! Clients' connections.
//!
//! An ordinary request for a turn over HTTP/1.1 is read and answered here, by the connection's own task. A malformed
//! request is refused here. Everything else that is valid (other paths, chunked bodies, `Expect`, HTTP/2) goes to hyper
//! for the rest of the connection, with every byte that was received (`fallback.rs`).

mod activity;
mod connection;
mod fallback;
mod head;
mod pace;
mod prefixed;
mod unflushed;

use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use http::StatusCode;
use tokio::net::TcpStream;
use toolgate_h1::HeadError;
use toolgate_model::{ErrorKind, TurnError};

use self::connection::Connection;
use self::fallback::Fallback;
use self::head::{AfterReply, Found, TurnRequest};
use crate::http::{Api, Peer, refuse, respond};
use crate::service::Worker;
use crate::turn::{OpenTurn, TurnBody, TurnHead, TurnReply};

pub(crate) use self::pace::Pace;
pub(crate) use self::unflushed::Unflushed;

/// Serves one connection to its end.
pub(crate) async fn serve(stream: TcpStream, worker: Arc<Worker>, routes: axum::Router, peer: Peer) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a client left before it was served");
        return;
    }
    let connection = Connection::new(stream, worker.shared.limits.deadlines);
    if let Some(connection) = serve_turns(connection, &worker, peer).await {
        // Boxed, because most connections never get here and each would carry the room for it.
        Box::pin(Fallback { worker, routes, peer }.serve(connection.into_prefixed())).await;
    }
}

/// Answers turns until the connection ends (`None`) or hyper must serve the rest of it.
async fn serve_turns(mut connection: Connection, worker: &Arc<Worker>, peer: Peer) -> Option<Connection> {
    let mut stopping = pin!(worker.tasks.stopping().cancelled());
    loop {
        connection.wait(stopping.as_mut()).await.ok()?;
        let turn = match next_request(&mut connection, worker).await.ok()? {
            Next::Turn(turn) => turn,
            Next::Other => return Some(connection),
            Next::Malformed(error) => {
                let reply =
                    TurnReply::from(respond::<TurnBody>(api_of(connection.received()), &malformed(error)));
                close_with(connection, worker, reply).await;
                return None;
            }
        };
        let reply = match worker.shared.door.admit(&turn.request, peer) {
            Ok(caller) => {
                connection.consume_head(turn.head_bytes);
                let head = TurnHead::new(turn.api, caller, turn.request.headers());
                answer(&mut connection, OpenTurn::new(worker, head), &turn).await
            }
            // hyper reads and discards the body of a caller who is not admitted.
            Err(_) if connection.received().len() < turn.head_bytes + turn.body_bytes => {
                return Some(connection);
            }
            Err(error) => {
                connection.consume_head(turn.head_bytes + turn.body_bytes);
                Ok(TurnReply::from(refuse(&turn.request, &error)))
            }
        };
        let reply = match reply {
            Ok(reply) => reply,
            Err(AnswerError::ClientLeft) => return None,
            Err(AnswerError::Failed(error)) => {
                close_with(connection, worker, TurnReply::from(respond::<TurnBody>(turn.api, &error))).await;
                return None;
            }
        };
        let is_last = !turn.keeps_alive || worker.tasks.stopping().is_cancelled();
        let after = if is_last { AfterReply::Close } else { AfterReply::KeepAlive };
        let sending = AssertUnwindSafe(connection.send(reply, worker.shared.clock.now(), after));
        let Ok(sent) = sending.catch_unwind().await else {
            tracing::error!("writing a reply panicked; its connection is closed. Please report this");
            return None;
        };
        sent.ok()?;
        if is_last {
            return None;
        }
    }
}

/// What the next request on a connection is.
enum Next {
    Turn(Box<TurnRequest>),
    Other,
    Malformed(HeadError),
}

/// Receives the head of the next request, of which at least one byte has arrived.
async fn next_request(connection: &mut Connection, worker: &Worker) -> io::Result<Next> {
    let limits = &worker.shared.limits;
    connection.begin_head();
    loop {
        match head::find(connection.received(), limits.body_bytes) {
            Ok(Found::Turn(turn)) => return Ok(Next::Turn(turn)),
            Ok(Found::Other) => return Ok(Next::Other),
            Err(error) => return Ok(Next::Malformed(error)),
            Ok(Found::Incomplete) => connection.receive_head().await?,
        }
    }
}

/// Why there is no reply to send in the usual way.
enum AnswerError {
    ClientLeft,
    /// The client gets this error, and the connection ends.
    Failed(TurnError),
}

/// Receives the body and answers the turn. If the client leaves, the turn is dropped, which records that.
async fn answer(
    connection: &mut Connection,
    turn: OpenTurn,
    request: &TurnRequest,
) -> Result<TurnReply, AnswerError> {
    let body = match connection.body(request.body_bytes).await {
        Ok(body) => body,
        Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(AnswerError::Failed(too_slow())),
        Err(_) => return Err(AnswerError::ClientLeft),
    };
    let reply = pin!(AssertUnwindSafe(turn.answer(Ok(body))).catch_unwind());
    match connection.while_connected(reply).await {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(_)) => Err(AnswerError::Failed(panicked())),
        Err(_) => Err(AnswerError::ClientLeft),
    }
}

async fn close_with(mut connection: Connection, worker: &Worker, reply: TurnReply) {
    if connection.send(reply, worker.shared.clock.now(), AfterReply::Close).await.is_ok() {
        connection.linger().await;
    }
}

/// The API that a malformed request probably meant, so that the client can read the refusal.
fn api_of(received: &[u8]) -> Api {
    let line = received.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let names = |path: &str| line.windows(path.len()).any(|window| window == path.as_bytes());
    if names("/v1/messages") {
        Api::Messages
    } else if names("/v1/responses") {
        Api::Responses
    } else {
        Api::Chat
    }
}

fn malformed(cause: HeadError) -> TurnError {
    let mut error =
        TurnError::invalid(format!("the request is not valid HTTP/1.1: {cause}; check your client or proxy"));
    if cause == HeadError::TooLarge || cause == HeadError::TooManyFields {
        error.status = Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.as_u16());
    }
    error
}

/// The body arrived more slowly than the minimum rate.
pub(crate) fn too_slow() -> TurnError {
    let mut error = TurnError::invalid("the request body arrived too slowly; send it again");
    error.status = Some(StatusCode::REQUEST_TIMEOUT.as_u16());
    error
}

/// The gateway has a bug.
pub(crate) fn panicked() -> TurnError {
    TurnError::new(ErrorKind::Internal, "the gateway failed while it answered; please report this")
}
