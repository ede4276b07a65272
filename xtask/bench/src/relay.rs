//! The baseline: a relay that parses nothing. It does what any HTTP gateway must do here (accept, read the request,
//! reuse an upstream connection, copy the reply) and nothing else.

use std::cell::RefCell;
use std::convert::Infallible;
use std::path::Path;
use std::rc::Rc;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{CONNECTION, HOST};
use hyper::{Request, Response, Uri, Version};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::task::spawn_local;
use tokio_rustls::TlsConnector;

use crate::AnyError;
use crate::link::Link;
use crate::serve::{Body, LocalExecutor, accept};

/// Relays to `upstream`, an address of the form `127.0.0.1:PORT`. Clients always connect over plain HTTP/1.1.
pub(crate) async fn serve(link: Link, upstream: String, certificates: &Path) -> Result<Infallible, AnyError> {
    let tls = link.connector(certificates)?;
    let host = Rc::new(Host { link, upstream, tls, idle: RefCell::default(), shared: OnceCell::new() });
    accept(None, move |request| relay(Rc::clone(&host), request)).await
}

struct Host {
    link: Link,
    upstream: String,
    tls: Option<TlsConnector>,
    /// Idle HTTP/1.1 connections. There are never more of them than clients.
    idle: RefCell<Vec<http1::SendRequest<Incoming>>>,
    /// The one HTTP/2 connection.
    shared: OnceCell<http2::SendRequest<Incoming>>,
}

async fn relay(host: Rc<Host>, request: Request<Incoming>) -> Result<Response<Body>, AnyError> {
    let response = match host.link {
        Link::Plain | Link::Tls => over_http1(host, request).await?,
        Link::Http2 => over_http2(&host, request).await?,
    };
    Ok(response.map(|body| body.map_err(AnyError::from).boxed()))
}

async fn over_http1(host: Rc<Host>, request: Request<Incoming>) -> Result<Response<Incoming>, AnyError> {
    let mut connection = host.connection().await?;
    let response = connection.send_request(request).await?;
    spawn_local(async move {
        // Ready again means that the reply has been read to its end.
        if connection.ready().await.is_ok() {
            host.idle.borrow_mut().push(connection);
        }
    });
    Ok(response)
}

async fn over_http2(host: &Host, mut request: Request<Incoming>) -> Result<Response<Incoming>, AnyError> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() =
        Uri::builder().scheme("https").authority(host.upstream.as_str()).path_and_query(path).build()?;
    *request.version_mut() = Version::HTTP_2;
    for name in [HOST, CONNECTION] {
        request.headers_mut().remove(name);
    }
    let mut connection = host.shared.get_or_try_init(|| host.connect_http2()).await?.clone();
    connection.ready().await?;
    let mut response = connection.send_request(request).await?;
    *response.version_mut() = Version::HTTP_11;
    Ok(response)
}

impl Host {
    async fn connection(&self) -> Result<http1::SendRequest<Incoming>, AnyError> {
        let idle = self.idle.borrow_mut().pop();
        if let Some(connection) = idle.filter(|connection| !connection.is_closed()) {
            return Ok(connection);
        }
        let stream = self.connect().await?;
        match &self.tls {
            None => handshake(stream).await,
            Some(tls) => handshake(tls.connect(self.server_name()?, stream).await?).await,
        }
    }

    async fn connect_http2(&self) -> Result<http2::SendRequest<Incoming>, AnyError> {
        let tls = self.tls.as_ref().ok_or("HTTP/2 needs TLS")?;
        let stream = tls.connect(self.server_name()?, self.connect().await?).await?;
        let (sender, connection) = http2::handshake(LocalExecutor, TokioIo::new(stream)).await?;
        watch(connection);
        Ok(sender)
    }

    async fn connect(&self) -> Result<TcpStream, AnyError> {
        let stream = TcpStream::connect(&self.upstream).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn server_name(&self) -> Result<ServerName<'static>, AnyError> {
        let name = self.upstream.split(':').next().unwrap_or_default().to_owned();
        Ok(ServerName::try_from(name)?)
    }
}

async fn handshake<T>(stream: T) -> Result<http1::SendRequest<Incoming>, AnyError>
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    watch(connection);
    Ok(sender)
}

fn watch(connection: impl Future<Output = hyper::Result<()>> + 'static) {
    spawn_local(async move {
        if let Err(cause) = connection.await {
            eprintln!("an upstream connection ended early: {cause}");
        }
    });
}
