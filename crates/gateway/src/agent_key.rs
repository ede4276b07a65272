//! The keys of agent processes (X4). Each process has its own, made when it starts and revoked when it ends; it opens
//! only the model of its agent. No key is stored.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use toolgate_backend::config::{AgentConfig, AgentName};
use toolgate_backend::{GatewayAccess, ProcessKey};

use crate::http::Caller;

/// How every such key begins, so that other keys need not be compared with them.
const PREFIX: &str = "agent-";

/// More processes than a machine runs.
const MAX_KEYS: usize = 4096;

type KeyHash = [u8; 32];

/// The keys of all running agent processes.
#[derive(Default)]
pub(crate) struct AgentKeys {
    callers: HashMap<AgentName, Caller>,
    live: Mutex<Vec<(KeyHash, Caller)>>,
}

impl AgentKeys {
    pub(crate) fn new(agents: &[AgentConfig]) -> Self {
        let callers = agents.iter().map(|agent| (agent.name.clone(), Caller::agent(agent)));
        Self { callers: callers.collect(), live: Mutex::default() }
    }

    /// The agent whose process has this key. Compares with every key, each in constant time.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Caller> {
        if !key.starts_with(PREFIX.as_bytes()) {
            return None;
        }
        let hash: KeyHash = Sha256::digest(key).into();
        let mut owner = None;
        for (known, caller) in &*self.live.lock() {
            if bool::from(known.ct_eq(&hash)) {
                owner = Some(caller.clone());
            }
        }
        owner
    }

    fn make(self: &Arc<Self>, agent: &AgentName) -> io::Result<ProcessKey> {
        let caller = self.callers.get(agent).ok_or_else(|| io::Error::other("the agent is unknown"))?;
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|_| io::Error::other("the system gave no random bytes"))?;
        let secret = SecretString::from(format!("{PREFIX}{:032x}", u128::from_be_bytes(bytes)));
        let hash: KeyHash = Sha256::digest(secret.expose_secret()).into();
        let mut live = self.live.lock();
        if live.len() >= MAX_KEYS {
            return Err(io::Error::other("too many agent processes are running"));
        }
        live.push((hash, caller.clone()));
        Ok(ProcessKey::new(secret, Registration { keys: Arc::clone(self), hash }))
    }
}

/// Revokes a key when it is dropped.
struct Registration {
    keys: Arc<AgentKeys>,
    hash: KeyHash,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.keys.live.lock().retain(|(hash, _)| *hash != self.hash);
    }
}

/// A gateway that listens, for its own agents.
pub(crate) struct ListeningGateway {
    address: SocketAddr,
    keys: Arc<AgentKeys>,
}

impl ListeningGateway {
    /// Agents reach it at this address.
    pub(crate) fn new(address: SocketAddr, keys: Arc<AgentKeys>) -> Self {
        Self { address, keys }
    }
}

impl GatewayAccess for ListeningGateway {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn new_key(&self, agent: &AgentName) -> io::Result<ProcessKey> {
        self.keys.make(agent)
    }
}

#[cfg(test)]
mod tests {
    use toolgate_backend::config::AgentModel;

    use super::*;

    fn keys() -> Arc<AgentKeys> {
        let mut with_model = AgentConfig::new("small", "claude".into(), "folder".into());
        with_model.model = AgentModel::Gateway("demo".to_owned());
        let own_host = AgentConfig::new("claude", "claude".into(), "folder".into());
        Arc::new(AgentKeys::new(&[with_model, own_host]))
    }

    #[test]
    fn a_key_lives_as_long_as_its_process() {
        let keys = keys();
        let [first, second] =
            ["small", "claude"].map(|name| keys.make(&AgentName::new(name)).expect("a key"));
        let found = |secret: &str| keys.find(secret.as_bytes()).is_some();
        let secrets = [&first, &second].map(|key| key.secret().expose_secret().to_owned());
        assert!(found(&secrets[0]) && found(&secrets[1]));
        assert_ne!(secrets[0], secrets[1]);
        drop(first);
        assert!(!found(&secrets[0]), "it is revoked");
        assert!(found(&secrets[1]), "the other one is not");
        drop(second);
        assert!(keys.live.lock().is_empty());
    }

    #[test]
    fn a_key_opens_only_the_model_of_its_agent() {
        let keys = keys();
        let key = keys.make(&AgentName::new("small")).expect("a key");
        let caller = keys.find(key.secret().expose_secret().as_bytes()).expect("its caller");
        assert!(caller.is_agent() && caller.check_model("demo").is_ok());
        assert!(caller.check_model("gpt-4o").is_err());
    }

    #[test]
    fn keys_are_bounded() {
        let keys = keys();
        let agent = AgentName::new("small");
        let held: Vec<_> = (0..MAX_KEYS).map(|_| keys.make(&agent).expect("a key")).collect();
        assert!(keys.make(&agent).is_err());
        drop(held);
        assert!(keys.make(&agent).is_ok());
        assert!(keys.make(&AgentName::new("unknown")).is_err());
    }
}
