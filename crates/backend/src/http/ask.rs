//! A request to a host, before it is known over which kind of connection it goes.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

/// A `POST` to a host. Borrows what is the same for all requests.
pub(super) struct Ask<'a> {
    pub(super) uri: &'a Uri,
    /// What every request to this host carries.
    pub(super) headers: &'a HeaderMap,
    /// What this one carries; wins over a header of the same name in `headers`.
    pub(super) own_headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Bytes,
}

impl Ask<'_> {
    /// All headers, each name once.
    pub(super) fn all_headers(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        let replaced = |name: &HeaderName| self.own_headers.iter().any(|(own, _)| own == name);
        let shared = self.headers.iter().filter(move |(name, _)| !replaced(name));
        shared.chain(self.own_headers.iter().map(|(name, value)| (name, value)))
    }
}
