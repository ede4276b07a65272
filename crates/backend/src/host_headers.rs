//! The headers of a host's response that a client may see: its request id and its rate limits.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};

/// The most headers that are kept of one response. Hosts with rate limits send about a dozen.
const MAX_HEADERS: usize = 32;

/// The longest value that is kept. Request ids and numbers are much shorter.
const MAX_VALUE_BYTES: usize = 256;

/// Headers that begin like this are kept.
const KEPT_PREFIXES: [&str; 3] = ["anthropic-ratelimit-", "x-ratelimit-", "openai-"];

/// Headers of exactly this name are kept. The first two hold the host's request id.
const KEPT_NAMES: [&str; 4] = ["request-id", "x-request-id", "retry-after", "retry-after-ms"];

/// These identify the operator's account at the host.
const PRIVATE_NAMES: [&str; 2] = ["openai-organization", "openai-project"];

/// The host's request id and rate limits, as the host sent them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostHeaders(Vec<(HeaderName, HeaderValue)>);

impl HostHeaders {
    /// Keeps the header if it is one that clients may see, and small enough.
    pub(crate) fn add(&mut self, name: &str, value: &[u8]) {
        if self.0.len() >= MAX_HEADERS || value.len() > MAX_VALUE_BYTES || !is_kept(name) {
            return;
        }
        if let (Ok(name), Ok(value)) = (name.parse(), HeaderValue::from_bytes(value)) {
            self.0.push((name, value));
        }
    }

    /// Reads back what an error carries.
    pub fn from_texts(texts: &[(String, String)]) -> Self {
        let mut headers = Self::default();
        for (name, value) in texts {
            headers.add(name, value.as_bytes());
        }
        headers
    }

    /// The headers in the order in which they were sent.
    pub fn iter(&self) -> impl Iterator<Item = &(HeaderName, HeaderValue)> {
        self.0.iter()
    }

    /// The id that the host gave the request.
    pub fn request_id(&self) -> Option<&str> {
        let mut ids =
            self.0.iter().filter(|(name, _)| matches!(name.as_str(), "request-id" | "x-request-id"));
        ids.find_map(|(_, value)| value.to_str().ok())
    }

    /// The same headers as text, for errors. Values that are not text are left out.
    pub(crate) fn into_texts(self) -> Option<Arc<Vec<(String, String)>>> {
        let text = |(name, value): (HeaderName, HeaderValue)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        };
        let texts: Vec<_> = self.0.into_iter().filter_map(text).collect();
        (!texts.is_empty()).then(|| Arc::new(texts))
    }
}

fn is_kept(name: &str) -> bool {
    let is = |known: &&str| name.eq_ignore_ascii_case(known);
    let begins = |prefix: &&str| {
        name.get(..prefix.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(prefix))
    };
    KEPT_NAMES.iter().any(is) || (KEPT_PREFIXES.iter().any(begins) && !PRIVATE_NAMES.iter().any(is))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_request_ids_and_rate_limits_are_kept() {
        let mut headers = HostHeaders::default();
        for name in [
            "Content-Type",
            "Request-Id",
            "X-RateLimit-Limit-Requests",
            "anthropic-ratelimit-tokens-reset",
            "Retry-After",
            "openai-processing-ms",
            "openai-organization",
            "set-cookie",
            "x-api-key",
        ] {
            headers.add(name, b"1");
        }
        let kept: Vec<_> = headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            kept,
            [
                "request-id",
                "x-ratelimit-limit-requests",
                "anthropic-ratelimit-tokens-reset",
                "retry-after",
                "openai-processing-ms"
            ]
        );
        assert_eq!(headers.request_id(), Some("1"));
        let texts = headers.into_texts().expect("some headers");
        assert_eq!(texts[0], ("request-id".to_owned(), "1".to_owned()));
    }

    #[test]
    fn count_and_size_are_bounded() {
        let mut headers = HostHeaders::default();
        headers.add("request-id", &[b'x'; MAX_VALUE_BYTES + 1]);
        assert_eq!(headers, HostHeaders::default());
        for _ in 0..2 * MAX_HEADERS {
            headers.add("request-id", &[b'x'; MAX_VALUE_BYTES]);
        }
        assert_eq!(headers.iter().count(), MAX_HEADERS);
    }
}
