//! The floor: a relay that parses nothing. It pays what any HTTP gateway must pay here (accept, read the request,
//! reuse an upstream connection, copy the reply) and nothing else.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use crate::AnyError;
use crate::serve::{Body, accept};

/// Relays to `upstream`, an address of the form `127.0.0.1:PORT`.
pub(crate) async fn serve(upstream: String) -> Result<Infallible, AnyError> {
    let pool = Rc::new(Pool { upstream, idle: RefCell::default() });
    accept(move |request| relay(Rc::clone(&pool), request)).await
}

/// Upstream connections that are open and have nothing to do. There are never more than clients.
struct Pool {
    upstream: String,
    idle: RefCell<Vec<SendRequest<Incoming>>>,
}

async fn relay(pool: Rc<Pool>, request: Request<Incoming>) -> Result<Response<Body>, AnyError> {
    let mut connection = pool.connection().await?;
    let response = connection.send_request(request).await?;
    spawn_local(async move {
        // Ready again means that the reply has been read to its end.
        if connection.ready().await.is_ok() {
            pool.idle.borrow_mut().push(connection);
        }
    });
    Ok(response.map(|body| body.map_err(AnyError::from).boxed()))
}

impl Pool {
    async fn connection(&self) -> Result<SendRequest<Incoming>, AnyError> {
        let idle = self.idle.borrow_mut().pop();
        if let Some(connection) = idle.filter(|connection| !connection.is_closed()) {
            return Ok(connection);
        }
        let stream = TcpStream::connect(&self.upstream).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        spawn_local(async move {
            if let Err(cause) = connection.await {
                eprintln!("an upstream connection ended early: {cause}");
            }
        });
        Ok(sender)
    }
}
