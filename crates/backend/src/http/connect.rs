//! Opening connections to a host: TCP, the proxy's tunnel where there is one, and TLS.

use std::error::Error;
use std::future::poll_fn;
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use super::client::Tls;
use super::proxy::{Proxy, ProxyUse};
use crate::config::UpstreamConfig;

/// Detects peers that vanished without closing the connection.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);

/// The cause of a failure, of any type.
pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// A new connection, encrypted or not.
pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Opens connections to one host.
pub(super) struct Dialer {
    connector: Connector,
    /// The host, or the proxy that forwards requests to it.
    destination: Uri,
}

enum Connector {
    Plain(HttpsConnector<HttpConnector>),
    Tunnel(HttpsConnector<Tunnel<HttpConnector>>),
}

impl Dialer {
    pub(super) fn new(config: &UpstreamConfig, tls: &Tls, proxy: &ProxyUse) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // Divided among the addresses of a name, so that one that does not answer leaves time for the next.
        tcp.set_connect_timeout(Some(config.timeouts.connect));
        tcp.set_keepalive(Some(TCP_KEEPALIVE));
        let host = config.base_url.clone();
        match proxy {
            ProxyUse::Direct => Self { connector: Connector::Plain(encrypted(tcp, tls)), destination: host },
            ProxyUse::Forward(Proxy { uri, authorization: _ }) => {
                Self { connector: Connector::Plain(encrypted(tcp, tls)), destination: uri.clone() }
            }
            ProxyUse::Tunnel(Proxy { uri, authorization }) => {
                let mut tunnel = Tunnel::new(uri.clone(), tcp);
                if let Some(authorization) = authorization {
                    tunnel = tunnel.with_auth(authorization.clone());
                }
                Self { connector: Connector::Tunnel(encrypted(tunnel, tls)), destination: host }
            }
        }
    }

    pub(super) async fn dial(&self) -> Result<Stream, BoxError> {
        let to = self.destination.clone();
        match &self.connector {
            Connector::Plain(connector) => call(connector.clone(), to).await,
            Connector::Tunnel(connector) => call(connector.clone(), to).await,
        }
    }
}

fn encrypted<C>(transport: C, tls: &Tls) -> HttpsConnector<C> {
    HttpsConnectorBuilder::new()
        .with_tls_config(tls.config())
        .https_or_http()
        .enable_http1()
        .enable_http2()
        .wrap_connector(transport)
}

async fn call<S>(mut connector: S, to: Uri) -> Result<Stream, BoxError>
where
    S: Service<Uri, Response = Stream, Error = BoxError>,
{
    poll_fn(|cx| connector.poll_ready(cx)).await?;
    connector.call(to).await
}
