//! A recorded exchange and the checks on it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_model::{Delivery, Reply, TurnError, TurnRequest, reply};

use crate::equivalence::{Side, difference};
use crate::{context, crossing, streams};
use toolgate_dialect::RequestForm;
use toolgate_dialect::registry::{self, Dialect};

/// One recorded exchange with a host.
#[derive(Debug, Deserialize)]
pub struct Exchange {
    /// The host's dialect, by its name in the configuration.
    pub dialect: String,
    /// The HTTP status of the response.
    pub status: Option<u16>,
    /// The request body.
    pub request: Option<Box<RawValue>>,
    /// The body of a whole reply or an error.
    pub reply: Option<Box<RawValue>>,
    /// The text of a streamed reply.
    pub sse: Option<String>,
}

/// The faults found, one line each; empty if the exchange passes.
pub type Verdict = Vec<String>;

/// Runs the whole battery over one exchange.
pub fn examine(exchange: &Exchange) -> Verdict {
    let Some(dialect) = registry::find(&exchange.dialect) else {
        return vec![format!("unknown dialect `{}`", exchange.dialect)];
    };
    let mut faults = Verdict::new();
    let request = exchange.request.as_deref().and_then(|body| examine_request(dialect, body, &mut faults));
    let request = Arc::new(request.unwrap_or_else(|| TurnRequest::new("model", Vec::new())));
    let status = exchange.status.unwrap_or(200);
    if let Some(body) = exchange.reply.as_deref() {
        examine_reply(dialect, status, body.get().as_bytes(), &request, &mut faults);
    }
    if let Some(text) = &exchange.sse {
        streams::examine(dialect, text.as_bytes(), &request, &mut faults);
    }
    faults
}

fn examine_request(dialect: &Dialect, body: &RawValue, faults: &mut Verdict) -> Option<TurnRequest> {
    let read = match dialect.client.read_request(body.get().as_bytes()) {
        Ok(read) => read,
        Err(error) => {
            faults.push(format!("reading the request failed: {error}"));
            return None;
        }
    };
    match dialect.client.peek_request(body.get().as_bytes()) {
        Ok(peek) => {
            let stream = matches!(read.value.delivery, Delivery::Stream(_));
            if (&*peek.model, peek.stream) != (read.value.model.as_str(), stream) {
                faults.push(format!("the peek at the request differs: {peek:?}"));
            }
        }
        Err(error) => faults.push(format!("peeking at the request failed: {error}")),
    }
    match dialect.upstream.write_request(&read.value, RequestForm::AsRead) {
        Ok(written) => {
            let found = compare(dialect, Side::Request, body.get().as_bytes(), &written.body);
            faults.extend(found.map(|found| format!("request differs: {found}")));
        }
        Err(error) => faults.push(format!("writing the request failed: {error}")),
    }
    crossing::request(dialect, &read.value, faults);
    Some(read.value)
}

fn examine_reply(
    dialect: &Dialect,
    status: u16,
    body: &[u8],
    request: &Arc<TurnRequest>,
    faults: &mut Verdict,
) {
    if status >= 400 {
        let error = dialect.upstream.read_error(status, body);
        return examine_error(&error, status, faults);
    }
    let read = match dialect.upstream.read_reply(body) {
        Ok(read) => read,
        // Some hosts send errors, or bodies that are not replies, with status 200. They must be read as errors.
        Err(error) if has_error(body) || !looks_like_reply(dialect, body) => {
            return examine_error(&error, error.status(), faults);
        }
        Err(error) => return faults.push(format!("reading the reply failed: {error}")),
    };
    let written = dialect.client.write_reply(&read.value, &context(request));
    let found = compare(dialect, Side::Reply, body, &written.value);
    faults.extend(found.map(|found| format!("reply differs: {found}")));
    examine_fold(&read.value, faults);
    crossing::reply(dialect, &read.value, request, faults);
}

fn examine_fold(reply: &Reply, faults: &mut Verdict) {
    match reply::fold(reply.clone().into_events()) {
        Ok(folded) if folded == *reply => {}
        Ok(_) => faults.push("reply is not the fold of its events".to_owned()),
        Err(error) => faults.push(format!("the grammar rejects the reply's events: {error}")),
    }
}

/// The error's kind, status and message must survive a round trip through every dialect.
pub(super) fn examine_error(error: &TurnError, status: u16, faults: &mut Verdict) {
    if error.status() != status {
        faults.push(format!("error's status {status} became {}", error.status()));
    }
    for (name, dialect) in &registry::ALL {
        let read = dialect.upstream.read_error(error.status(), &dialect.client.write_error(error));
        if (read.kind, read.status(), &read.message) != (error.kind, error.status(), &error.message) {
            faults.push(format!(
                "error written in {name} became {:?}, {}: {}",
                read.kind,
                read.status(),
                read.message
            ));
        }
    }
}

/// The first difference between two bodies of one dialect.
pub(super) fn compare(dialect: &Dialect, side: Side, before: &[u8], after: &[u8]) -> Option<String> {
    let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes);
    match (parse(before), parse(after)) {
        (Ok(before), Ok(after)) => difference(dialect.client.id(), side, before, after),
        (Err(error), _) | (_, Err(error)) => Some(format!("not JSON: {error}")),
    }
}

fn has_error(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|body| {
        body.get("error").is_some_and(|error| !error.is_null())
            || body.pointer("/choices/0/error").is_some_and(|error| !error.is_null())
            || body.get("type") == Some(&Value::from("error"))
    })
}

fn looks_like_reply(dialect: &Dialect, body: &[u8]) -> bool {
    let markers: [&str; 3] = ["content", "choices", "output"];
    let body = serde_json::from_slice::<Value>(body).unwrap_or_default();
    let at = registry::ALL.iter().position(|(name, _)| *name == dialect.client.id().name);
    at.and_then(|at| markers.get(at)).is_some_and(|marker| body.get(*marker).is_some())
}
