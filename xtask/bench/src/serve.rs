//! The frame of the two servers: one thread, an accept loop, and an end when stdin closes, so that neither
//! outlives the benchmark.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::task::{LocalSet, spawn_local};

use crate::AnyError;

/// A body of either kind: made here, or passed on from the upstream.
pub(crate) type Body = BoxBody<Bytes, AnyError>;

/// Runs a server on this thread until the parent closes our stdin or is gone.
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
    // Reading stdin blocks a thread that the runtime would wait for.
    runtime.shutdown_background();
    Ok(())
}

/// Accepts connections for ever, prints the address first, and answers each request with `answer`.
pub(crate) async fn accept<Answer, Reply>(answer: Answer) -> Result<Infallible, AnyError>
where
    Answer: Fn(Request<Incoming>) -> Reply + Clone + 'static,
    Reply: Future<Output = Result<Response<Body>, AnyError>> + 'static,
{
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    println!("http://{}", listener.local_addr()?);
    loop {
        let (connection, _) = listener.accept().await?;
        connection.set_nodelay(true)?;
        let answer = answer.clone();
        spawn_local(async move {
            let service = hyper::service::service_fn(answer);
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(connection), service);
            // A client that leaves is its own business; one that fails is counted by the load.
            if let Err(cause) = served.await {
                eprintln!("a connection ended early: {cause}");
            }
        });
    }
}
