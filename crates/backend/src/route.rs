//! Which back ends answer for a model, in which order.

use std::collections::HashMap;
use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolgate_model::observed::BackendKind;
use toolgate_model::{DialectId, ErrorKind, ModelName, TurnError, TurnRequest};

use crate::agent::Agents;
use crate::config::{AgentName, BackendConfig, ModelRoute, Target, Tools, TriggerSecret, UpstreamName, Via};
use crate::demo::Demo;
use crate::http::{AssembleError, Tls, Upstream};
use crate::nearest::nearest;
use crate::pattern::ModelPattern;
use crate::prompted::Prompted;
use crate::stats::{StatsRegistry, UpstreamStats};
use crate::turn::{Answer, Backend, ClientTurn, Relay, RelayTurn, Turn};

/// Finds the route of a model. Each worker has its own router, and with it its own connections.
#[derive(Default)]
pub struct Router {
    exact: HashMap<String, Arc<Route>>,
    patterns: Vec<(ModelPattern, Arc<Route>)>,
    /// The exact names in the operator's order.
    names: Vec<String>,
    /// The routes that only the processes of an agent can use.
    agent_hosts: HashMap<AgentName, Arc<Route>>,
    stats: StatsRegistry,
}

impl Router {
    /// Builds the back ends of a configuration. Opens no connection.
    pub fn assemble(
        config: &BackendConfig,
        tls: &Tls,
        agents: &Agents,
        stats: &StatsRegistry,
    ) -> Result<Self, AssembleError> {
        let mut upstreams: HashMap<&UpstreamName, Arc<dyn Backend>> = HashMap::new();
        for upstream in &config.upstreams {
            let stats = stats.find(&upstream.name);
            let backend = Upstream::new(upstream, &config.proxy, tls, stats)?;
            upstreams.insert(&upstream.name, Arc::new(backend));
        }
        let demo: Arc<dyn Backend> = Arc::new(Demo::new());
        let mut router = Self { stats: stats.clone(), ..Self::default() };
        for model in &config.models {
            let secret = config.trigger_secret.as_ref();
            let targets = model.targets.iter().map(|target| {
                let backend = match &target.via {
                    Via::Demo => Arc::clone(&demo),
                    Via::Agent(name) => agents.find(name).ok_or_else(|| AssembleError::UnknownAgent {
                        model: model.pattern.to_string(),
                        agent: name.to_string(),
                    })?,
                    Via::Upstream(name) => {
                        let found = upstreams.get(name).ok_or_else(|| AssembleError::UnknownUpstream {
                            model: model.pattern.to_string(),
                            upstream: name.to_string(),
                        })?;
                        Arc::clone(found)
                    }
                };
                let target_stats = match &target.via {
                    Via::Upstream(name) => Some(stats.find(name)),
                    Via::Agent(_) | Via::Demo => None,
                };
                Ok(RouteTarget::new(with_tools(backend, model, secret)?, target, target_stats))
            });
            router.add(model, Arc::new(Route { targets: targets.collect::<Result<_, _>>()? }));
        }
        for agent in &config.agents {
            let Some(host) = agent.own_host()? else { continue };
            let backend = Arc::new(Upstream::new(&host, &config.proxy, tls, stats.find(&host.name))?);
            let target = RouteTarget { backend, model: None, stats: None };
            router.agent_hosts.insert(agent.name.clone(), Arc::new(Route { targets: vec![target] }));
        }
        Ok(router)
    }

    /// The route of this model. The error for an unknown one suggests similar names.
    pub fn find(&self, model: &str) -> Result<Arc<Route>, TurnError> {
        let found = self.exact.get(model).or_else(|| {
            self.patterns.iter().find(|(pattern, _)| pattern.matches(model)).map(|(_, route)| route)
        });
        found.map(Arc::clone).ok_or_else(|| self.unknown(model))
    }

    /// The route to an agent's own host, whatever model its program asks for.
    pub fn agent_host(&self, agent: &AgentName) -> Result<Arc<Route>, TurnError> {
        let found = self.agent_hosts.get(agent).map(Arc::clone);
        found.ok_or_else(|| {
            let advice = "set ANTHROPIC_API_KEY in its `env`, or `model` to use one of the gateway's models";
            TurnError::new(ErrorKind::Authentication, format!("the agent `{agent}` has no API key: {advice}"))
        })
    }

