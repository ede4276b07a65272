//! What is the same for every request to a host: TLS, its address and its headers.

use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use hyper_rustls::ConfigBuilderExt;
use secrecy::ExposeSecret;
use thiserror::Error;
use toolgate_model::DialectId;

use super::proxy::ProxyUse;
use super::request::Address;
use crate::config::UpstreamConfig;

/// The API version for requests whose client names none.
const ANTHROPIC_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// The system's root certificates, read once and shared by all workers.
#[derive(Clone)]
pub struct Tls(rustls::ClientConfig);

impl Tls {
    /// Reads the system's root certificates. A system without any can still reach `http://` hosts.
    pub fn load() -> Result<Self, AssembleError> {
        let builder = || {
            rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
                .with_safe_default_protocol_versions()
                .map_err(|error| AssembleError::Tls { source: error })
        };
        let rooted = match builder()?.with_native_roots() {
            Ok(rooted) => rooted,
            Err(error) => {
                tracing::warn!(
                    %error,
                    "no root certificates found, so https hosts cannot be reached; install ca-certificates"
                );
                builder()?.with_root_certificates(rustls::RootCertStore::empty())
            }
        };
        Ok(Self(rooted.with_no_client_auth()))
    }

    /// Trusts nothing but these roots.
    #[cfg(test)]
    pub(super) fn trusting(roots: rustls::RootCertStore) -> Self {
        let provider = rustls::crypto::ring::default_provider().into();
        let builder = rustls::ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().expect("the usual versions");
        Self(builder.with_root_certificates(roots).with_no_client_auth())
    }

    /// For connections that are not to a back end's host.
    pub fn config(&self) -> rustls::ClientConfig {
        self.0.clone()
    }
}

/// Why the back ends of a configuration cannot be built.
#[derive(Debug, Error)]
pub enum AssembleError {
    /// A dialect that does not exist.
    #[error(
        "upstream `{upstream}`: there is no dialect `{dialect}`; use anthropic-messages, openai-chat or openai-responses"
    )]
    UnknownDialect {
        /// The upstream.
        upstream: String,
        /// The unknown dialect.
        dialect: String,
    },
    /// A base URL requests cannot be sent to.
    #[error("upstream `{upstream}`: base_url `{base_url}` is no http:// or https:// address with a host")]
    BadUrl {
        /// The upstream.
        upstream: String,
        /// Its base URL.
        base_url: String,
    },
    /// A key with characters that a header cannot have.
    #[error(
        "upstream `{upstream}`: its api_key holds characters that no HTTP header can carry; check for line breaks"
    )]
    BadKey {
        /// The upstream.
        upstream: String,
    },
    /// A proxy that is not an HTTP proxy.
    #[error(
        "upstream `{upstream}`: its proxy cannot be used; write its address as in `http://user:password@proxy.example:3128`"
    )]
    BadProxy {
        /// The upstream.
        upstream: String,
    },
    /// The TLS library refused its own defaults.
    #[error("preparing TLS for https hosts failed; please report this")]
    Tls {
        /// The cause.
        source: rustls::Error,
    },
    /// A model with prompted tools, without the secret for its marks.
    #[error("model `{model}`: `tools = \"prompted\"` needs a secret, and none was given; please report this")]
    NoTriggerSecret {
        /// The model or pattern.
        model: String,
    },
    /// A route to an upstream that is not configured.
    #[error(
        "model `{model}`: there is no upstream `{upstream}`; add [upstreams.{upstream}] or correct the name"
    )]
    UnknownUpstream {
        /// The model or pattern.
        model: String,
        /// The name that was not found.
        upstream: String,
    },
    /// An agent's `env` names a host that requests cannot be sent to.
    #[error("agent `{agent}`: ANTHROPIC_BASE_URL in its `env` is no http:// or https:// address of a host")]
    BadAgentUrl {
        /// The agent.
        agent: String,
    },
    /// A model names an agent that does not exist.
    #[error("model `{model}`: there is no agent `{agent}`; add [agents.{agent}] or correct the name")]
    UnknownAgent {
        /// The model or pattern.
        model: String,
        /// The name that was not found.
        agent: String,
    },
}

