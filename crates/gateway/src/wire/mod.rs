//! Turns straight off the wire: HTTP/1.1 for the one kind of request that comes all the time.
//!
//! A request for a turn whose head comes in one piece and says nothing unusual is read and answered here, by one task
//! with nothing in between. Every other request is handed to a server made for everything, with its connection and
//! all bytes that have come. So this understands little, and what it does not understand it need not refuse.

mod connection;
mod head;
mod rewound;

use std::io;
use std::pin::pin;
use std::sync::Arc;

use tokio::net::TcpStream;
use toolgate_state::UnixMillis;

use self::connection::Connection;
use self::head::Head;
use crate::http::{Peer, refuse};
use crate::service::Worker;
use crate::turn::{OpenTurn, TurnHead, TurnReply};

pub(crate) use self::rewound::Rewound;

/// Answers turns until the connection ends (`None`), or something else is asked that another server must answer.
pub(crate) async fn serve(stream: TcpStream, worker: &Arc<Worker>, peer: Peer) -> Option<Rewound> {
    let mut connection = Connection::new(stream);
    let mut stopping = pin!(worker.tasks.stopping().cancelled());
    let max_body_bytes = worker.shared.limits.body_bytes;
    loop {
        connection.wait(stopping.as_mut()).await.ok()?;
        let Some(head) = Head::take(&mut connection.received, max_body_bytes) else {
            return Some(connection.rewound(&[]));
        };
        let answered = match worker.shared.door.open(&head.request, peer) {
            Ok(caller) => {
                let turn = OpenTurn::new(worker, TurnHead::new(head.api, caller, head.request.headers()));
                answer(&mut connection, turn, head.body_bytes).await.ok()?
            }
            // Whoever may not come in is not listened to for long.
            Err(_) if connection.received.len() < head.body_bytes => {
                return Some(connection.rewound(&head.text));
            }
            Err(error) => {
                connection.body(head.body_bytes).await.ok()?;
                TurnReply::from(refuse(&head.request, &error))
            }
        };
        let is_last = head.closes || worker.tasks.stopping().is_cancelled();
        let after = if is_last { After::Close } else { After::Stay };
        connection.send(answered, Sending { at: worker.shared.clock.now(), after }).await.ok()?;
        if is_last {
            return None;
        }
    }
}

/// Reads the body and answers the turn. A client that leaves drops the turn, which records that.
async fn answer(connection: &mut Connection, turn: OpenTurn, body_bytes: usize) -> io::Result<TurnReply> {
    let body = connection.body(body_bytes).await?;
    let answer = pin!(turn.answer(Ok(body)));
    connection.meanwhile(answer).await
}

/// What the head of a response says beside the response itself.
#[derive(Clone, Copy)]
struct Sending {
    at: UnixMillis,
    after: After,
}

/// What becomes of the connection after a reply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Stay,
    Close,
}