    /// The models with exact names, in the operator's order. Patterns name no model.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The counters of all upstreams, shared with all other workers.
    pub fn upstream_stats(&self) -> &StatsRegistry {
        &self.stats
    }

    fn add(&mut self, model: &ModelRoute, route: Arc<Route>) {
        if !model.pattern.is_exact() {
            self.patterns.push((model.pattern.clone(), route));
            return;
        }
        let name = model.pattern.as_str().to_owned();
        if self.exact.insert(name.clone(), route).is_none() {
            self.names.push(name);
        }
    }

    fn unknown(&self, model: &str) -> TurnError {
        const SHOWN_CHARS: usize = 100;
        let shown: String = model.chars().take(SHOWN_CHARS).collect();
        let near = nearest(model, self.models());
        let hint = if near.is_empty() {
            "GET /v1/models lists the models there are".to_owned()
        } else {
            format!("did you mean {}?", near.join(" or "))
        };
        let mut error =
            TurnError::new(ErrorKind::NotFound, format!("model: there is no model `{shown}` here; {hint}"));
        error.code = Some("model_not_found".to_owned());
        error.param = Some("model".into());
        error
    }
}

/// The back end, with tools written into the prompt if the model needs that.
fn with_tools(
    backend: Arc<dyn Backend>,
    model: &ModelRoute,
    secret: Option<&TriggerSecret>,
) -> Result<Arc<dyn Backend>, AssembleError> {
    match (&model.tools, secret) {
        (Tools::Native, _) => Ok(backend),
        (Tools::Prompted(options), Some(secret)) => {
            Ok(Arc::new(Prompted::new(backend, options.clone(), secret.clone())))
        }
        (Tools::Prompted(_), None) => {
            Err(AssembleError::NoTriggerSecret { model: model.pattern.to_string() })
        }
    }
}

/// The back ends of one model, in the order they are tried.
pub struct Route {
    targets: Vec<RouteTarget>,
}

#[derive(Clone)]
struct RouteTarget {
    backend: Arc<dyn Backend>,
    model: Option<ModelName>,
    stats: Option<Arc<UpstreamStats>>,
}

impl RouteTarget {
    fn new(backend: Arc<dyn Backend>, target: &Target, stats: Option<Arc<UpstreamStats>>) -> Self {
        Self { backend, model: target.model.as_deref().map(ModelName::from), stats }
    }

    /// The host, if it speaks this dialect and takes any request in it.
    fn relay(&self, dialect: DialectId) -> Option<&dyn Relay> {
        self.backend.relay_host(None).filter(|relay| relay.dialect() == dialect)
    }

    /// Begins the turn here: with the client's own bytes if the host speaks its dialect, else with the parsed request.
    fn start(&self, turn: &ClientTurn) -> BoxFuture<'static, Result<Answer, TurnError>> {
        let host = self.backend.relay_host(turn.request.as_deref());
        let host = host.filter(|host| host.dialect() == turn.dialect.id());
        let Some((host, relayed)) = host.zip(self.relayed(turn)) else {
            return match turn.request() {
                Ok(request) => self.backend.start(self.turn(turn, request)),
                Err(error) => Box::pin(ready(Err(error))),
            };
        };
        // A request for another model may say what this one refuses.
        let is_for_another = relayed.model.as_ref().is_some_and(|model| host.knows(model));
        if is_for_another && let Ok(request) = turn.request() {
            return self.backend.start(Turn { body: turn.body.clone(), ..self.turn(turn, request) });
        }
        host.relay(relayed)
    }

    fn turn(&self, turn: &ClientTurn, request: Arc<TurnRequest>) -> Turn {
        Turn {
            id: turn.id,
            request,
            body: None,
            dialect: turn.dialect.id(),
            model: self.model.clone(),
            headers: Arc::clone(&turn.headers),
            caller: Arc::clone(&turn.caller),
            session: turn.session.clone(),
            identity: turn.identity.clone(),
        }
    }

    fn relayed(&self, turn: &ClientTurn) -> Option<RelayTurn> {
        Some(RelayTurn {
            id: turn.id,
            body: turn.body.clone()?,
            delivery: turn.delivery,
            model: self.model.clone().filter(|model| *model != turn.model),
            headers: Arc::clone(&turn.headers),
        })
    }
}

