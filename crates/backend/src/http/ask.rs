//! A request to a host, before it is known over which kind of connection it goes.

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

/// A `POST` to a host. Borrows what is the same for all requests.
pub(super) struct Ask<'a> {
    pub(super) uri: &'a Uri,
    /// What every request to this host carries.
    pub(super) headers: &'a HeaderMap,
    /// What the answer is to be; wins over `headers`, as does `forwarded`.
    pub(super) accept: HeaderValue,
    /// What the client says to the host.
    pub(super) forwarded: &'a [(HeaderName, HeaderValue)],
    pub(super) body: Bytes,
}

impl Ask<'_> {
    /// All headers, each name once.
    pub(super) fn all_headers(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        let replaced =
            |name: &HeaderName| *name == ACCEPT || self.forwarded.iter().any(|(own, _)| own == name);
        let shared = self.headers.iter().filter(move |(name, _)| !replaced(name));
        let forwarded = self.forwarded.iter().map(|(name, value)| (name, value));
        shared.chain([(&ACCEPT, &self.accept)]).chain(forwarded)
    }
}
