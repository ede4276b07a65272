//! Writes server-sent events.

/// Appends one named event. An empty name is omitted; the decoder reports a missing name as empty.
pub fn write_event(event: &str, data: &[u8], out: &mut Vec<u8>) {
    if !event.is_empty() {
        out.extend_from_slice(b"event: ");
        // A line break in the name would end the field and inject further fields.
        event.split(['\r', '\n']).for_each(|piece| out.extend_from_slice(piece.as_bytes()));
        out.push(b'\n');
    }
    write_data(data, out);
}

/// Appends one event without a name. A line break in the data starts a new data line; readers see it as `\n`.
pub fn write_data(data: &[u8], out: &mut Vec<u8>) {
    write_lines(b"data: ", data, out);
    out.push(b'\n');
}

/// Appends a comment, which readers ignore. No empty line follows: some readers take one for an event.
// T19
pub fn write_comment(text: &str, out: &mut Vec<u8>) {
    write_lines(b": ", text.as_bytes(), out);
}

fn write_lines(prefix: &[u8], text: &[u8], out: &mut Vec<u8>) {
    out.reserve(prefix.len() + text.len() + 2);
    let mut rest = text;
    loop {
        out.extend_from_slice(prefix);
        let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else { break };
        out.extend_from_slice(&rest[..end]);
        out.push(b'\n');
        let length = if rest[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = &rest[end + length..];
    }
    out.extend_from_slice(rest);
    out.push(b'\n');
}
