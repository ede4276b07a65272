//! The configuration of back ends, in types that cannot hold invalid values. The `cli` reads the files.

use std::fmt;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};
use secrecy::SecretString;
use toolgate_dialect::host::HostFacts;
use toolgate_dialect::registry;
use toolgate_model::DialectId;
use toolgate_prompted::{PromptedOptions, Secret};

use crate::pattern::ModelPattern;

pub use crate::agent::bypasses_the_gateway;
pub use crate::agent::config::{
    AgentConfig, AgentModel, AgentName, Builtins, PoolSize, Supervision, SystemMode,
};
pub use crate::agent::sandbox::{Connect, SandboxConfig, SandboxMode};

/// Everything [`Router::assemble`](crate::Router::assemble) needs.
#[derive(Clone, Debug, Default)]
pub struct BackendConfig {
    /// All hosts.
    pub upstreams: Vec<UpstreamConfig>,
    /// All agents.
    pub agents: Vec<AgentConfig>,
    /// The routes. Exact names win over patterns; among patterns the first match wins.
    pub models: Vec<ModelRoute>,
    /// Needed where a model has [`Tools::Prompted`].
    pub trigger_secret: Option<TriggerSecret>,
    /// The proxies that upstreams are reached through.
    pub proxy: ProxyConfig,
}

/// HTTP proxies by the scheme of the upstream's URL. A proxy's URL may hold a user name and a password.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxyConfig {
    /// For `https://` upstreams.
    pub https: Option<Uri>,
    /// For `http://` upstreams.
    pub http: Option<Uri>,
    /// Hosts that are reached directly, as `NO_PROXY` lists them; `*` is every host.
    pub no_proxy: Vec<String>,
}

/// Hides user names and passwords.
impl fmt::Debug for ProxyConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { https, http, no_proxy } = self;
        f.debug_struct("ProxyConfig")
            .field("https", &https.as_ref().and_then(Uri::host))
            .field("http", &http.as_ref().and_then(Uri::host))
            .field("no_proxy", no_proxy)
            .finish()
    }
}

/// What makes the marks of prompted calls unguessable. The same for all workers and over restarts, so that a
/// conversation keeps its marks. Never shown.
#[derive(Clone)]
pub struct TriggerSecret(pub(crate) Secret);

impl TriggerSecret {
    /// Takes random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Secret(bytes))
    }
}

impl fmt::Debug for TriggerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TriggerSecret(hidden)")
    }
}

/// A host that speaks one of our dialects.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// As in `[upstreams.NAME]`; targets refer to it, and it is what logs and headers show.
    pub name: UpstreamName,
    /// The dialect's name in the registry: `anthropic-messages`, `openai-chat`, `openai-responses`.
    pub dialect: &'static str,
    /// Everything before `/messages`, `/chat/completions` or `/responses`.
    pub base_url: Uri,
    /// Our key at the host. Hosts on this machine often need none.
    pub api_key: Option<SecretString>,
    /// What the host accepts.
    pub facts: HostFacts,
    /// How long to wait for the host.
    pub timeouts: HostDeadlines,
    /// How often to send a request again.
    pub retry: Retry,
    /// Sent with every request. They replace headers of the dialect.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Whose requests it answers.
    pub used_by: UsedBy,
}

/// Whose requests an upstream answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UsedBy {
    /// The callers' that use one of its models.
    #[default]
    Callers,
    /// Those of one agent's processes.
    Agent,
}

impl UpstreamConfig {
    /// A host with default deadlines and without a key.
    pub fn new(name: impl Into<String>, dialect: &'static str, base_url: Uri) -> Self {
        let id = dialect_id(dialect);
        let facts = HostFacts::at(id, base_url.host().unwrap_or_default());
        Self {
            name: UpstreamName::new(name),
            dialect,
            base_url,
            api_key: None,
            facts,
            timeouts: HostDeadlines::default(),
            retry: Retry::default(),
            headers: Vec::new(),
            used_by: UsedBy::default(),
        }
    }
}

/// The id of a dialect. Unknown ones are reported when the back ends are assembled.
fn dialect_id(name: &'static str) -> DialectId {
    registry::find(name).map_or(DialectId { name, provider: "" }, |dialect| dialect.upstream.id())
}

/// The name of an upstream in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UpstreamName(String);

impl UpstreamName {
    /// Takes the name as it is.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UpstreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How long to wait for a host. Every wait has a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostDeadlines {
    /// For a connection that is ready to use: name lookup, TCP, the proxy's tunnel, TLS and the HTTP/2 handshake.
    pub connect: Duration,
    /// Without progress while the request is sent.
    pub write: Duration,
    /// From the request being sent until the head of the response. For HTTP/2, from the start of the request.
    pub first_byte: Duration,
    /// Between two pieces of the response's body.
    pub idle: Duration,
    /// For the whole exchange that counts the tokens of a request.
    pub count_tokens: Duration,
    /// Between two pings on an HTTP/2 connection, and for the reply to each.
    pub http2_keep_alive: Duration,
}

impl Default for HostDeadlines {
    /// A model may think for minutes before it writes the first word, or between two; a network answers in seconds.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            write: Duration::from_mins(1),
            first_byte: Duration::from_mins(10),
            idle: Duration::from_mins(5),
            count_tokens: Duration::from_secs(30),
            http2_keep_alive: Duration::from_secs(20),
        }
    }
}

/// How often a request is sent again to the same host, if the host has not received or has refused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How often, beyond the first time.
    pub retries: u32,
    /// The wait before the first retry; it doubles each time.
    pub backoff: Duration,
    /// The longest wait, also for a `retry-after` of the host. With a longer `retry-after`, the error goes to the next
    /// target or to the client at once.
    pub longest_wait: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { retries: 2, backoff: Duration::from_millis(300), longest_wait: Duration::from_secs(8) }
    }
}

/// The back ends of a model name or pattern.
#[derive(Clone, Debug)]
pub struct ModelRoute {
    /// `gpt-4o-mini`, or with a star: `claude-*`.
    pub pattern: ModelPattern,
    /// Tried in this order, until one gives a first event.
    pub targets: Vec<Target>,
    /// How the model gets its tools.
    pub tools: Tools,
}

/// How a model gets its tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Tools {
    /// The host takes them.
    #[default]
    Native,
    /// They are written into the prompt, and calls are read from the model's text.
    Prompted(PromptedOptions),
}

/// One back end of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The back end.
    pub via: Via,
    /// The model's name there; `None` keeps the name the client used.
    pub model: Option<String>,
}

/// A kind of back end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// The upstream of this name.
    Upstream(UpstreamName),
    /// The agent of this name.
    Agent(AgentName),
    /// The scripted model inside the binary.
    Demo,
}
