//! Error fields that have no typed counterpart: kept for clients of the host's own dialect, reported as lost to others.

use serde_json::{Map, Value};
use toolgate_model::{DialectId, Extras, Fields};

/// The field that holds the error, in every dialect.
const ERROR: &str = "error";
/// Prefix of fields inside the error object; fields beside it have none.
const INNER_PREFIX: &str = "error.";
/// The host's name for the kind of error.
const KIND: &str = "type";
/// Fields that identify the request, or repeat what `ErrorKind` already says.
const ENVELOPE_FIELDS: [&str; 3] = ["request_id", "type", "error.type"];

/// The fields of `body` that are missing in `written`, the same error as this dialect writes it.
pub(crate) fn of(dialect: DialectId, body: &[u8], written: &[u8]) -> Extras {
    let (Ok(Value::Object(body)), Ok(Value::Object(written))) =
        (serde_json::from_slice(body), serde_json::from_slice(written))
    else {
        return Extras::NONE;
    };
    let mut rest = Fields::new();
    for (name, value) in difference(&body, &written) {
        if name != ERROR {
            rest.insert(name, value);
        } else if let Value::Object(inside) = value {
            rest.extend(inside.into_iter().map(|(name, value)| (format!("{INNER_PREFIX}{name}"), value)));
        }
    }
    Extras::of(dialect, rest).envelope_fields(&ENVELOPE_FIELDS)
}

/// Adds the host's extra fields to a written error, if the host used this dialect.
pub(crate) fn add(dialect: DialectId, extras: &Extras, written: Vec<u8>) -> Vec<u8> {
    let Some(rest) = extras.known_to(dialect).filter(|rest| !rest.is_empty()) else { return written };
    let Ok(Value::Object(mut body)) = serde_json::from_slice(&written) else { return written };
    for (name, value) in rest {
        let (target, name) = match (name.strip_prefix(INNER_PREFIX), body.get_mut(ERROR)) {
            (Some(inside), Some(Value::Object(error))) => (error, inside),
            _ => (&mut body, name.as_str()),
        };
        fill(target, name, value);
    }
    Value::Object(body).to_string().into_bytes()
}

/// Fields of `one` that `other` lacks, objects compared field by field.
fn difference(one: &Map<String, Value>, other: &Map<String, Value>) -> Map<String, Value> {
    let mut rest = Map::new();
    for (name, value) in one {
        match (value, other.get(name)) {
            (Value::Null, _) => {}
            (Value::Object(value), Some(Value::Object(known))) => {
                let inside = difference(value, known);
                if !inside.is_empty() {
                    rest.insert(name.clone(), Value::Object(inside));
                }
            }
            (_, None | Some(Value::Null)) => {
                rest.insert(name.clone(), value.clone());
            }
            // Hosts have more error types than `ErrorKind` has variants.
            (_, Some(known)) if name == KIND && value != known => {
                rest.insert(name.clone(), value.clone());
            }
            (_, Some(_)) => {}
        }
    }
    rest
}

fn fill(target: &mut Map<String, Value>, name: &str, value: &Value) {
    match (target.get_mut(name), value) {
        (Some(Value::Object(inside)), Value::Object(more)) => {
            more.iter().for_each(|(name, value)| fill(inside, name, value));
        }
        (None | Some(Value::Null), _) => {
            target.insert(name.to_owned(), value.clone());
        }
        (Some(known), _) if name == KIND => *known = value.clone(),
        (Some(_), _) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_model::{Losses, TurnError};

    use crate::registry::{ALL, Dialect, find};

    fn read(dialect: &Dialect, body: &Value) -> TurnError {
        dialect.upstream.read_error(429, body.to_string().as_bytes())
    }

    use super::*;

    #[test]
    fn extra_error_fields_reach_a_client_of_the_same_dialect() {
        let bodies = [
            (
                "anthropic-messages",
                json!({ "type": "error", "error": { "type": "rate_limit_error", "message": "slow", "window": 5,
                        "details": { "error_code": "burst", "of": [1] } }, "request_id": "req_1", "trace": { "id": 1 } }),
            ),
            (
                "openai-chat",
                json!({ "error": { "message": "slow", "type": "tokens", "param": null, "code": "burst",
                        "metadata": { "provider": "x" } }, "user_id": "u" }),
            ),
            (
                "openai-responses",
                json!({ "error": { "message": "slow", "type": "rate_limit_error", "param": null, "code": "burst",
                        "event_id": "e" } }),
            ),
        ];
        for (name, body) in bodies {
            let dialect = find(name).expect("it is registered");
            let written = dialect.client.write_error(&read(dialect, &body));
            assert_eq!(serde_json::from_slice::<Value>(&written).expect("JSON"), body, "{name}");
        }
    }

    #[test]
    fn another_dialect_reports_them_as_lost_and_writes_a_plain_error() {
        let host = find("anthropic-messages").expect("it is registered");
        let body = json!({ "type": "error", "request_id": "req_1", "trace": 1,
                           "error": { "type": "rate_limit_error", "message": "slow", "window": 5 } });
        let error = read(host, &body);
        for (name, client) in ALL.iter().filter(|(name, _)| *name != "anthropic-messages") {
            let mut plain = error.clone();
            plain.extras = Extras::NONE;
            assert_eq!(client.client.write_error(&error), client.client.write_error(&plain), "{name}");
            let mut losses = Losses::default();
            error.extras.write(client.client.id(), "", &mut losses);
            let places: Vec<&str> = losses.iter().map(|loss| loss.place.as_str()).collect();
            assert_eq!(places, ["trace", "error.window"], "{name}");
        }
    }
}
