//! Writing heads and chunks. Writing into memory that grows cannot fail.

use std::fmt::Write;

use bytes::{BufMut, BytesMut};

/// Room for the size line and the line end of a chunk.
const CHUNK_OVERHEAD_BYTES: usize = 20;

/// Writes the pieces one after the other.
pub fn pieces(out: &mut BytesMut, pieces: &[&[u8]]) {
    for piece in pieces {
        out.put_slice(piece);
    }
}

/// Writes one field line. Name and value must be valid; `http`'s header types are.
pub fn field(out: &mut BytesMut, name: &[u8], value: &[u8]) {
    pieces(out, &[name, b": ", value, b"\r\n"]);
}

/// Writes `content-length`.
pub fn content_length(out: &mut BytesMut, length: usize) {
    formatted(out, format_args!("content-length: {length}\r\n"));
}

/// Writes `transfer-encoding: chunked`.
pub fn chunked_encoding(out: &mut BytesMut) {
    out.put_slice(b"transfer-encoding: chunked\r\n");
}

/// Ends a head.
pub fn end_of_head(out: &mut BytesMut) {
    out.put_slice(b"\r\n");
}

/// Writes one chunk of a body. An empty one is left out, because it would end the body.
pub fn chunk(out: &mut BytesMut, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    out.reserve(bytes.len() + CHUNK_OVERHEAD_BYTES);
    formatted(out, format_args!("{:x}\r\n", bytes.len()));
    pieces(out, &[bytes, b"\r\n"]);
}

/// Ends a chunked body.
pub fn last_chunk(out: &mut BytesMut) {
    out.put_slice(b"0\r\n\r\n");
}

fn formatted(out: &mut BytesMut, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_chunk_does_not_end_a_body() {
        let mut out = BytesMut::new();
        for bytes in ["", "0123456789abcdefg", ""] {
            chunk(&mut out, bytes.as_bytes());
        }
        last_chunk(&mut out);
        assert_eq!(out, "11\r\n0123456789abcdefg\r\n0\r\n\r\n");
    }
}
