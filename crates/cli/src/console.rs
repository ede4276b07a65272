//! The console of the running gateway: its address, and a token that opens it.

use std::io::{IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::Context;
use toolgate_gateway::{Clock, ConsoleKey, SystemClock};
use toolgate_state::StoreUrl;

use crate::args::Options;
use crate::config;
use crate::environment::Environment;
use crate::store_secret;

/// `toolgate console`: prints the console's address with a new token.
pub(crate) fn run(options: &Options, environment: &Environment, out: &mut dyn Write) -> anyhow::Result<()> {
    let console = Console::find(options, environment)?;
    writeln!(out, "{}", console.link()?)?;
    Ok(())
}

/// The console of a gateway on this machine.
pub(crate) struct Console {
    address: SocketAddr,
    key: ConsoleKey,
}

impl Console {
    pub(crate) fn new(address: SocketAddr, key: ConsoleKey) -> Self {
        Self { address: reachable(address), key }
    }

    /// The console of the gateway that was started with this config.
    pub(crate) fn find(options: &Options, environment: &Environment) -> anyhow::Result<Self> {
        let location = config::locate(options.config.as_deref(), options.listen, environment)?;
        anyhow::ensure!(
            location.listen.port() != 0,
            "the config listens on any free port: add --listen with the address that the gateway printed"
        );
        let secret = store_secret::of_running_gateway(&location.store)?.context(
            "this gateway's store is in memory, so only the gateway itself can make a token: use the console address \
             that it printed when it started",
        )?;
        Ok(Self::new(location.listen, ConsoleKey::derive(&secret)))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// A new token.
    pub(crate) fn token(&self) -> anyhow::Result<String> {
        self.key.issue(SystemClock.now()).context("opening the console")
    }

    /// The address with a new token. Browsers do not send the part after `#`, so the token appears in no log.
    pub(crate) fn link(&self) -> anyhow::Result<String> {
        Ok(format!("http://{}/console#token={}", self.address, self.token()?))
    }

    /// The address for the message at the start. The token is left out if the output may end up in a log and another
    /// process can make one.
    pub(crate) fn greeting(&self, store: &StoreUrl, out: &impl IsTerminal) -> anyhow::Result<String> {
        match store {
            StoreUrl::SqliteFile(_) if !out.is_terminal() => {
                Ok(format!("http://{}/console (`toolgate console` prints a link with a token)", self.address))
            }
            StoreUrl::SqliteFile(_) | StoreUrl::Memory | StoreUrl::SqliteMemory => self.link(),
        }
    }
}

/// The address under which this machine reaches a gateway that listens on all addresses.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        other @ (IpAddr::V4(_) | IpAddr::V6(_)) => other,
    };
    SocketAddr::new(ip, address.port())
}
