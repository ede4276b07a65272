//! Why a turn failed: a closed set of kinds, one status for each. A dialect only shapes the body.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::extras::Extras;

/// What went wrong, as far as a caller must tell cases apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is malformed or impossible: change it.
    InvalidRequest,
    /// No key, or a wrong one.
    Authentication,
    /// The account cannot pay.
    Billing,
    /// The key may not do this.
    Permission,
    /// No such model, path or response.
    NotFound,
    /// Two requests collide.
    Conflict,
    /// The body is larger than allowed.
    TooLarge,
    /// Too many requests: wait.
    RateLimited,
    /// The gateway failed: its fault, not the caller's.
    Internal,
    /// The host could not be reached, cut the stream or talked rubbish.
    Upstream,
    /// The gateway is going away or a needed part is not there.
    Unavailable,
    /// The host took too long.
    Timeout,
    /// The host has no capacity now.
    Overloaded,
    /// The client went away.
    Cancelled,
}

impl ErrorKind {
    /// The one place where a kind becomes a status.
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

    /// The kind a host means when it answers with this status and says nothing clearer.
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

    /// True where the same request may succeed at another time or another host.
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

/// A failed turn, ready to be told in any dialect. The cause is `source`, never part of the message.
#[derive(Clone, Debug)]
pub struct TurnError {
    /// Decides the status and what a client may do.
    pub kind: ErrorKind,
    /// What was being done, with what, and what to do now.
    pub message: String,
    /// The status the host answered with, where it differs from the kind's own (T38: a 4xx stays that 4xx).
    pub status: Option<u16>,
    /// A machine-readable code beside the kind: `model_not_found`.
    pub code: Option<String>,
    /// The request field at fault.
    pub param: Option<Box<str>>,
    /// How long to wait before trying again.
    pub retry_after: Option<Duration>,
    /// What else the host said of it, for clients of the host's dialect.
    pub extras: Extras,
    /// The host's request id and rate limits, as names and values of headers.
    pub host_headers: Option<Arc<Vec<(String, String)>>>,
    /// What caused it.
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

impl TurnError {
    /// An error with nothing but a kind and a message.
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

    /// The request is at fault, in this field.
    pub fn invalid_param(param: impl Into<Box<str>>, message: impl Into<String>) -> Self {
        let mut error = Self::invalid(message);
        error.param = Some(param.into());
        error
    }

    /// The host is at fault.
    pub fn upstream(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Upstream, message)
    }

    /// Names the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// The HTTP status to answer with.
    pub fn status(&self) -> u16 {
        self.status.unwrap_or_else(|| self.kind.status())
    }
}

impl PartialEq for TurnError {
    /// Errors are equal when a client could not tell them apart.
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
