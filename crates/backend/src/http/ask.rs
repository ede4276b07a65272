//! A request to a host, before it is known over which kind of connection it goes.

use bytes::{BufMut, Bytes, BytesMut};
use http::header::ACCEPT;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

/// A `POST` to a host. Borrows what is the same for all requests.
pub(super) struct Ask<'a> {
    pub(super) to: &'a Address,
    /// What the answer is to be; wins over the headers of the address, as does `forwarded`.
    pub(super) accept: &'static str,
    /// What the client says to the host.
    pub(super) forwarded: &'a [(HeaderName, HeaderValue)],
    pub(super) body: Bytes,
}

/// A path of a host, and what every request there carries.
pub(super) struct Address {
    pub(super) uri: Uri,
    headers: HeaderMap,
    /// The same as HTTP/1.1 writes it: the first two lines of every request, and a line for each header.
    start: Bytes,
    lines: Vec<(HeaderName, Bytes)>,
}

impl Address {
    /// `host` is what the host is called there.
    pub(super) fn new(uri: Uri, host: &HeaderValue, headers: HeaderMap) -> Self {
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let start =
            [b"POST ", path.as_bytes(), b" HTTP/1.1\r\nhost: ", host.as_bytes(), b"\r\n"].concat().into();
        let line = |(name, value): (&HeaderName, &HeaderValue)| {
            let line = [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat();
            (name.clone(), line.into())
        };
        let lines = headers.iter().map(line).collect();
        Self { uri, headers, start, lines }
    }
}

impl Ask<'_> {
    /// All headers, each name once.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = self.to.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static(self.accept));
        for (name, value) in self.forwarded {
            headers.insert(name, value.clone());
        }
        headers
    }

    /// Writes the head of the request in HTTP/1.1, its last empty line included.
    pub(super) fn write_head(&self, out: &mut BytesMut) {
        out.put_slice(&self.to.start);
        for (name, line) in &self.to.lines {
            let is_replaced = *name == ACCEPT || self.forwarded.iter().any(|(own, _)| own == name);
            if !is_replaced {
                out.put_slice(line);
            }
        }
        let mut put = |texts: &[&[u8]]| texts.iter().for_each(|text| out.put_slice(text));
        put(&[b"accept: ", self.accept.as_bytes(), b"\r\n"]);
        for (name, value) in self.forwarded {
            put(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
        }
        put(&[b"content-length: ", self.body.len().to_string().as_bytes(), b"\r\n\r\n"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_what_it_carries_each_header_once() {
        let mut headers = HeaderMap::new();
        headers.insert("x-shared", HeaderValue::from_static("1"));
        headers.insert("x-version", HeaderValue::from_static("ours"));
        headers.insert("accept", HeaderValue::from_static("*/*"));
        let uri = Uri::from_static("http://h:1/v1/chat?a=b");
        let to = Address::new(uri, &HeaderValue::from_static("h:1"), headers);
        let own = (HeaderName::from_static("x-version"), HeaderValue::from_static("theirs"));
        let body = Bytes::from_static(b"{}");
        let ask = Ask { to: &to, accept: "text/plain", forwarded: &[own], body };
        let mut out = BytesMut::new();
        ask.write_head(&mut out);
        assert_eq!(
            str::from_utf8(&out),
            Ok(
                "POST /v1/chat?a=b HTTP/1.1\r\nhost: h:1\r\nx-shared: 1\r\naccept: text/plain\r\nx-version: theirs\r\ncontent-length: 2\r\n\r\n"
            )
        );
        let headers = ask.headers();
        assert_eq!(headers.len(), 3, "{headers:?}");
        assert_eq!(headers["accept"], "text/plain");
        assert_eq!(headers["x-version"], "theirs");
    }
}
