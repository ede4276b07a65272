//! Counting a request's tokens without answering it: `/messages/count_tokens`.

use serde::{Deserialize, Serialize};
use toolgate_model::{Translated, TurnError, TurnRequest};

use super::{request, request_write};
use crate::WrittenRequest;

#[derive(Deserialize, Serialize)]
struct Count {
    input_tokens: u64,
}

/// Reads a client's request to count; it is a request for an answer without `max_tokens`.
pub fn read_count_request(body: &[u8]) -> Result<Translated<TurnRequest>, TurnError> {
    request::read_to_count(body)
}

/// Writes a host's request to count.
pub fn write_count_request(request: &TurnRequest) -> Result<WrittenRequest, TurnError> {
    request_write::write_to_count(request)
}

/// Reads a host's count.
pub fn read_count(body: &[u8]) -> Result<u64, TurnError> {
    serde_json::from_slice(body).map(|Count { input_tokens }| input_tokens).map_err(|error| {
        TurnError::upstream("the host's answer to count_tokens has no `input_tokens`").caused_by(error)
    })
}

/// Writes a count for a client.
pub fn write_count(input_tokens: u64) -> Vec<u8> {
    format!(r#"{{"input_tokens":{input_tokens}}}"#).into_bytes()
}