impl Route {
    /// Begins the turn at the first target that gives a first event.
    pub fn start(self: &Arc<Self>, turn: ClientTurn) -> BoxFuture<'static, Result<Answer, TurnError>> {
        if let [only] = self.targets.as_slice() {
            return only.start(&turn);
        }
        let route = Arc::clone(self);
        Box::pin(async move { route.start_at_any(&turn).await })
    }

    async fn start_at_any(&self, turn: &ClientTurn) -> Result<Answer, TurnError> {
        let mut last = TurnError::new(
            ErrorKind::Unavailable,
            format!("model: no back end is configured for `{}`; add one to its targets", turn.model),
        );
        let mut failed: Option<&RouteTarget> = None;
        for target in &self.targets {
            if let Some(stats) = failed.and_then(|failed| failed.stats.as_ref()) {
                stats.add_failover();
            }
            failed = Some(target);
            match target.start(turn).await {
                Ok(answer) => return Ok(answer),
                Err(error) if concerns_only_this_target(&error) => {
                    tracing::warn!(
                        id = %turn.id, upstream = %target.backend.name(), status = error.status(), %error,
                        "this back end failed before its first event; trying the next"
                    );
                    last = error;
                }
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Counts input tokens at the first target that speaks the client's dialect; `None` if none does.
    pub fn count_tokens(&self, turn: &ClientTurn) -> BoxFuture<'static, Option<Result<u64, TurnError>>> {
        match self.relay_target(turn) {
            Some((host, turn)) => host.count_tokens(turn),
            None => Box::pin(ready(None)),
        }
    }

    /// Compacts a conversation at the first target that speaks the client's dialect; `None` if none can.
    pub fn compact(&self, turn: &ClientTurn) -> BoxFuture<'static, Option<Result<Answer, TurnError>>> {
        match self.relay_target(turn) {
            Some((host, turn)) => host.compact(turn),
            None => Box::pin(ready(None)),
        }
    }

    /// The first target that takes the client's bytes as they are.
    fn relay_target(&self, turn: &ClientTurn) -> Option<(&dyn Relay, RelayTurn)> {
        self.targets.iter().find_map(|target| target.relay(turn.dialect.id()).zip(target.relayed(turn)))
    }

    /// The targets that speak this dialect themselves; `None` if no target does.
    pub fn speaking(&self, dialect: DialectId) -> Option<Arc<Self>> {
        let speaks = |target: &&RouteTarget| target.relay(dialect).is_some();
        let targets: Vec<RouteTarget> = self.targets.iter().filter(speaks).cloned().collect();
        (!targets.is_empty()).then(|| Arc::new(Self { targets }))
    }

    /// True if every target speaks this dialect itself.
    pub fn speaks_only(&self, dialect: DialectId) -> bool {
        self.targets.iter().all(|target| target.relay(dialect).is_some())
    }

    /// True if the upstream of this name answers every turn.
    pub fn goes_only_to(&self, upstream: &str) -> bool {
        self.targets.iter().all(|target| &**target.backend.name() == upstream)
    }

    /// True if some target's turns belong to sessions that a client may name.
    pub fn keeps_sessions(&self) -> bool {
        self.targets.iter().any(|target| target.backend.keeps_sessions())
    }

    /// The kind of its first target.
    pub fn kind(&self) -> BackendKind {
        self.targets.first().map_or(BackendKind::Native, |target| target.backend.kind())
    }

    /// The first target's name, for logs of turns that never reached one.
    pub fn first_name(&self) -> Option<&Arc<str>> {
        self.targets.first().map(|target| target.backend.name())
    }
}

/// A rejected key or a missing model concerns this host only; a malformed request would fail at every host.
fn concerns_only_this_target(error: &TurnError) -> bool {
    match error.kind {
        ErrorKind::InvalidRequest | ErrorKind::Conflict | ErrorKind::TooLarge | ErrorKind::Cancelled => false,
        ErrorKind::Authentication
        | ErrorKind::Billing
        | ErrorKind::Permission
        | ErrorKind::NotFound
        | ErrorKind::RateLimited
        | ErrorKind::Internal
        | ErrorKind::Upstream
        | ErrorKind::Unavailable
        | ErrorKind::Timeout
        | ErrorKind::Overloaded => true,
    }
}
