//! The tokens that open the console's API.
//!
//! A token is a random nonce and a time of expiry, signed with a key that is derived from the secret beside the store. So
//! `toolgate console` makes one without asking the running gateway, and a restart does not close an open page.

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use thiserror::Error;
use toolgate_state::UnixMillis;

use crate::signature::{is_signed, sign};

/// Lets people and secret scanners recognize a leaked token.
const PREFIX: &str = "tgc_";

/// How long a token opens the console. A page that is used for longer gets a new one from `toolgate console`.
const LIFETIME: Duration = Duration::from_hours(30 * 24);

/// Keys for other purposes that are derived from the same secret are different.
const LABEL: &[u8] = b"toolgate console token";

const NONCE_BYTES: usize = 16;
const EXPIRY_BYTES: usize = 8;
const CLAIM_BYTES: usize = NONCE_BYTES + EXPIRY_BYTES;

/// Makes and checks tokens.
#[derive(Clone)]
pub struct ConsoleKey([u8; 32]);

/// The system gave no random bytes.
#[derive(Clone, Copy, Debug, Error)]
#[error("making a console token failed: the system gave no random bytes")]
pub struct NoRandomness;

impl ConsoleKey {
    /// The key of the gateway with this secret.
    pub fn derive(secret: &[u8; 32]) -> Self {
        Self(sign(secret, &[LABEL]))
    }

    /// A key that no other process knows, for a store that ends with this process.
    pub fn random() -> Result<Self, NoRandomness> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|_| NoRandomness)?;
        Ok(Self::derive(&secret))
    }

    /// A new token.
    pub fn issue(&self, now: UnixMillis) -> Result<String, NoRandomness> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|_| NoRandomness)?;
        let lifetime = i64::try_from(LIFETIME.as_millis()).unwrap_or(i64::MAX);
        let expiry = now.0.saturating_add(lifetime).to_be_bytes();
        let signature = sign(&self.0, &[&nonce, &expiry]);
        let token = [nonce.as_slice(), &expiry, &signature].concat();
        Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(token)))
    }

    /// True if the request carries a token of this key that has not expired.
    pub(crate) fn admits(&self, headers: &HeaderMap, now: UnixMillis) -> bool {
        bearer(headers).is_some_and(|token| self.accepts(token, now))
    }

    fn accepts(&self, token: &[u8], now: UnixMillis) -> bool {
        let Some(token) = token.strip_prefix(PREFIX.as_bytes()) else { return false };
        let Ok(token) = URL_SAFE_NO_PAD.decode(token) else { return false };
        let Some((claim, signature)) = token.split_at_checked(CLAIM_BYTES) else { return false };
        let Some(expiry) = claim[NONCE_BYTES..].first_chunk::<EXPIRY_BYTES>() else { return false };
        is_signed(&self.0, &[claim], signature) && now.0 < i64::from_be_bytes(*expiry)
    }
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

impl fmt::Debug for ConsoleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConsoleKey(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_000_000);

    fn key(secret: u8) -> ConsoleKey {
        ConsoleKey::derive(&[secret; 32])
    }

    fn issued(key: &ConsoleKey) -> String {
        key.issue(NOW).expect("random bytes")
    }

    #[test]
    fn a_token_opens_the_gateway_with_the_same_secret_only() {
        let token = issued(&key(1));
        assert!(key(1).accepts(token.as_bytes(), NOW));
        assert!(!key(2).accepts(token.as_bytes(), NOW));
        assert_ne!(issued(&key(1)), token, "every token is different");
    }

    #[test]
    fn a_token_expires() {
        let token = issued(&key(1));
        let expiry = NOW.0 + i64::try_from(LIFETIME.as_millis()).expect("a lifetime");
        assert!(key(1).accepts(token.as_bytes(), UnixMillis(expiry - 1)));
        assert!(!key(1).accepts(token.as_bytes(), UnixMillis(expiry)));
    }

    #[test]
    fn a_changed_cut_or_foreign_token_is_refused() {
        let token = issued(&key(1));
        for index in PREFIX.len()..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
            assert!(!key(1).accepts(&changed, NOW), "{index}");
            assert!(!key(1).accepts(&token.as_bytes()[..index], NOW), "{index}");
        }
        for other in ["", "tgc_", "tg-0123", &token[PREFIX.len()..], "tgc_\u{e9}", &format!("{token}A")] {
            assert!(!key(1).accepts(other.as_bytes(), NOW), "{other}");
        }
    }

    #[test]
    fn a_token_is_read_from_the_authorization_header_only() {
        let token = issued(&key(1));
        let admits = |name: &'static str, value: String| {
            let value = value.parse().expect("a header");
            key(1).admits(&HeaderMap::from_iter([(http::HeaderName::from_static(name), value)]), NOW)
        };
        assert!(admits("authorization", format!("Bearer {token}")));
        assert!(admits("authorization", format!("bearer  {token}")));
        assert!(!admits("authorization", format!("Basic {token}")));
        assert!(!admits("x-api-key", token));
    }
}
