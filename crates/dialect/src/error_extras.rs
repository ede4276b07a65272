//! What a host's error says beyond what every dialect can tell: kept for clients of the host's own dialect, reported
//! as lost to others.

use serde_json::{Map, Value};
use toolgate_model::{DialectId, Extras, Fields};

/// Where errors stand in their bodies, in every dialect.
const ERROR: &str = "error";
/// How fields inside the error are told from fields beside it.
const INSIDE: &str = "error.";
/// The host's own word for what went wrong.
const KIND: &str = "type";
/// What names the exchange, or says in the host's words what every dialect has words for.
const ENVELOPE_FIELDS: [&str; 3] = ["request_id", "type", "error.type"];

/// What `body` says and `told`, the same error as we write it, does not.
pub(crate) fn of(dialect: DialectId, body: &[u8], told: &[u8]) -> Extras {
    let (Ok(Value::Object(body)), Ok(Value::Object(told))) =
        (serde_json::from_slice(body), serde_json::from_slice(told))
    else {
        return Extras::NONE;
    };
    let mut rest = Fields::new();
    for (name, value) in beyond(&body, &told) {
        if name != ERROR {
            rest.insert(name, value);
        } else if let Value::Object(inside) = value {
            rest.extend(inside.into_iter().map(|(name, value)| (format!("{INSIDE}{name}"), value)));
        }
    }
    Extras::of(dialect, rest).envelope_fields(&ENVELOPE_FIELDS)
}

/// Adds to a written error what else its host said, if it spoke this dialect.
pub(crate) fn add(dialect: DialectId, extras: &Extras, written: Vec<u8>) -> Vec<u8> {
    let Some(rest) = extras.known_to(dialect).filter(|rest| !rest.is_empty()) else { return written };
    let Ok(Value::Object(mut body)) = serde_json::from_slice(&written) else { return written };
    for (name, value) in rest {
        let (place, name) = match (name.strip_prefix(INSIDE), body.get_mut(ERROR)) {
            (Some(inside), Some(Value::Object(error))) => (error, inside),
            _ => (&mut body, name.as_str()),
        };
        fill(place, name, value);
    }
    Value::Object(body).to_string().into_bytes()
}

/// Fields of `one` that `other` lacks, objects compared field by field.
fn beyond(one: &Map<String, Value>, other: &Map<String, Value>) -> Map<String, Value> {
    let mut rest = Map::new();
    for (name, value) in one {
        match (value, other.get(name)) {
            (Value::Null, _) => {}
            (Value::Object(value), Some(Value::Object(known))) => {
                let inside = beyond(value, known);
                if !inside.is_empty() {
                    rest.insert(name.clone(), Value::Object(inside));
                }
            }
            (_, None | Some(Value::Null)) => {
                rest.insert(name.clone(), value.clone());
            }
            // Hosts have more words for their errors than we have kinds.
            (_, Some(known)) if name == KIND && value != known => {
                rest.insert(name.clone(), value.clone());
            }
            (_, Some(_)) => {}
        }
    }
    rest
}

fn fill(place: &mut Map<String, Value>, name: &str, value: &Value) {
    match (place.get_mut(name), value) {
        (Some(Value::Object(inside)), Value::Object(more)) => {
            more.iter().for_each(|(name, value)| fill(inside, name, value));
        }
        (None | Some(Value::Null), _) => {
            place.insert(name.to_owned(), value.clone());
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
    fn what_else_the_host_said_reaches_a_client_of_its_dialect() {
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
    fn elsewhere_it_is_a_loss_and_the_body_is_a_plain_error() {
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
