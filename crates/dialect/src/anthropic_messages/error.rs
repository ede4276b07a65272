//! Errors: `{"type": "error", "error": {"type": …, "message": …}}`, alone or as the last event of a stream.

use serde::Serialize;
use serde_json::Value;
use toolgate_model::{ErrorKind, TurnError};

use super::ID;
use crate::error_extras;
use crate::error_shape::{self, HostError};

/// How much of an unknown error body is quoted.
const MAX_QUOTE_CHARS: usize = 200;

#[derive(Serialize)]
struct ErrorBodyOut<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    error: ErrorOut<'a>,
}

#[derive(Serialize)]
struct ErrorOut<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<DetailsOut<'a>>,
}

#[derive(Serialize)]
struct DetailsOut<'a> {
    error_code: &'a str,
}

/// Reads an error response.
pub(super) fn read(status: u16, body: &[u8]) -> TurnError {
    let Some(mut failed) = find(body, Some(status)) else {
        let kind = ErrorKind::from_status(status);
        let mut failed =
            TurnError::new(kind, format!("the host answered with status {status}{}", quote(body)));
        keep_status(&mut failed, status);
        return failed;
    };
    keep_status(&mut failed, status);
    failed
}

/// Reads an error inside a stream, where there is no status (T17).
pub(super) fn read_in_stream(data: &str) -> TurnError {
    find(data.as_bytes(), None).unwrap_or_else(|| {
        TurnError::upstream(format!("the host ended the stream with an error{}", quote(data.as_bytes())))
    })
}

/// The error in the body of a 200 response; `None` if it contains none.
pub(super) fn in_reply(body: &[u8]) -> Option<TurnError> {
    find(body, None)
}

/// The error in a body or frame, if it contains one. A type that this API does not know leaves the kind to the status
/// or the code.
fn find(body: &[u8], status: Option<u16>) -> Option<TurnError> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let HostError { message, kind, code, param: _, status: inner_status } = error_shape::find(&body)?;
    let named = kind.as_deref().and_then(known_kind);
    let coded = || code.as_deref().and_then(error_shape::kind_of_code);
    let by_status = status.or(inner_status).map(ErrorKind::from_status);
    let kind = named.or_else(|| status.is_none().then(coded).flatten()).or(by_status);
    let mut failed = TurnError::new(kind.unwrap_or(ErrorKind::Upstream), message);
    let stated = body.pointer("/error/details/error_code").and_then(Value::as_str).map(str::to_owned);
    failed.code = stated.or(code);
    Some(failed)
}

/// Writes an error body, with the extra fields of a host of this dialect.
pub(super) fn write(error: &TurnError) -> Vec<u8> {
    error_extras::add(ID, &error.extras, plain(error))
}

/// Writes an error body without extra fields.
pub(super) fn plain(error: &TurnError) -> Vec<u8> {
    let body = ErrorBodyOut {
        kind: "error",
        error: ErrorOut {
            kind: name(error.kind),
            message: &error.message,
            details: error.code.as_deref().map(|error_code| DetailsOut { error_code }),
        },
    };
    // Strings always serialize.
    serde_json::to_vec(&body).unwrap_or_default()
}

/// Keeps the host's status if it differs from the kind's (T38).
fn keep_status(error: &mut TurnError, status: u16) {
    if (400..600).contains(&status) && error.kind.status() != status {
        error.status = Some(status);
    }
}

/// The kind of an error type. `api_error` is generic, so the status decides.
fn known_kind(name: &str) -> Option<ErrorKind> {
    Some(match name {
        "invalid_request_error" => ErrorKind::InvalidRequest,
        "authentication_error" => ErrorKind::Authentication,
        "billing_error" => ErrorKind::Billing,
        "permission_error" => ErrorKind::Permission,
        "not_found_error" => ErrorKind::NotFound,
        "conflict_error" => ErrorKind::Conflict,
        "request_too_large" => ErrorKind::TooLarge,
        "rate_limit_error" => ErrorKind::RateLimited,
        "timeout_error" => ErrorKind::Timeout,
        "overloaded_error" => ErrorKind::Overloaded,
        _ => return None,
    })
}

fn name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidRequest => "invalid_request_error",
        ErrorKind::Authentication => "authentication_error",
        ErrorKind::Billing => "billing_error",
        ErrorKind::Permission => "permission_error",
        ErrorKind::NotFound => "not_found_error",
        ErrorKind::Conflict => "conflict_error",
        ErrorKind::TooLarge => "request_too_large",
        ErrorKind::RateLimited => "rate_limit_error",
        ErrorKind::Timeout => "timeout_error",
        ErrorKind::Overloaded => "overloaded_error",
        ErrorKind::Internal | ErrorKind::Upstream | ErrorKind::Unavailable | ErrorKind::Cancelled => {
            "api_error"
        }
    }
}

fn quote(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if text.is_empty() {
        return " and an empty body: check the host's log".to_owned();
    }
    let start: String = text.chars().take(MAX_QUOTE_CHARS).collect();
    format!(" and a body that is not an error of the Messages API: {start}")
}
