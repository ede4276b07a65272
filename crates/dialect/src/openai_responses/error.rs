//! Errors: `{"error":{"message","type","param","code"}}`, also inside streams and failed responses.

use serde_json::{Value, json};
use toolgate_model::{ErrorKind, TurnError};

use super::ID;
use crate::error_extras;

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
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let object = json.as_ref().and_then(|body| match body.get("error") {
        Some(error @ (Value::Object(_) | Value::String(_))) => Some(error),
        _ => body.get("message").or_else(|| body.get("detail")).map(|_| body),
    });
    if let Some(object) = object {
        return from_value(object, Some(status));
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

/// Reads an error object. In a stream there is no status.
pub(super) fn from_value(error: &Value, status: Option<u16>) -> TurnError {
    let text = |name: &str| error.get(name).and_then(Value::as_str);
    // T38: some hosts send the code as a number.
    let code = error.get("code").and_then(|code| match code {
        Value::String(code) => Some(code.clone()),
        Value::Number(code) => Some(code.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    });
    let message = text("message").or_else(|| text("detail")).or_else(|| error.as_str());
    let message = message.filter(|message| !message.is_empty());
    let kind = kind_of(text("type").unwrap_or_default(), code.as_deref().unwrap_or_default(), status);
    let mut error = TurnError::new(kind, message.unwrap_or("the host reported an error without a message"));
    error.code = code;
    error.param = text("param").map(Box::from);
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
        (_, None) => specific_kind(code).unwrap_or(match code {
            "server_error" => ErrorKind::Internal,
            "rate_limit_exceeded" => ErrorKind::RateLimited,
            "model_not_found" => ErrorKind::NotFound,
            "invalid_api_key" => ErrorKind::Authentication,
            code if code.starts_with("invalid_")
                || code.contains("image")
                || code == "context_length_exceeded" =>
            {
                ErrorKind::InvalidRequest
            }
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
