//! Plays scripts over connections.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http::{Request, Response};
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::{Received, Script, Shared, Step};
use crate::request_check;

/// Larger than any request a test sends, images included.
const MAX_REQUEST_BYTES: usize = 128 * 1024 * 1024;

/// Accepts connections until the server is dropped, and all connections with it.
pub(super) async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((connection, _)) = listener.accept().await {
        connections.spawn(handshake(connection, tls.clone(), Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

async fn handshake(connection: TcpStream, tls: Option<TlsAcceptor>, shared: Arc<Shared>) {
    // Each step must leave as soon as it is written. A peer that has gone already shows in the first step.
    drop(connection.set_nodelay(true));
    // A cut, a lost client or an untrusted certificate ends the connection with an error. The test sees it in other
    // ways.
    let Some(tls) = tls else { return serve(connection, Protocol::Http1, shared).await };
    let Ok(connection) = tls.accept(connection).await else { return };
    let is_http2 = connection.get_ref().1.alpn_protocol() == Some(b"h2");
    let protocol = if is_http2 { Protocol::Http2 } else { Protocol::Http1 };
    serve(connection, protocol, shared).await;
}

enum Protocol {
    Http1,
    Http2,
}

async fn serve<T>(connection: T, protocol: Protocol, shared: Arc<Shared>)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| respond(request, Arc::clone(&shared)));
    let connection = TokioIo::new(connection);
    let served = match protocol {
        Protocol::Http1 => http1::Builder::new().serve_connection(connection, service).await,
        Protocol::Http2 => {
            http2::Builder::new(TokioExecutor::new()).serve_connection(connection, service).await
        }
    };
    drop(served);
}

async fn respond(
    request: Request<Incoming>,
    shared: Arc<Shared>,
) -> Result<Response<StreamBody<impl Stream<Item = io::Result<Frame<Bytes>>>>>, Infallible> {
    // From here on, a drop means that the client disconnected.
    let watch = ClientWatch { shared: Arc::clone(&shared), over: false };
    let mut script = receive(request, &shared).await;
    if let Some(gate) = &script.head_gate {
        shared.gates.passed(gate).await;
    }
    let headers = std::mem::take(&mut script.headers);
    let status = script.status;
    let mut response = Response::new(StreamBody::new(play(script, watch)));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// Reads the request, records it and finds its script.
async fn receive(request: Request<Incoming>, shared: &Shared) -> Script {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    let body = match Limited::new(body, MAX_REQUEST_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return Script::status(400).bytes(format!("could not read the request body: {error}")),
    };
    let received = Received { version: head.version, method: head.method, path, headers: head.headers, body };
    shared.ledger.lock().add(received.clone());
    shared.arrivals.add_permits(1);
    if !shared.accepts_anything.load(Ordering::Relaxed)
        && let Some(refusal) = request_check::refusal(&received)
    {
        return refusal;
    }
    if let Some(script) = shared.queue.lock().pop_front() {
        return script;
    }
    let fallback = shared.fallback.lock().clone();
    match fallback {
        Some(respond) => respond(&received),
        None => Script::status(500).bytes(format!("no script for {} {}", received.method, received.path)),
    }
}

/// The body that the steps produce.
fn play(script: Script, mut watch: ClientWatch) -> impl Stream<Item = io::Result<Frame<Bytes>>> {
    let steps = script.steps;
    // A body of known length is not polled for its end, so the last step ends the script.
    watch.over = steps.is_empty();
    stream::unfold((steps, watch), |(mut steps, mut watch)| async move {
        loop {
            // Yielding once lets the connection flush, so that steps are not merged and bytes before a cut are not
            // lost.
            tokio::task::yield_now().await;
            let step = steps.pop_front()?;
            match step {
                Step::Send(bytes) => {
                    watch.over = steps.is_empty();
                    return Some((Ok(Frame::data(bytes)), (steps, watch)));
                }
                Step::Gate(gate) => watch.shared.gates.passed(&gate).await,
                Step::Stall => std::future::pending().await,
                Step::Cut => {
                    watch.over = true;
                    return Some((Err(io::ErrorKind::ConnectionAborted.into()), (steps, watch)));
                }
            }
            watch.over = steps.is_empty();
        }
    })
}

/// Reports a response that is dropped before its end.
struct ClientWatch {
    shared: Arc<Shared>,
    over: bool,
}

impl Drop for ClientWatch {
    fn drop(&mut self) {
        if !self.over {
            self.shared.disconnects.add_permits(1);
        }
    }
}
