//! The checks before every route: the `Host` header, the origin of a browser's page, and the caller's key.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderName, Request, Uri};
use toolgate_model::{ErrorKind, TurnError};

use super::caller::{Caller, Callers};
use super::console::is_console;
use crate::agent_key::AgentKeys;
use crate::config::GatewayConfig;

/// What agent processes use. An agent's tools can read its key, so it opens nothing else.
const AGENT_PATHS: [&str; 2] = ["/v1/messages", "/v1/messages/count_tokens"];

/// Decides which requests are admitted.
pub(crate) struct Door {
    listen: SocketAddr,
    /// Names or `name:port` that the operator allows, in lower case.
    hosts: Vec<String>,
    callers: Callers,
}

/// A client, and the listener that accepted it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) entrance: Entrance,
}

/// The gateway's listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// The address in the configuration.
    Clients,
    /// The port for the gateway's own agents, the only one that their sandbox lets them reach. Here nothing works
    /// without the key of a process: on a gateway without keys, an agent would otherwise be a local client that may use
    /// every model.
    Agents,
}

impl Peer {
    pub(super) fn is_this_machine(self) -> bool {
        self.address.ip().to_canonical().is_loopback()
    }
}

impl Door {
    pub(crate) fn new(config: &GatewayConfig, agents: Arc<AgentKeys>) -> Self {
        let hosts = config.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        Self { listen: config.listen, hosts, callers: Callers::new(&config.keys, agents) }
    }

    /// Admits a request and identifies its caller.
    pub(crate) fn admit<B>(&self, request: &Request<B>, peer: Peer) -> Result<Caller, TurnError> {
        self.check_host(request)?;
        check_origin(request)?;
        let caller = match peer.entrance {
            Entrance::Agents => self.callers.find_agent(request.headers())?,
            // Probes need no key, and the console has tokens of its own.
            Entrance::Clients if is_open_to_all(request.uri().path()) => return Ok(Caller::anonymous()),
            Entrance::Clients => self.callers.find(request.headers(), peer)?,
        };
        if caller.is_agent() && !AGENT_PATHS.contains(&request.uri().path()) {
            return Err(forbidden("the key of an agent opens only the Messages API".to_owned()));
        }
        Ok(caller)
    }

    /// A page of another site can make its own name resolve to our address (DNS rebinding), but it cannot change the
    /// `Host` that its browser then sends. So only known names are accepted.
    fn check_host<B>(&self, request: &Request<B>) -> Result<(), TurnError> {
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
        if let Some(Ok(address)) = host.map(str::parse::<SocketAddr>)
            && self.is_our_address(address.ip())
        {
            // The usual case: an address and a port.
            return Ok(());
        }
        let named =
            authority(request).ok_or_else(|| forbidden("the request names no valid Host".to_owned()))?;
        if self.is_ours(&named) {
            return Ok(());
        }
        Err(forbidden(format!(
            "this gateway does not answer to the name `{}`; the operator can allow it with `hosts`",
            named.host()
        )))
    }

