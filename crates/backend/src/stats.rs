//! Counters of what happens between this program and its hosts, shared by all workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::config::{BackendConfig, UpstreamName};

/// Counters of one upstream.
#[derive(Debug, Default)]
pub struct UpstreamStats {
    retries: AtomicU64,
    failovers: AtomicU64,
    connections_opened: AtomicU64,
    connections_open: AtomicU64,
    in_flight: AtomicU64,
}

impl UpstreamStats {
    /// Requests that were sent again to the same host.
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Turns that were given to the next target because this upstream failed.
    pub fn failovers(&self) -> u64 {
        self.failovers.load(Ordering::Relaxed)
    }

    /// Connections that were opened since the start.
    pub fn connections_opened(&self) -> u64 {
        self.connections_opened.load(Ordering::Relaxed)
    }

    /// Connections that are open now.
    pub fn connections_open(&self) -> u64 {
        self.connections_open.load(Ordering::Relaxed)
    }

    /// Requests that are being sent or answered now.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(crate) fn add_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_failover(&self) {
        self.failovers.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts a connection as open until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection(Arc<UpstreamStats>);

impl OpenConnection {
    pub(crate) fn new(stats: &Arc<UpstreamStats>) -> Self {
        stats.connections_opened.fetch_add(1, Ordering::Relaxed);
        stats.connections_open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(stats))
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections_open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts a request as in flight until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<UpstreamStats>);

impl InFlight {
    pub(crate) fn new(stats: &Arc<UpstreamStats>) -> Self {
        stats.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(stats))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The counters of all upstreams of a configuration. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct StatsRegistry(Arc<[(UpstreamName, Arc<UpstreamStats>)]>);

impl StatsRegistry {
    /// Counters for every upstream of the configuration, the agents' own hosts included.
    pub fn new(config: &BackendConfig) -> Self {
        let of_agents = config.agents.iter().filter_map(|agent| agent.own_host().ok().flatten());
        let names = config.upstreams.iter().map(|upstream| upstream.name.clone());
        Self(names.chain(of_agents.map(|host| host.name)).map(|name| (name, Arc::default())).collect())
    }

    /// The upstreams in the operator's order.
    pub fn iter(&self) -> impl Iterator<Item = (&UpstreamName, &Arc<UpstreamStats>)> {
        self.0.iter().map(|(name, stats)| (name, stats))
    }

    /// The counters of this upstream; new ones, which nobody else sees, for one that is not in the configuration.
    pub(crate) fn find(&self, name: &UpstreamName) -> Arc<UpstreamStats> {
        let found = self.iter().find(|(known, _)| *known == name);
        found.map(|(_, stats)| Arc::clone(stats)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use http::Uri;

    use super::*;
    use crate::config::UpstreamConfig;

    #[test]
    fn workers_share_the_counters_of_an_upstream() {
        let mut config = BackendConfig::default();
        for name in ["a", "b"] {
            let url = Uri::from_static("http://h");
            config.upstreams.push(UpstreamConfig::new(name, "openai-chat", url));
        }
        let registry = StatsRegistry::new(&config);
        let connections =
            [(); 2].map(|()| OpenConnection::new(&registry.clone().find(&UpstreamName::new("b"))));
        let in_flight = InFlight::new(&registry.find(&UpstreamName::new("b")));
        drop(connections);
        registry.find(&UpstreamName::new("a")).add_failover();
        let counts = |(name, stats): (&UpstreamName, &Arc<UpstreamStats>)| {
            let connections = (stats.connections_opened(), stats.connections_open());
            (name.to_string(), connections, stats.in_flight(), stats.failovers())
        };
        let counted: Vec<_> = registry.iter().map(counts).collect();
        assert_eq!(counted, [("a".to_owned(), (0, 0), 0, 1), ("b".to_owned(), (2, 0), 1, 0)]);
        drop(in_flight);
    }
}