/// A path of the host.
pub(super) fn address(
    config: &UpstreamConfig,
    dialect: DialectId,
    path: &str,
    proxy: &ProxyUse,
) -> Result<Address, AssembleError> {
    let uri = join(config, path)?;
    let refused =
        || AssembleError::BadUrl { upstream: config.name.to_string(), base_url: config.base_url.to_string() };
    let authority = uri.authority().ok_or_else(refused)?;
    // Not the whole authority, because it may begin with a user name and password.
    let name = match authority.port() {
        Some(port) => format!("{}:{port}", authority.host()),
        None => authority.host().to_owned(),
    };
    let name = HeaderValue::try_from(name).map_err(|_| refused())?;
    Ok(Address::new(uri, &name, headers(config, dialect)?, proxy))
}

/// The base URL followed by `path`. A query of the base URL stays at the end.
fn join(config: &UpstreamConfig, path: &str) -> Result<Uri, AssembleError> {
    let refused =
        || AssembleError::BadUrl { upstream: config.name.to_string(), base_url: config.base_url.to_string() };
    if !matches!(config.base_url.scheme_str(), Some("http" | "https")) {
        return Err(refused());
    }
    let mut joined = format!("{}{path}", config.base_url.path().trim_end_matches('/'));
    if let Some(query) = config.base_url.query() {
        joined.push('?');
        joined.push_str(query);
    }
    let mut parts = config.base_url.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(joined).map_err(|_| refused())?);
    Uri::from_parts(parts).map_err(|_| refused())
}

/// The headers of every request to the host. The caller's own keys are never among them.
fn headers(config: &UpstreamConfig, dialect: DialectId) -> Result<HeaderMap, AssembleError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("toolgate/", env!("CARGO_PKG_VERSION"))));
    let is_anthropic = dialect.provider == "anthropic";
    if is_anthropic {
        headers.insert(HeaderName::from_static("anthropic-version"), ANTHROPIC_VERSION);
    }
    if let Some(key) = &config.api_key {
        let (name, text) = if is_anthropic {
            (HeaderName::from_static("x-api-key"), key.expose_secret().to_owned())
        } else {
            (AUTHORIZATION, format!("Bearer {}", key.expose_secret()))
        };
        let mut value = HeaderValue::try_from(text)
            .map_err(|_| AssembleError::BadKey { upstream: config.name.to_string() })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in &config.headers {
        headers.insert(name, value.clone());
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(base_url: &'static str) -> UpstreamConfig {
        UpstreamConfig::new("host", "openai-chat", Uri::from_static(base_url))
    }

    #[test]
    fn the_path_follows_the_base_url() {
        let joined = |base| join(&config(base), "/messages").map(|uri| uri.to_string()).ok();
        assert_eq!(joined("https://h/v1").as_deref(), Some("https://h/v1/messages"));
        assert_eq!(joined("http://h:1/v1/").as_deref(), Some("http://h:1/v1/messages"));
        assert_eq!(joined("http://h").as_deref(), Some("http://h/messages"));
        assert_eq!(
            joined("https://h/v1?api-version=2").as_deref(),
            Some("https://h/v1/messages?api-version=2")
        );
        assert_eq!(joined("ftp://h/v1"), None);
        assert_eq!(joined("/v1"), None);
    }

    #[test]
    fn keys_go_where_the_provider_looks_for_them() {
        let mut config = config("http://h");
        config.api_key = Some("secret".into());
        let of = |provider| headers(&config, DialectId { name: "x", provider }).expect("plain text");
        assert_eq!(of("anthropic")["x-api-key"], "secret");
        assert_eq!(of("anthropic")["anthropic-version"], "2023-06-01");
        assert_eq!(of("openai")["authorization"], "Bearer secret");
        assert!(!of("openai").contains_key("x-api-key"));
        assert!(!format!("{:?}", of("openai")).contains("secret"));
    }
}
