//! A request to a host, for either version of HTTP.

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use toolgate_h1::write;

use super::proxy::ProxyUse;

/// A `POST` to a host. Borrows what all requests have in common.
pub(super) struct HostRequest<'a> {
    pub(super) to: &'a Address,
    /// The media type wanted. Replaces a header of the address, as `forwarded` does.
    pub(super) accept: &'static str,
    /// The client's headers for the host.
    pub(super) forwarded: &'a [(HeaderName, HeaderValue)],
    pub(super) body: Bytes,
}

/// A path of a host, and the headers of every request to it.
pub(super) struct Address {
    pub(super) uri: Uri,
    headers: HeaderMap,
    /// The same in HTTP/1.1: the request line and `host`, and a line for each other header.
    start: Bytes,
    lines: Vec<(HeaderName, Bytes)>,
}

impl Address {
    /// `host` is the value of the `host` header.
    pub(super) fn new(uri: Uri, host: &HeaderValue, mut headers: HeaderMap, proxy: &ProxyUse) -> Self {
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).as_bytes();
        let origin: &[&[u8]] = match proxy {
            ProxyUse::Direct | ProxyUse::Tunnel(_) => &[],
            ProxyUse::Forward(proxy) => {
                if let Some(authorization) = &proxy.authorization {
                    headers.insert(PROXY_AUTHORIZATION, authorization.clone());
                }
                &[b"http://", host.as_bytes()]
            }
        };
        let start = [b"POST ", &*origin.concat(), path, b" HTTP/1.1\r\nhost: ", host.as_bytes(), b"\r\n"]
            .concat()
            .into();
        let line = |(name, value): (&HeaderName, &HeaderValue)| {
            let line = [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat();
            (name.clone(), line.into())
        };
        let lines = headers.iter().map(line).collect();
        Self { uri, headers, start, lines }
    }
}

impl HostRequest<'_> {
    /// All headers, each name once.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = self.to.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static(self.accept));
        for (name, value) in self.forwarded {
            headers.insert(name, value.clone());
        }
        headers
    }

    /// Writes the head of the request in HTTP/1.1, the empty line included.
    pub(super) fn write_head(&self, out: &mut BytesMut) {
        out.extend_from_slice(&self.to.start);
        for (name, line) in &self.to.lines {
            let is_replaced = *name == ACCEPT || self.forwarded.iter().any(|(own, _)| own == name);
            if !is_replaced {
                out.extend_from_slice(line);
            }
        }
        write::field(out, b"accept", self.accept.as_bytes());
        for (name, value) in self.forwarded {
            write::field(out, name.as_str().as_bytes(), value.as_bytes());
        }
        write::content_length(out, self.body.len());
        write::end_of_head(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::proxy::Proxy;

    #[test]
    fn a_request_has_each_header_once() {
        let mut headers = HeaderMap::new();
        headers.insert("x-shared", HeaderValue::from_static("1"));
        headers.insert("x-version", HeaderValue::from_static("ours"));
        headers.insert("accept", HeaderValue::from_static("*/*"));
        let uri = Uri::from_static("http://h:1/v1/chat?a=b");
        let to = Address::new(uri, &HeaderValue::from_static("h:1"), headers, &ProxyUse::Direct);
        let own = (HeaderName::from_static("x-version"), HeaderValue::from_static("theirs"));
        let body = Bytes::from_static(b"{}");
        let request = HostRequest { to: &to, accept: "text/plain", forwarded: &[own], body };
        let mut out = BytesMut::new();
        request.write_head(&mut out);
        assert_eq!(
            str::from_utf8(&out),
            Ok(
                "POST /v1/chat?a=b HTTP/1.1\r\nhost: h:1\r\nx-shared: 1\r\naccept: text/plain\r\nx-version: theirs\r\ncontent-length: 2\r\n\r\n"
            )
        );
        let headers = request.headers();
        assert_eq!(headers.len(), 3, "{headers:?}");
        assert_eq!(headers["accept"], "text/plain");
        assert_eq!(headers["x-version"], "theirs");
    }
    #[test]
    fn a_forwarding_proxy_gets_the_whole_url_and_its_password() {
        let authorization = Some(HeaderValue::from_static("Basic x"));
        let proxy = ProxyUse::Forward(Proxy { uri: Uri::from_static("http://p:3128"), authorization });
        let to = Address::new(
            Uri::from_static("http://h:1/v1/chat"),
            &HeaderValue::from_static("h:1"),
            HeaderMap::new(),
            &proxy,
        );
        let request = HostRequest { to: &to, accept: "*/*", forwarded: &[], body: Bytes::new() };
        let mut out = BytesMut::new();
        request.write_head(&mut out);
        assert_eq!(
            str::from_utf8(&out),
            Ok(
                "POST http://h:1/v1/chat HTTP/1.1\r\nhost: h:1\r\nproxy-authorization: Basic x\r\naccept: */*\r\ncontent-length: 0\r\n\r\n"
            )
        );
    }
}
