//! The API host of an agent that uses no gateway model. What its `env` says about host and key becomes an upstream of
//! the gateway that only this agent's processes can use, and the program gets neither.

use http::header::AUTHORIZATION;
use http::{HeaderValue, Uri};
use secrecy::{ExposeSecret, SecretString};

use super::config::{AgentConfig, AgentModel};
use crate::config::{Retry, UpstreamConfig, UsedBy};
use crate::http::AssembleError;

const API_KEY: &str = "ANTHROPIC_API_KEY";
const AUTH_TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";
const BASE_URL: &str = "ANTHROPIC_BASE_URL";

/// The program's own host.
const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";

/// Variables that would let the program call its model past the gateway, with a key that its tools can read.
const BYPASSES: [&str; 4] = [
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
];

impl AgentConfig {
    /// True if its `env` names an API host or a key, so that it can work without a gateway model.
    pub fn has_own_host(&self) -> bool {
        [API_KEY, AUTH_TOKEN, BASE_URL].iter().any(|name| self.variable(name).is_some())
    }

    /// The host that its processes call through the gateway; `None` if it uses a gateway model or names no host.
    pub(crate) fn own_host(&self) -> Result<Option<UpstreamConfig>, AssembleError> {
        if self.model != AgentModel::Default || !self.has_own_host() {
            return Ok(None);
        }
        let name = format!("agents.{}", self.name);
        let url = self.variable(BASE_URL).map_or(DEFAULT_BASE_URL, ExposeSecret::expose_secret);
        let base_url =
            api_url(url).ok_or_else(|| AssembleError::BadAgentUrl { agent: self.name.to_string() })?;
        let mut host = UpstreamConfig::new(&name, "anthropic-messages", base_url);
        host.api_key = self.variable(API_KEY).cloned();
        if let Some(token) = self.variable(AUTH_TOKEN) {
            let bearer = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()));
            let mut bearer = bearer.map_err(|_| AssembleError::BadKey { upstream: name })?;
            bearer.set_sensitive(true);
            host.headers.push((AUTHORIZATION, bearer));
        }
        host.used_by = UsedBy::Agent;
        // The program retries by itself.
        host.retry = Retry { retries: 0, ..Retry::default() };
        Ok(Some(host))
    }

    fn variable(&self, name: &str) -> Option<&SecretString> {
        self.env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

/// True for a variable that the program must not get: hosts and keys.
pub(super) fn stays_in_the_gateway(name: &str) -> bool {
    [API_KEY, AUTH_TOKEN, BASE_URL].contains(&name) || bypasses_the_gateway(name)
}

/// True for a variable with which the program would call its model past the gateway.
pub fn bypasses_the_gateway(name: &str) -> bool {
    BYPASSES.contains(&name)
}

/// The base URL of the Messages API at the host, whose name the program writes without `/v1`.
fn api_url(written: &str) -> Option<Uri> {
    let url: Uri = format!("{}/v1", written.trim_end_matches('/')).parse().ok()?;
    let is_http = matches!(url.scheme_str(), Some("http" | "https"));
    (is_http && url.query().is_none()).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(env: &[(&str, &str)]) -> AgentConfig {
        let mut agent = AgentConfig::new("claude", "claude".into(), "folder".into());
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned().into());
        agent.env = env.iter().map(owned).collect();
        agent
    }

    /// The base URL, the key and the headers of the agent's host.
    fn host(agent: &AgentConfig) -> Option<(String, Option<String>, Vec<String>)> {
        let host = agent.own_host().expect("a valid environment")?;
        let key = host.api_key.map(|key| key.expose_secret().to_owned());
        let header = |(name, value): &(http::HeaderName, HeaderValue)| {
            format!("{name}: {}", value.to_str().expect("a text"))
        };
        Some((host.base_url.to_string(), key, host.headers.iter().map(header).collect()))
    }

    #[test]
    fn a_key_alone_is_for_anthropic() {
        let expected = ("https://api.anthropic.com/v1".to_owned(), Some("k".to_owned()), Vec::new());
        assert_eq!(host(&agent(&[(API_KEY, "k")])), Some(expected));
    }

    #[test]
    fn a_token_is_sent_as_a_bearer_token() {
        let found = host(&agent(&[(AUTH_TOKEN, "t"), (BASE_URL, "http://h:1/api/")]));
        let bearer = vec!["authorization: Bearer t".to_owned()];
        assert_eq!(found, Some(("http://h:1/api/v1".to_owned(), None, bearer)));
    }

    #[test]
    fn a_host_may_need_no_key() {
        assert_eq!(
            host(&agent(&[(BASE_URL, "http://h:1")])),
            Some(("http://h:1/v1".to_owned(), None, Vec::new()))
        );
    }

    #[test]
    fn without_a_host_or_with_a_gateway_model_there_is_none() {
        assert_eq!(host(&agent(&[("OTHER", "x")])), None);
        let mut with_model = agent(&[(API_KEY, "k")]);
        with_model.model = AgentModel::Gateway("demo".to_owned());
        assert_eq!(host(&with_model), None);
    }

    #[test]
    fn an_unusable_url_or_key_is_an_error_that_does_not_repeat_it() {
        for variable in [
            (BASE_URL, "ftp://secret"),
            (BASE_URL, "secret"),
            (BASE_URL, "http://h/?secret=1"),
            (AUTH_TOKEN, "secret\n"),
        ] {
            let error = agent(&[variable]).own_host().expect_err("not usable").to_string();
            assert!(error.contains("claude") && !error.contains("secret"), "{error}");
        }
    }
}
