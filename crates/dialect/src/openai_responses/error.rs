//! Errors: `{"error":{"message","type","param","code"}}`, also inside streams and failed responses.

use serde_json::{Value, json};
use toolgate_model::{ErrorKind, TurnError};

use super::ID;
use crate::error_extras;
use crate::error_shape::{self, HostError};

/// How much of an unknown error body is quoted.
const MAX_QUOTE_CHARS: usize = 200;

/// Writes an error body, with the extra fields of a host of this dialect.
pub(super) fn write(error: &TurnError) -> Vec<u8> {
    error_extras::add(ID, &error.extras, plain(error))
}

/// Writes an error body without extra fields.
pub(super) fn plain(error: &TurnError) -> Vec<u8> {
    json!({ "error": object(error) }).to_string().into_bytes()
}

/// The error object.
pub(super) fn object(error: &TurnError) -> Value {
    json!({
        "message": error.message,
        "type": type_of(error.kind),
        "param": error.param,
        "code": error.code,
    })
}

/// The error object of a failed response, where the API allows only a few codes.
pub(super) fn of_response(error: &TurnError) -> Value {
    let code = error.code.as_deref().unwrap_or(match error.kind {
        ErrorKind::RateLimited => "rate_limit_exceeded",
        ErrorKind::InvalidRequest | ErrorKind::TooLarge => "invalid_prompt",
        ErrorKind::Authentication
        | ErrorKind::Billing
        | ErrorKind::Permission
        | ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::Internal
        | ErrorKind::Upstream
        | ErrorKind::Unavailable
        | ErrorKind::Timeout
        | ErrorKind::Overloaded
        | ErrorKind::Cancelled => "server_error",
    });
    json!({ "code": code, "message": error.message, "type": type_of(error.kind) })
}

/// Reads an error response.
pub(super) fn read(status: u16, body: &[u8]) -> TurnError {
    let found = serde_json::from_slice(body).ok().and_then(|body| error_shape::find(&body));
    if let Some(found) = found {
        return from_shape(found, Some(status));
    }
    let shown: String = String::from_utf8_lossy(body).trim().chars().take(MAX_QUOTE_CHARS).collect();
    let quoted = if shown.is_empty() { "an empty body".to_owned() } else { format!("`{shown}`") };
    let mut error = TurnError::new(
        ErrorKind::from_status(status),
        format!(
            "the host answered with status {status} and {quoted}: check the upstream's base_url and dialect"
        ),
    );
    keep_status(&mut error, status);
    error
}

/// Reads an error in a stream or a response that has no status. The error may be alone or inside an object.
pub(super) fn from_value(error: &Value) -> TurnError {
    find(error).unwrap_or_else(|| TurnError::upstream("the host reported an error without a message"))
}

/// The error in JSON that is not a response; `None` if it contains none.
pub(super) fn find(json: &Value) -> Option<TurnError> {
    error_shape::find(json).map(|found| from_shape(found, None))
}

fn from_shape(found: HostError, status: Option<u16>) -> TurnError {
    let HostError { message, kind, code, param, status: inner_status } = found;
    let (name, coded) = (kind.as_deref().unwrap_or_default(), code.as_deref().unwrap_or_default());
    let kind = kind_of(name, coded, status.or(inner_status));
    let mut error = TurnError::new(kind, message);
    error.code = code;
    error.param = param.map(Box::from);
    if let Some(status) = status {
        keep_status(&mut error, status);
    }
    error
}

fn keep_status(error: &mut TurnError, status: u16) {
    if error.kind.status() != status {
        error.status = Some(status);
    }
}

fn type_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidRequest => "invalid_request_error",
        ErrorKind::Authentication => "authentication_error",
        ErrorKind::Billing => "insufficient_quota",
        ErrorKind::Permission => "permission_error",
        ErrorKind::NotFound => "not_found_error",
        ErrorKind::Conflict => "conflict_error",
        ErrorKind::TooLarge => "request_too_large",
        ErrorKind::RateLimited => "rate_limit_error",
        ErrorKind::Internal => "server_error",
        ErrorKind::Upstream => "upstream_error",
        ErrorKind::Unavailable => "service_unavailable",
        ErrorKind::Timeout => "timeout_error",
        ErrorKind::Overloaded => "overloaded_error",
        ErrorKind::Cancelled => "cancelled_error",
    }
}

/// A specific type decides; with a generic one the status decides; without a status the code decides.
fn kind_of(kind: &str, code: &str, status: Option<u16>) -> ErrorKind {
    if let Some(known) = specific_kind(kind) {
        return known;
    }
    match (kind, status) {
        (_, Some(status)) => ErrorKind::from_status(status),
        ("invalid_request_error", None) => ErrorKind::InvalidRequest,
        ("server_error" | "api_error" | "internal_error", None) => ErrorKind::Internal,
        (_, None) => specific_kind(code).or_else(|| error_shape::kind_of_code(code)).unwrap_or(match code {
            "server_error" => ErrorKind::Internal,
            code if code.starts_with("invalid_") || code.contains("image") => ErrorKind::InvalidRequest,
            _ => ErrorKind::Upstream,
        }),
    }
}

fn specific_kind(kind: &str) -> Option<ErrorKind> {
    Some(match kind {
        "authentication_error" => ErrorKind::Authentication,
        "insufficient_quota" | "billing_error" => ErrorKind::Billing,
        "permission_error" => ErrorKind::Permission,
        "not_found_error" => ErrorKind::NotFound,
        "conflict_error" => ErrorKind::Conflict,
        "request_too_large" => ErrorKind::TooLarge,
        "rate_limit_error" | "tokens" | "requests" => ErrorKind::RateLimited,
        "upstream_error" => ErrorKind::Upstream,
        "service_unavailable" => ErrorKind::Unavailable,
        "timeout_error" => ErrorKind::Timeout,
        "overloaded_error" => ErrorKind::Overloaded,
        "cancelled_error" => ErrorKind::Cancelled,
        _ => return None,
    })
}
