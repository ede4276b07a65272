//! The shapes in which hosts report errors: `{"error": {…}}`, `{"error": "text"}`, `{"message": …, "code": …}`, and any
//! of them in an array.

use serde_json::Value;
use toolgate_model::ErrorKind;

/// An error as the host reported it.
pub(crate) struct HostError {
    pub(crate) message: String,
    /// `type`.
    pub(crate) kind: Option<String>,
    /// `code`; some hosts send a number (T38).
    pub(crate) code: Option<String>,
    pub(crate) param: Option<String>,
    /// An HTTP status inside the body.
    pub(crate) status: Option<u16>,
}

/// Fields that hold the message.
const MESSAGE_FIELDS: [&str; 4] = ["message", "detail", "error", "msg"];

/// The error in a body or frame; `None` if it contains none. Any JSON object with a message counts as one, so call this
/// only for JSON that is not a reply.
pub(crate) fn find(json: &Value) -> Option<HostError> {
    let body = json.get(0).unwrap_or(json);
    let error = body.get("error").filter(|error| !error.is_null());
    let detail = error.unwrap_or(body);
    let message = if detail.is_string() {
        message_text(detail)
    } else {
        MESSAGE_FIELDS.iter().find_map(|name| message_text(detail.get(*name)?))
    };
    // An error without a message is an error all the same.
    let message = match (message, error) {
        (Some(message), _) => message,
        (None, Some(_)) => "the host reported an error without a message".to_owned(),
        (None, None) => return None,
    };
    let text = |name: &str| detail.get(name).and_then(Value::as_str).map(str::to_owned);
    let code = detail.get("code").or_else(|| body.get("code")).and_then(code_text);
    let status = status(detail, code.as_deref());
    Some(HostError { message, kind: text("type"), code, param: text("param"), status })
}

/// The kind that a host's code stands for.
pub(crate) fn kind_of_code(code: &str) -> Option<ErrorKind> {
    Some(match code {
        "rate_limit_exceeded" => ErrorKind::RateLimited,
        "insufficient_quota" => ErrorKind::Billing,
        "model_not_found" => ErrorKind::NotFound,
        "invalid_api_key" => ErrorKind::Authentication,
        "context_length_exceeded" => ErrorKind::InvalidRequest,
        _ => numbered_kind(code.parse().ok().filter(|_| code.len() == NUMBERED_DIGITS)?)?,
    })
}

/// The length of Z.ai's codes.
const NUMBERED_DIGITS: usize = 4;

/// Z.ai's codes.
fn numbered_kind(code: u16) -> Option<ErrorKind> {
    Some(match code {
        1000..=1004 => ErrorKind::Authentication,
        1113 | 1309 => ErrorKind::Billing,
        1110..=1112 | 1121 | 1220 | 1311 => ErrorKind::Permission,
        1211 | 1221 | 1222 => ErrorKind::NotFound,
        1210 | 1212..=1215 | 1261 | 1300 | 1301 => ErrorKind::InvalidRequest,
        1302..=1305 | 1308 | 1310 | 1313 => ErrorKind::RateLimited,
        1312 => ErrorKind::Overloaded,
        _ => return None,
    })
}

/// A message: a string, or a list of problems as JSON.
fn message_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => Some(value.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn code_text(code: &Value) -> Option<String> {
    match code {
        Value::String(code) if !code.is_empty() => Some(code.clone()),
        Value::Number(code) => Some(code.to_string()),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn status(detail: &Value, code: Option<&str>) -> Option<u16> {
    let named = ["status_code", "status"].iter().find_map(|name| detail.get(*name)?.as_u64());
    let status = named.or_else(|| code?.parse().ok())?;
    u16::try_from(status).ok().filter(|status| (400..600).contains(status))
}
