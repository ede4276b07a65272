//! Errors, in both directions: `{"error": {"message", "type", "param", "code"}}`, and the shapes compatible hosts
//! use instead.

use serde::Serialize;
use serde_json::Value;
use toolgate_model::{ErrorKind, TurnError};

use super::ID;
use crate::error_extras;

/// How much of a body that is no error of this dialect is shown.
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

/// The body that tells an error, with all that a host of this dialect said of it.
pub(super) fn write(error: &TurnError) -> Vec<u8> {
    error_extras::add(ID, &error.extras, plain(error))
}

/// The body with what every dialect can tell.
pub(super) fn plain(error: &TurnError) -> Vec<u8> {
    let detail = Detail {
        message: &error.message,
        r#type: kind_name(error.kind),
        param: error.param.as_deref(),
        code: error.code.as_deref(),
    };
    // Strings always serialise.
    serde_json::to_vec(&Body { error: detail }).unwrap_or_default()
}

/// Reads an error answer (T38: its status stays).
pub(super) fn read(status: u16, body: &[u8]) -> TurnError {
    let mut error = match serde_json::from_slice::<Value>(body) {
        Ok(json) => from_json(&json).unwrap_or_else(|| unknown_shape(status, body)),
        Err(_) => unknown_shape(status, body),
    };
    // `invalid_request_error` and the shapes without a type say nothing the status does not say better.
    if matches!(error.kind, ErrorKind::InvalidRequest | ErrorKind::Upstream) {
        error.kind = ErrorKind::from_status(status);
    }
    error.status = Some(status);
    error
}

/// Reads an error inside a stream or inside a 200, where only its own words tell the kind.
pub(super) fn read_in_band(text: &str) -> TurnError {
    let json = serde_json::from_str::<Value>(text).unwrap_or_default();
    from_json(&json).unwrap_or_else(|| {
        TurnError::upstream(format!("the host broke off its reply and said: {}", excerpt(text.as_bytes())))
    })
}

/// The error in any of the shapes hosts use; `None` for a body that tells none.
fn from_json(json: &Value) -> Option<TurnError> {
    // Some hosts wrap everything in a list.
    let json = json.get(0).unwrap_or(json);
    let detail = match json.get("error") {
        Some(Value::Null) | None => json,
        Some(detail) => detail,
    };
    let message = match detail.as_str() {
        Some(_) => words(detail)?,
        None => ["message", "detail", "error", "msg"].iter().find_map(|name| words(detail.get(*name)?))?,
    };
    let code = match detail.get("code") {
        Some(Value::String(code)) => Some(code.clone()),
        // T38
        Some(Value::Number(code)) => Some(code.to_string()),
        _ => None,
    };
    let status = in_band_status(detail, code.as_deref());
    let kind = match detail.get("type").and_then(Value::as_str).and_then(named_kind) {
        Some(kind) => kind,
        None => status.map_or(ErrorKind::Upstream, ErrorKind::from_status),
    };
    let mut error = TurnError::new(kind, message);
    error.code = code;
    error.param = detail.get("param").and_then(Value::as_str).map(Box::from);
    error.status =
        status.filter(|status| *status != kind.status() && ErrorKind::from_status(*status) == kind);
    Some(error)
}

/// `detail` may be a text or a list of complaints.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => Some(value.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn in_band_status(detail: &Value, code: Option<&str>) -> Option<u16> {
    let named = ["status_code", "status"].iter().find_map(|name| detail.get(*name)?.as_u64());
    let status = named.or_else(|| code?.parse().ok())?;
    u16::try_from(status).ok().filter(|status| (400..600).contains(status))
}

fn unknown_shape(status: u16, body: &[u8]) -> TurnError {
    let shown = excerpt(body);
    TurnError::upstream(if shown.is_empty() {
        format!(
            "the host answered with status {status} and nothing else; check the upstream's base_url and key"
        )
    } else {
        format!(
            "the host answered with status {status} and no error of this API; check the upstream's base_url. It said: {shown}"
        )
    })
}

fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(MAX_EXCERPT_CHARS).collect()
}

/// Every kind has its own name, so that an error inside a stream, which has no status, tells its kind.
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
