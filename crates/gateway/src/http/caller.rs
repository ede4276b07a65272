//! Callers: the owners of keys, or anybody on this machine if there are no keys.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};
use toolgate_backend::config::{AgentConfig, AgentModel, AgentName};
use toolgate_backend::{ModelPattern, Route, Router};
use toolgate_dialect::claude_stream_json::without_program_prompt;
use toolgate_model::{ErrorKind, TurnError};
use toolgate_state::CallerScope;

use super::door::Peer;
use crate::agent_key::AgentKeys;
use crate::config::Key;

/// The name of agent processes in logs and usage records.
const AGENTS: &str = "agents";

/// The caller of a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller(Arc<Identity>);

#[derive(Debug)]
struct Identity {
    name: Arc<str>,
    scope: CallerScope,
    access: Access,
    tenancy: Tenancy,
}

/// What a caller may use.
#[derive(Debug)]
enum Access {
    /// A client: these models.
    Models(Vec<ModelPattern>),
    /// A process of an agent that uses this model.
    AgentModel(ModelPattern, AgentPrompt),
    /// A process of an agent with a host of its own: whatever model it asks for there.
    AgentHost(AgentName, AgentPrompt),
}

/// What an agent's model sees of the program's own instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AgentPrompt {
    /// All of them.
    Whole,
    /// Nothing: only what the client says.
    ClientsOnly,
}

/// Whether callers must be kept apart.
#[derive(Debug, PartialEq, Eq)]
enum Tenancy {
    /// One user on this machine.
    Single,
    /// Callers with keys, who must not see each other's data.
    Shared,
}

impl Caller {
    /// The name under which this caller's data is stored.
    pub(crate) fn scope(&self) -> &CallerScope {
        &self.0.scope
    }

    /// The caller's name.
    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(&self.0.name)
    }

    /// True if this caller may use the model.
    pub(crate) fn may_use(&self, model: &str) -> bool {
        match &self.0.access {
            Access::Models(patterns) => patterns.iter().any(|pattern| pattern.matches(model)),
            Access::AgentModel(pattern, _) => pattern.matches(model),
            Access::AgentHost(..) => true,
        }
    }

    /// True for a process of one of the gateway's own agents. Its requests are part of a client's turn.
    pub(crate) fn is_agent(&self) -> bool {
        match self.0.access {
            Access::Models(_) => false,
            Access::AgentModel(..) | Access::AgentHost(..) => true,
        }
    }

    /// The body of this caller's request to a model, without what the model should not see.
    pub(crate) fn model_request(&self, body: Bytes) -> Bytes {
        match self.0.access {
            Access::AgentModel(_, AgentPrompt::ClientsOnly)
            | Access::AgentHost(_, AgentPrompt::ClientsOnly) => {
                without_program_prompt(&body).map_or(body, Bytes::from)
            }
            Access::Models(_)
            | Access::AgentModel(_, AgentPrompt::Whole)
            | Access::AgentHost(_, AgentPrompt::Whole) => body,
        }
    }

    /// The route of a model, if this caller may use it.
    pub(crate) fn route(&self, router: &Router, model: &str) -> Result<Arc<Route>, TurnError> {
        if let Access::AgentHost(agent, _) = &self.0.access {
            return router.agent_host(agent);
        }
        self.check_model(model)?;
        router.find(model)
    }

    /// True if there are no other callers whose data must stay hidden.
    pub(crate) fn is_only_tenant(&self) -> bool {
        self.0.tenancy == Tenancy::Single
    }

    /// Refuses a model that this caller may not use.
    pub(crate) fn check_model(&self, model: &str) -> Result<(), TurnError> {
        if self.may_use(model) {
            return Ok(());
        }
        let name = self.scope();
        Err(TurnError::new(
            ErrorKind::Permission,
            format!("model: the key of `{name}` may not use this model; GET /v1/models lists those it may"),
        ))
    }

    /// The caller of routes without a key. May use no model.
    pub(crate) fn anonymous() -> Self {
        static ANONYMOUS: std::sync::LazyLock<Caller> = std::sync::LazyLock::new(|| {
            Caller::new("anonymous", Access::Models(Vec::new()), Tenancy::Shared)
        });
        ANONYMOUS.clone()
    }

    /// A process of an agent.
    pub(crate) fn agent(config: &AgentConfig) -> Self {
        let prompt =
            if config.shows_only_instructions() { AgentPrompt::ClientsOnly } else { AgentPrompt::Whole };
        let access = match &config.model {
            AgentModel::Gateway(model) => Access::AgentModel(ModelPattern::new(model), prompt),
            AgentModel::Default => Access::AgentHost(config.name.clone(), prompt),
        };
        Self::new(AGENTS, access, Tenancy::Shared)
    }

    fn new(name: &str, access: Access, tenancy: Tenancy) -> Self {
        Self(Arc::new(Identity { name: Arc::from(name), scope: CallerScope::new(name), access, tenancy }))
    }
}

/// All callers that are admitted.
pub(super) struct Callers {
    known: Vec<([u8; 32], Caller)>,
    /// Any client on this machine, if there are no keys.
    local: Caller,
    /// The processes of the gateway's own agents.
    agents: Arc<AgentKeys>,
}

