//! What the relay and the upstream share: one thread, an accept loop, and an exit when stdin closes, so that neither
//! outlives the benchmark.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};
use tokio_rustls::TlsAcceptor;

use crate::AnyError;

/// A body: generated here, or relayed from the upstream.
pub(crate) type Body = BoxBody<Bytes, AnyError>;

/// Streams on one HTTP/2 connection: more than the benchmark opens at once.
const MAX_STREAMS: u32 = 1024;

/// Runs a server on this thread until the parent closes stdin or exits.
pub(crate) fn until_stdin_closes(
    server: impl Future<Output = Result<Infallible, AnyError>>,
) -> Result<(), AnyError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let mut nothing = [0; 64];
        let mut stdin = tokio::io::stdin();
        let closed = async { while stdin.read(&mut nothing).await.is_ok_and(|read| read > 0) {} };
        tokio::select! {
            () = closed => Ok(()),
            stopped = server => stopped.map(|_| ()),
        }
    })?;
    // Reading stdin blocks a thread, and a normal shutdown would wait for it.
    runtime.shutdown_background();
    Ok(())
}

/// Prints the address, then accepts connections forever and answers each request with `answer`.
pub(crate) async fn accept<Answer, Reply>(
    tls: Option<TlsAcceptor>,
    answer: Answer,
) -> Result<Infallible, AnyError>
where
    Answer: Fn(Request<Incoming>) -> Reply + Clone + 'static,
    Reply: Future<Output = Result<Response<Body>, AnyError>> + 'static,
{
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    println!("http://{}", listener.local_addr()?);
    loop {
        let (connection, _) = listener.accept().await?;
        connection.set_nodelay(true)?;
        let (answer, tls) = (answer.clone(), tls.clone());
        spawn_local(async move {
            // The load itself fails on an incomplete reply, so this is only logged.
            if let Err(cause) = serve(connection, tls, answer).await {
                eprintln!("a connection ended early: {cause}");
            }
        });
    }
}

async fn serve<Answer, Reply>(
    connection: TcpStream,
    tls: Option<TlsAcceptor>,
    answer: Answer,
) -> Result<(), AnyError>
where
    Answer: Fn(Request<Incoming>) -> Reply + 'static,
    Reply: Future<Output = Result<Response<Body>, AnyError>> + 'static,
{
    let service = service_fn(answer);
    let Some(tls) = tls else {
        return Ok(http1::Builder::new().serve_connection(TokioIo::new(connection), service).await?);
    };
    let connection = tls.accept(connection).await?;
    let is_http2 = connection.get_ref().1.alpn_protocol() == Some(b"h2");
    let connection = TokioIo::new(connection);
    if is_http2 {
        let mut server = http2::Builder::new(LocalExecutor);
        server.max_concurrent_streams(MAX_STREAMS);
        return Ok(server.serve_connection(connection, service).await?);
    }
    Ok(http1::Builder::new().serve_connection(connection, service).await?)
}

/// Runs the tasks of HTTP/2 connections on this thread.
#[derive(Clone, Copy)]
pub(crate) struct LocalExecutor;

impl<F: Future<Output = ()> + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, task: F) {
        drop(spawn_local(task));
    }
}
