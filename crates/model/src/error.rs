//! Errors of a turn: a closed set of kinds with one status each. A dialect only formats the body.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::extras::Extras;

/// The kind of an error, as far as callers need to distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is malformed or impossible: change it.
    InvalidRequest,
    /// The key is missing or wrong.
    Authentication,
    /// The account cannot pay.
    Billing,
    /// The key may not do this.
    Permission,
    /// No such model, path or response.
    NotFound,
    /// The request conflicts with another one.
    Conflict,
    /// The body exceeds the size limit.
    TooLarge,
    /// Too many requests: wait and retry.
    RateLimited,
    /// The gateway failed.
    Internal,
    /// The host could not be reached, closed the stream early or sent a malformed reply.
    Upstream,
    /// The gateway is shutting down or a required component is missing.
    Unavailable,
    /// The host took too long.
    Timeout,
    /// The host has no capacity now.
    Overloaded,
    /// The client disconnected.
    Cancelled,
}

impl ErrorKind {
    /// The HTTP status of the kind.
    pub fn status(self) -> u16 {
        match self {
            Self::InvalidRequest => 400,
            Self::Authentication => 401,
            Self::Billing => 402,
            Self::Permission => 403,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::RateLimited => 429,
            Self::Cancelled => 499,
            Self::Internal => 500,
            Self::Upstream => 502,
            Self::Unavailable => 503,
            Self::Timeout => 504,
            Self::Overloaded => 529,
        }
    }

    /// The kind for a host's status, if the body is not more specific.
    pub fn from_status(status: u16) -> Self {
        match status {
            401 => Self::Authentication,
            402 => Self::Billing,
            403 => Self::Permission,
            404 => Self::NotFound,
            409 => Self::Conflict,
            413 => Self::TooLarge,
            429 => Self::RateLimited,
            499 => Self::Cancelled,
            408 | 504 => Self::Timeout,
            500 => Self::Internal,
            503 => Self::Unavailable,
            529 => Self::Overloaded,
            400..=498 => Self::InvalidRequest,
            _ => Self::Upstream,
        }
    }

    /// True if the same request may succeed later or at another host.
    pub fn is_transient(self) -> bool {
        match self {
            Self::RateLimited
            | Self::Internal
            | Self::Upstream
            | Self::Unavailable
            | Self::Timeout
            | Self::Overloaded => true,
            Self::InvalidRequest
            | Self::Authentication
            | Self::Billing
            | Self::Permission
            | Self::NotFound
            | Self::Conflict
            | Self::TooLarge
            | Self::Cancelled => false,
        }
    }
}

/// An error that every dialect can write. The cause is in `source`, never in the message.
#[derive(Clone, Debug)]
pub struct TurnError {
    /// The kind, which decides the status.
    pub kind: ErrorKind,
    /// What failed, with which value, and what to do.
    pub message: String,
    /// The host's status, if it differs from the kind's (T38).
    pub status: Option<u16>,
    /// A machine-readable code beside the kind: `model_not_found`.
    pub code: Option<String>,
    /// The request field at fault.
    pub param: Option<Box<str>>,
    /// How long to wait before a retry.
    pub retry_after: Option<Duration>,
    /// Further fields of the host's error, for clients of the same dialect.
    pub extras: Extras,
    /// The host's request id and rate limits, as names and values of headers.
    pub host_headers: Option<Arc<Vec<(String, String)>>>,
    /// The cause.
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

impl TurnError {
    /// An error with a kind and a message only.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            code: None,
            param: None,
            retry_after: None,
            extras: Extras::NONE,
            host_headers: None,
            source: None,
        }
    }

    /// The request is at fault.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidRequest, message)
    }

    /// A field of the request is at fault.
    pub fn invalid_param(param: impl Into<Box<str>>, message: impl Into<String>) -> Self {
        let mut error = Self::invalid(message);
        error.param = Some(param.into());
        error
    }

    /// The host is at fault.
    pub fn upstream(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Upstream, message)
    }

    /// Sets the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// The HTTP status of the response.
    pub fn status(&self) -> u16 {
        self.status.unwrap_or_else(|| self.kind.status())
    }
}

impl PartialEq for TurnError {
    /// Errors are equal if a client cannot distinguish them.
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.message == other.message
            && self.status() == other.status()
            && self.code == other.code
            && self.param == other.param
            && self.retry_after == other.retry_after
            && self.extras == other.extras
    }
}

impl fmt::Display for TurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for TurnError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}
