//! The requests a server received.

use std::collections::VecDeque;

use bytes::Bytes;
use http::{HeaderMap, Method, Version};

/// Bounds the memory of a long load test. No test looks at more.
const MAX_KEPT: usize = 1024;

/// One request as it arrived.
#[derive(Debug, Clone)]
pub struct Received {
    /// The HTTP version it came over.
    pub version: Version,
    /// The HTTP method.
    pub method: Method,
    /// The path with its query.
    pub path: String,
    /// All headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Received {
    /// The body as JSON.
    ///
    /// # Panics
    /// When it is not JSON.
    #[expect(clippy::panic, reason = "a test that expects JSON has failed when there is none")]
    pub fn json(&self) -> serde_json::Value {
        match serde_json::from_slice(&self.body) {
            Ok(json) => json,
            Err(error) => panic!("the body of {} {} is not JSON: {error}", self.method, self.path),
        }
    }

    /// A header's value, if it is present and text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    kept: VecDeque<Received>,
    /// How many of `kept` were handed out by `next`.
    seen: usize,
}

impl Ledger {
    pub(super) fn add(&mut self, request: Received) {
        if self.kept.len() == MAX_KEPT {
            self.kept.pop_front();
            self.seen = self.seen.saturating_sub(1);
        }
        self.kept.push_back(request);
    }

    pub(super) fn all(&self) -> Vec<Received> {
        self.kept.iter().cloned().collect()
    }

    /// The oldest request that was not handed out. The caller has checked that there is one.
    pub(super) fn next(&mut self) -> Received {
        let position = self.seen.min(self.kept.len() - 1);
        self.seen = position + 1;
        self.kept[position].clone()
    }
}
