//! Errors: `{"error": {"message", "type", "param", "code"}}`, and the shapes that compatible hosts use instead.

use serde::Serialize;
use serde_json::Value;
use toolgate_model::{ErrorKind, TurnError};

use super::ID;
use crate::error_extras;
use crate::error_shape::{self, HostError};

/// How much of an unknown error body is quoted.
const MAX_EXCERPT_CHARS: usize = 300;

#[derive(Serialize)]
struct Body<'a> {
    error: Detail<'a>,
}

#[derive(Serialize)]
struct Detail<'a> {
    message: &'a str,
    r#type: &'static str,
    param: Option<&'a str>,
    code: Option<&'a str>,
}

/// Writes an error body, with the extra fields of a host of this dialect.
pub(super) fn write(error: &TurnError) -> Vec<u8> {
    error_extras::add(ID, &error.extras, plain(error))
}

/// Writes an error body without extra fields.
pub(super) fn plain(error: &TurnError) -> Vec<u8> {
    let detail = Detail {
        message: &error.message,
        r#type: kind_name(error.kind),
        param: error.param.as_deref(),
        code: error.code.as_deref(),
    };
    // Strings always serialize.
    serde_json::to_vec(&Body { error: detail }).unwrap_or_default()
}

/// Reads an error response. The status is kept (T38).
pub(super) fn read(status: u16, body: &[u8]) -> TurnError {
    let mut error = match serde_json::from_slice::<Value>(body) {
        Ok(json) => from_json(&json).unwrap_or_else(|| unknown_shape(status, body)),
        Err(_) => unknown_shape(status, body),
    };
    // For `invalid_request_error` and shapes without a type, the status is more precise.
    if matches!(error.kind, ErrorKind::InvalidRequest | ErrorKind::Upstream) {
        error.kind = ErrorKind::from_status(status);
    }
    error.status = Some(status);
    error
}

/// Reads an error inside a stream or a 200 response, where there is no status.
pub(super) fn read_in_band(text: &str) -> TurnError {
    find(text).unwrap_or_else(|| {
        TurnError::upstream(format!("the host ended its reply with an error: {}", excerpt(text.as_bytes())))
    })
}

/// True for an error that is none beside choices.
pub(super) fn is_empty(error: &str) -> bool {
    matches!(error, "null" | "\"\"" | "{}" | "[]" | "false")
}

/// The error in a text; `None` if it contains none.
pub(super) fn find(text: &str) -> Option<TurnError> {
    from_json(&serde_json::from_str::<Value>(text).ok()?)
}

/// The error in any of the known shapes; `None` if the body contains none.
fn from_json(json: &Value) -> Option<TurnError> {
    let HostError { message, kind, code, param, status } = error_shape::find(json)?;
    let named = kind.as_deref().and_then(named_kind);
    let coded = || code.as_deref().and_then(error_shape::kind_of_code);
    let kind = match named.or_else(coded) {
        Some(kind) => kind,
        None => status.map_or(ErrorKind::Upstream, ErrorKind::from_status),
    };
    let mut error = TurnError::new(kind, message);
    error.code = code;
    error.param = param.map(Box::from);
    error.status =
        status.filter(|status| *status != kind.status() && ErrorKind::from_status(*status) == kind);
    Some(error)
}

fn unknown_shape(status: u16, body: &[u8]) -> TurnError {
    let shown = excerpt(body);
    TurnError::upstream(if shown.is_empty() {
        format!(
            "the host answered with status {status} and an empty body; check the upstream's base_url and key"
        )
    } else {
        format!(
            "the host answered with status {status} and a body that is not an error of this API; check the upstream's base_url. The body: {shown}"
        )
    })
}

fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(MAX_EXCERPT_CHARS).collect()
}

/// Every kind has its own name, so that an error inside a stream, which has no status, keeps its kind.
const KIND_NAMES: [(ErrorKind, &str); 14] = [
    (ErrorKind::InvalidRequest, "invalid_request_error"),
    (ErrorKind::Authentication, "authentication_error"),
    (ErrorKind::Billing, "insufficient_quota"),
    (ErrorKind::Permission, "permission_error"),
    (ErrorKind::NotFound, "not_found_error"),
    (ErrorKind::Conflict, "conflict_error"),
    (ErrorKind::TooLarge, "request_too_large"),
    (ErrorKind::RateLimited, "rate_limit_error"),
    (ErrorKind::Internal, "server_error"),
    (ErrorKind::Upstream, "upstream_error"),
    (ErrorKind::Unavailable, "service_unavailable_error"),
    (ErrorKind::Timeout, "timeout_error"),
    (ErrorKind::Overloaded, "overloaded_error"),
    (ErrorKind::Cancelled, "request_cancelled"),
];

fn kind_name(kind: ErrorKind) -> &'static str {
    KIND_NAMES.iter().find(|(known, _)| *known == kind).map_or("server_error", |(_, name)| name)
}

fn named_kind(name: &str) -> Option<ErrorKind> {
    KIND_NAMES.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
}
