//! Differential checks of `toolgate-h1` against hyper: whatever is accepted here means the same there.
//!
//! ```text
//!  choices ─▶ grammar ─▶ bytes ─┬─▶ toolgate_h1 ─┬─▶ equal, wherever toolgate_h1 accepts
//!                               └─▶ hyper ───────┘
//! ```
//!
//! The fuzz targets and `tests/against_hyper.rs` share this code.

mod grammar;
mod polling;
pub mod requests;
pub mod responses;

/// Names in lower case with their values, sorted by name: hyper does not keep the order between different names.
pub type FieldList = Vec<(String, Vec<u8>)>;

fn ours(fields: toolgate_h1::Fields<'_>) -> FieldList {
    sorted(fields.iter().map(|field| (field.name.to_ascii_lowercase(), field.value.to_vec())).collect())
}

fn hypers(fields: &hyper::HeaderMap) -> FieldList {
    sorted(fields.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect())
}

fn sorted(mut fields: FieldList) -> FieldList {
    fields.sort_by(|(left, _), (right, _)| left.cmp(right));
    fields
}

/// Small pieces in which to read so many bytes again; a long head is read anew with each piece.
fn piece_sizes(length: usize) -> [usize; 2] {
    let smallest = length / 1024 + 1;
    [smallest, smallest * 7]
}
