//! Counts of input tokens (`POST /responses/input_tokens`).

use serde_json::json;

/// Writes the reply of `input_tokens`.
pub fn write_count(input_tokens: u64) -> Vec<u8> {
    json!({ "object": "response.input_tokens", "input_tokens": input_tokens }).to_string().into_bytes()
}