impl Callers {
    pub(super) fn new(keys: &[Key], agents: Arc<AgentKeys>) -> Self {
        let caller = |key: &Key| {
            (key.sha256, Caller::new(&key.name, Access::Models(key.models.clone()), Tenancy::Shared))
        };
        let every_model = Access::Models(vec![ModelPattern::new("*")]);
        Self {
            known: keys.iter().map(caller).collect(),
            local: Caller::new("local", every_model, Tenancy::Single),
            agents,
        }
    }

    pub(super) fn find(&self, headers: &HeaderMap, peer: Peer) -> Result<Caller, TurnError> {
        if let Some(agent) = self.agent(headers) {
            return Ok(agent);
        }
        if self.known.is_empty() {
            return self.without_keys(peer);
        }
        let mut given = keys_in(headers).peekable();
        if given.peek().is_none() {
            return Err(refusal(
                "the request has no key; send one as `x-api-key` or `Authorization: Bearer`",
            ));
        }
        given
            .find_map(|key| self.owner(key))
            .ok_or_else(|| refusal("unknown key; check it, or ask the operator for a new one"))
    }

    /// The process of an agent.
    pub(super) fn find_agent(&self, headers: &HeaderMap) -> Result<Caller, TurnError> {
        self.agent(headers)
            .ok_or_else(|| refusal("this port is for the processes of agents, which have keys of their own"))
    }

    fn agent(&self, headers: &HeaderMap) -> Option<Caller> {
        keys_in(headers).find_map(|key| self.agents.find(key))
    }

    fn without_keys(&self, peer: Peer) -> Result<Caller, TurnError> {
        if peer.is_this_machine() {
            return Ok(self.local.clone());
        }
        Err(TurnError::new(
            ErrorKind::Permission,
            "this gateway has no keys, so only clients on its own machine may call; the operator can add [[keys]]",
        ))
    }

    /// Compares with every known key, each in constant time, so that timing reveals nothing about them.
    fn owner(&self, key: &[u8]) -> Option<Caller> {
        let hash: [u8; 32] = Sha256::digest(key).into();
        let mut owner = None;
        for (known, caller) in &self.known {
            let same: Choice = known.ct_eq(&hash);
            if bool::from(same) {
                owner = Some(caller);
            }
        }
        owner.cloned()
    }
}

fn keys_in(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let own_header = headers.get("x-api-key").map(http::HeaderValue::as_bytes);
    let bearer = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.as_bytes().split_at_checked("Bearer ".len())?;
        scheme.eq_ignore_ascii_case(b"Bearer ").then(|| key.trim_ascii())
    });
    own_header.into_iter().chain(bearer)
}

fn refusal(message: &str) -> TurnError {
    let mut error = TurnError::new(ErrorKind::Authentication, message);
    error.code = Some("invalid_api_key".to_owned());
    error
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::super::door::Entrance;
    use super::*;

    fn callers() -> Callers {
        let key = |name: &str, secret: &str, models: &[&str]| Key {
            name: name.to_owned(),
            sha256: Sha256::digest(secret).into(),
            models: models.iter().copied().map(ModelPattern::new).collect(),
        };
        Callers::new(&[key("alice", "a-key", &["*"]), key("bob", "b-key", &["gpt-*"])], Arc::default())
    }

    fn find(
        callers: &Callers,
        headers: &[(&'static str, &'static str)],
        peer: &str,
    ) -> Result<String, ErrorKind> {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let found = callers
            .find(&headers, Peer { address: peer.parse().expect("an address"), entrance: Entrance::Clients });
        found.map(|caller| caller.scope().to_string()).map_err(|error| error.kind)
    }

    #[test]
    fn a_key_names_its_owner_in_either_header() {
        let far = "10.0.0.9:1";
        assert_eq!(find(&callers(), &[("x-api-key", "a-key")], far), Ok("alice".to_owned()));
        assert_eq!(find(&callers(), &[("authorization", "bearer b-key")], far), Ok("bob".to_owned()));
        assert_eq!(
            find(&callers(), &[("x-api-key", "placeholder"), ("authorization", "Bearer b-key")], far),
            Ok("bob".to_owned())
        );
    }

    #[test]
    fn a_wrong_or_missing_key_is_refused_even_from_here() {
        let here = "127.0.0.1:1";
        assert_eq!(find(&callers(), &[], here), Err(ErrorKind::Authentication));
        assert_eq!(find(&callers(), &[("x-api-key", "c-key")], here), Err(ErrorKind::Authentication));
        assert_eq!(
            find(&callers(), &[("authorization", "Basic a-key")], here),
            Err(ErrorKind::Authentication)
        );
    }

    #[test]
    fn without_keys_only_this_machine_may_call() {
        let keyless = Callers::new(&[], Arc::default());
        assert_eq!(find(&keyless, &[], "127.0.0.1:1"), Ok("local".to_owned()));
        assert_eq!(find(&keyless, &[], "[::ffff:127.0.0.1]:1"), Ok("local".to_owned()));
        assert_eq!(find(&keyless, &[("x-api-key", "a-key")], "10.0.0.9:1"), Err(ErrorKind::Permission));
    }

    #[test]
    fn a_key_opens_its_own_models_only() {
        let callers = callers();
        let bob = callers.owner(b"b-key").expect("bob");
        assert!(bob.check_model("gpt-4o").is_ok());
        assert_eq!(bob.check_model("claude").map_err(|error| error.kind), Err(ErrorKind::Permission));
    }
}
