//! The key with which the gateway's own agents call it (X4): made at every start, known to nobody else.

use std::net::{IpAddr, SocketAddr};

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use toolgate_backend::{Agents, Door, ModelPattern};

use crate::config::Key;
use crate::server::ServeError;

/// What agents are called in logs and usage records.
const NAME: &str = "agents";

/// The key, and what it opens.
pub(crate) struct HouseKey {
    secret: SecretString,
    /// Nothing where no agent thinks with a model of this gateway.
    known: Option<Key>,
}

impl HouseKey {
    pub(crate) fn for_agents(agents: &Agents) -> Result<Self, ServeError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|_| ServeError::NoRandomness)?;
        let secret = SecretString::from(format!("house-{:032x}", u128::from_be_bytes(bytes)));
        let models = agents.models();
        let known = (!models.is_empty()).then(|| Key {
            name: NAME.to_owned(),
            sha256: Sha256::digest(secret.expose_secret()).into(),
            models: models.iter().map(ModelPattern::new).collect(),
        });
        Ok(Self { secret, known })
    }

    /// What the door must know of it.
    pub(crate) fn known(&self) -> Option<&Key> {
        self.known.as_ref()
    }

    /// The way in, for a gateway that listens here.
    pub(crate) fn door(&self, address: SocketAddr) -> Door {
        let mut address = address;
        if address.ip().is_unspecified() {
            let loopback = match address.ip() {
                IpAddr::V4(_) => IpAddr::from([127, 0, 0, 1]),
                IpAddr::V6(_) => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
            };
            address.set_ip(loopback);
        }
        Door { base_url: format!("http://{address}"), key: self.secret.clone() }
    }
}
