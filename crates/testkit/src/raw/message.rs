//! HTTP/1.1 messages in the bytes of a connection.
//!
//! This reader accepts only what a test peer has reason to send: it finds the end of a message and judges nothing.

/// One message: a request, or a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawMessage {
    /// The head as it came, without the empty line that ends it.
    pub head: String,
    /// The body, without chunk sizes. Of a message that broke off, as much as came.
    pub body: Vec<u8>,
    /// Whether all of it came.
    pub is_complete: bool,
}

impl RawMessage {
    /// A response's status; 0 for a request.
    pub fn status(&self) -> u16 {
        let status = self.head.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5));
        status.and_then(|digits| digits.parse().ok()).unwrap_or_default()
    }

    /// The value of a header; empty where it is missing.
    pub fn header(&self, name: &str) -> &str {
        header(&self.head, name).unwrap_or_default()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is not JSON.
    #[expect(clippy::panic, reason = "a test that asks for JSON has failed when there is none")]
    pub fn json(&self) -> serde_json::Value {
        match serde_json::from_slice(&self.body) {
            Ok(json) => json,
            Err(error) => panic!("{error} in the body of:\n{}\n\n{}", self.head, self.text()),
        }
    }
}

/// All messages in these bytes, the last one perhaps incomplete.
pub fn messages(bytes: &[u8]) -> Vec<RawMessage> {
    let mut all = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (message, length) = first(rest);
        all.push(message);
        rest = &rest[length..];
    }
    all
}

/// The length of the first message, once all of it is there.
pub(super) fn complete_length(bytes: &[u8]) -> Option<usize> {
    let (message, length) = first(bytes);
    (message.is_complete && !bytes.is_empty()).then_some(length)
}

/// The length of the first head, with the empty line that ends it.
pub(super) fn head_length(bytes: &[u8]) -> Option<usize> {
    end_of(bytes, b"\r\n\r\n")
}

/// Where the first occurrence of `wanted` ends.
pub(super) fn end_of(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    find(bytes, wanted).map(|at| at + wanted.len())
}

/// The first message and how many bytes it takes.
fn first(bytes: &[u8]) -> (RawMessage, usize) {
    let Some(head_length) = head_length(bytes) else {
        let head = String::from_utf8_lossy(bytes).into_owned();
        return (RawMessage { head, body: Vec::new(), is_complete: false }, bytes.len());
    };
    let head = String::from_utf8_lossy(&bytes[..head_length - 4]).into_owned();
    let rest = &bytes[head_length..];
    let Body { bytes: body, length, is_complete } = body(&head, rest);
    (RawMessage { head, body, is_complete }, head_length + length)
}

struct Body {
    bytes: Vec<u8>,
    /// How many bytes it takes on the wire.
    length: usize,
    is_complete: bool,
}

fn body(head: &str, rest: &[u8]) -> Body {
    let status = head.strip_prefix("HTTP/1.").and_then(|line| line.get(2..5));
    if status.is_some_and(|status| status.starts_with('1') || ["204", "304"].contains(&status)) {
        return Body { bytes: Vec::new(), length: 0, is_complete: true };
    }
    if header(head, "transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        return chunked(rest);
    }
    let Some(length) = header(head, "content-length").and_then(|value| value.parse::<usize>().ok()) else {
        // A response without a length ends with its connection, which these bytes do not show.
        let length = if status.is_some() { rest.len() } else { 0 };
        return Body { bytes: rest[..length].to_vec(), length, is_complete: status.is_none() };
    };
    let there = length.min(rest.len());
    Body { bytes: rest[..there].to_vec(), length: there, is_complete: there == length }
}

fn chunked(all: &[u8]) -> Body {
    let mut bytes = Vec::new();
    let mut rest = all;
    let broken_off = |bytes| Body { bytes, length: all.len(), is_complete: false };
    loop {
        let Some(line) = find(rest, b"\r\n") else { return broken_off(bytes) };
        let size = String::from_utf8_lossy(&rest[..line]).into_owned();
        let size = size.split(';').next().unwrap_or_default().trim();
        let Ok(size) = usize::from_str_radix(size, 16) else { return broken_off(bytes) };
        rest = &rest[line + 2..];
        if size == 0 {
            // Trailers, if any, end with an empty line.
            let end = if rest.starts_with(b"\r\n") { Some(2) } else { head_length(rest) };
            let Some(end) = end else { return broken_off(bytes) };
            return Body { bytes, length: all.len() - rest.len() + end, is_complete: true };
        }
        bytes.extend_from_slice(&rest[..size.min(rest.len())]);
        if rest.len() < size + 2 {
            return broken_off(bytes);
        }
        rest = &rest[size + 2..];
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.split("\r\n").skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart_by_their_lengths() {
        let bytes = b"POST /a HTTP/1.1\r\nContent-Length: 2\r\n\r\nhiGET /b HTTP/1.1\r\n\r\n\
            POST /c HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n2;x\r\nho\r\n0\r\na: b\r\n\r\nPOST /d";
        let all = messages(bytes);
        let bodies: Vec<(String, bool)> =
            all.iter().map(|message| (message.text(), message.is_complete)).collect();
        let expected = [("hi", true), ("", true), ("ho", true), ("", false)];
        assert_eq!(bodies, expected.map(|(text, whole)| (text.to_owned(), whole)));
        assert_eq!(all[3].head, "POST /d");
    }

    #[test]
    fn a_response_has_its_status_and_ends_where_its_kind_says() {
        let bytes =
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\nHTTP/1.0 200 OK\r\nX: y\r\n\r\nrest";
        let all = messages(bytes);
        let statuses: Vec<u16> = all.iter().map(RawMessage::status).collect();
        assert_eq!(statuses, [100, 204, 200]);
        assert_eq!((all[2].header("x"), all[2].text().as_str(), all[2].is_complete), ("y", "rest", false));
    }

    #[test]
    fn a_message_is_complete_with_its_last_byte() {
        let whole = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(complete_length(&whole[..end]), None, "{end}");
        }
        assert_eq!(complete_length(whole), Some(whole.len()));
    }
}
