//! How an agent's processes reach the gateway. Each has a key of its own, which opens only the agent's model or
//! host.

use std::io;
use std::net::SocketAddr;

use secrecy::SecretString;

use super::config::AgentName;

/// The gateway, for the processes of its agents.
pub trait GatewayAccess: Send + Sync {
    /// Where they reach it.
    fn address(&self) -> SocketAddr;

    /// Makes a key for one process of this agent.
    fn new_key(&self, agent: &AgentName) -> io::Result<ProcessKey>;
}

/// The key of one process. Dropping it revokes it.
pub struct ProcessKey {
    secret: SecretString,
    _registration: Box<dyn Send>,
}

impl ProcessKey {
    /// Wraps a key whose `registration` revokes it when dropped.
    pub fn new(secret: SecretString, registration: impl Send + 'static) -> Self {
        Self { secret, _registration: Box::new(registration) }
    }

    /// The key.
    pub fn secret(&self) -> &SecretString {
        &self.secret
    }
}

/// What one process needs to call the gateway.
pub(super) struct ProcessAccess {
    pub(super) address: SocketAddr,
    pub(super) key: ProcessKey,
}

impl ProcessAccess {
    /// With a new key for a process of this agent.
    pub(super) fn new(gateway: &dyn GatewayAccess, agent: &AgentName) -> io::Result<Self> {
        Ok(Self { address: gateway.address(), key: gateway.new_key(agent)? })
    }

    /// `http://127.0.0.1:PORT`.
    pub(super) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }
}
