//! `/messages/count_tokens`: counts a request's tokens without answering it.

use toolgate_model::{Translated, TurnError, TurnRequest};

use super::request_read;

/// Reads a client's count request: a Messages request without `max_tokens`.
pub fn read_count_request(body: &[u8]) -> Result<Translated<TurnRequest>, TurnError> {
    request_read::read_to_count(body)
}

/// Writes the count for a client.
pub fn write_count(input_tokens: u64) -> Vec<u8> {
    format!(r#"{{"input_tokens":{input_tokens}}}"#).into_bytes()
}
