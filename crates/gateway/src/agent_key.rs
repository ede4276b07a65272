//! The key with which the gateway's own agents call the gateway (X4). It is generated at every start and never stored.

use std::net::{IpAddr, SocketAddr};

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use toolgate_backend::{Agents, GatewayAccess, ModelPattern};

use crate::config::Key;
use crate::server::ServeError;

/// The name of the agents' key in logs and usage records.
const NAME: &str = "agents";

/// The agents' key and its permissions.
pub(crate) struct AgentKey {
    secret: SecretString,
    /// The key's entry for the gateway's key check; `None` if no agent uses a gateway model.
    key: Option<Key>,
}

impl AgentKey {
    pub(crate) fn for_agents(agents: &Agents) -> Result<Self, ServeError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|_| ServeError::NoRandomness)?;
        let secret = SecretString::from(format!("agent-{:032x}", u128::from_be_bytes(bytes)));
        let models = agents.models();
        let key = (!models.is_empty()).then(|| Key {
            name: NAME.to_owned(),
            sha256: Sha256::digest(secret.expose_secret()).into(),
            models: models.iter().map(ModelPattern::new).collect(),
        });
        Ok(Self { secret, key })
    }

    /// The entry for the gateway's key check.
    pub(crate) fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// The base URL and key for agents of a gateway that listens at `address`.
    pub(crate) fn gateway_access(&self, address: SocketAddr) -> GatewayAccess {
        let mut address = address;
        if address.ip().is_unspecified() {
            let loopback = match address.ip() {
                IpAddr::V4(_) => IpAddr::from([127, 0, 0, 1]),
                IpAddr::V6(_) => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
            };
            address.set_ip(loopback);
        }
        GatewayAccess { base_url: format!("http://{address}"), key: self.secret.clone() }
    }
}