    fn is_ours(&self, named: &Authority) -> bool {
        let host = named.host().to_ascii_lowercase();
        if host == "localhost" {
            return true;
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if bare.parse::<IpAddr>().is_ok_and(|address| self.is_our_address(address)) {
            return true;
        }
        let whole = named.as_str().to_ascii_lowercase();
        self.hosts.iter().any(|known| *known == host || *known == whole)
    }

    /// An address cannot be rebound, so a gateway that listens on all addresses accepts each of them.
    fn is_our_address(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.listen.ip() == address || self.listen.ip().is_unspecified()
    }
}

fn is_open_to_all(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz") || is_console(path)
}

/// The name and port that the request is addressed to.
fn authority<B>(request: &Request<B>) -> Option<Authority> {
    match request.headers().get(HOST) {
        Some(host) => Authority::try_from(host.as_bytes()).ok(),
        None => request.uri().authority().cloned(),
    }
}

/// Browsers name the origin of the page that sends a request. Only our own pages may.
fn check_origin<B>(request: &Request<B>) -> Result<(), TurnError> {
    const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
    let headers = request.headers();
    if let Some(site) = headers.get(SEC_FETCH_SITE)
        && !matches!(site.as_bytes(), b"same-origin" | b"none")
    {
        return Err(forbidden("a page of another site may not call this gateway".to_owned()));
    }
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let page = Uri::try_from(origin.as_bytes()).ok().and_then(|origin| {
        let port = port_of(origin.authority()?, origin.scheme_str()?)?;
        Some((origin.host()?.to_ascii_lowercase(), port, origin.scheme_str()?.to_owned()))
    });
    let is_ours = page.zip(authority(request)).is_some_and(|((page_host, page_port, scheme), host)| {
        page_host.eq_ignore_ascii_case(host.host()) && port_of(&host, &scheme) == Some(page_port)
    });
    if is_ours {
        return Ok(());
    }
    Err(forbidden("a page of another site may not call this gateway".to_owned()))
}

fn port_of(authority: &Authority, scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(authority.port_u16().unwrap_or(80)),
        "https" => Some(authority.port_u16().unwrap_or(443)),
        _ => None,
    }
}

fn forbidden(message: String) -> TurnError {
    TurnError::new(ErrorKind::Permission, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(listen: &str, hosts: &[&str]) -> Door {
        let mut config = GatewayConfig::new(listen.parse().expect("an address"));
        config.hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        Door::new(&config, Arc::default())
    }

    fn admits(door: &Door, headers: &[(&str, &str)]) -> bool {
        let mut request = Request::builder().uri("/v1/models");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).expect("a request");
        door.admit(&request, peer(Entrance::Clients)).is_ok()
    }

    fn peer(entrance: Entrance) -> Peer {
        Peer { address: "127.0.0.1:5000".parse().expect("an address"), entrance }
    }

    #[test]
    fn the_agents_entrance_opens_nothing_without_the_key_of_a_process() {
        let door = door("127.0.0.1:8787", &[]);
        for path in ["/v1/messages", "/v1/models", "/healthz", "/console", "/console/api/approvals"] {
            let request = Request::builder().uri(path).header("host", "127.0.0.1:9").body(());
            let admitted = door.admit(&request.expect("a request"), peer(Entrance::Agents));
            assert!(admitted.is_err(), "{path}");
        }
    }

    #[test]
    fn it_answers_to_its_own_names_only() {
        let door = door("127.0.0.1:8787", &["Gate.lan", "other.lan:99"]);
        for host in
            ["localhost:8787", "127.0.0.1:8787", "[::1]:8787", "LOCALHOST", "gate.lan:1", "other.lan:99"]
        {
            assert!(admits(&door, &[("host", host)]), "{host}");
        }
        for host in ["evil.example", "10.0.0.1:8787", "other.lan:98", "localhost.evil.example", ""] {
            assert!(!admits(&door, &[("host", host)]), "{host}");
        }
        assert!(!admits(&door, &[]));
    }

    #[test]
    fn an_open_listener_answers_to_addresses_but_not_to_names() {
        let door = door("0.0.0.0:8787", &[]);
        assert!(admits(&door, &[("host", "192.168.1.5:8787")]));
        assert!(!admits(&door, &[("host", "evil.example:8787")]));
    }

    #[test]
    fn only_our_own_pages_may_call() {
        let door = door("127.0.0.1:8787", &[]);
        let from = |origin| admits(&door, &[("host", "localhost:8787"), ("origin", origin)]);
        assert!(from("http://localhost:8787"));
        for origin in [
            "http://localhost:3000",
            "http://evil.example",
            "null",
            "http://localhost:8787.evil.example",
            "file://",
        ] {
            assert!(!from(origin), "{origin}");
        }
        let fetched = |site| admits(&door, &[("host", "localhost:8787"), ("sec-fetch-site", site)]);
        assert!(fetched("same-origin") && fetched("none"));
        assert!(!fetched("cross-site") && !fetched("same-site"));
    }
}
