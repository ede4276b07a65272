//! A host's error answer as the client gets it: in its own envelope, the status kept (T38).

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::matching::Matcher;
use super::{ExpectedError, dialect, load};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorCase {
    #[serde(rename = "case")]
    _case: String,
    #[serde(rename = "why")]
    _why: String,
    upstream: String,
    status: u16,
    /// A string is the body's text itself, anything else is JSON.
    body: Value,
    client: String,
    expect_error: ExpectedError,
    expect: Value,
}

/// Runs one fixture.
pub(crate) fn check(path: &Path) -> datatest_stable::Result<()> {
    let case: ErrorCase = load(path)?;
    let body = case.body.as_str().map_or_else(|| case.body.to_string(), str::to_owned);
    let error = dialect(&case.upstream)?.upstream.read_error(case.status, body.as_bytes());
    case.expect_error.check(&error)?;
    let written = dialect(&case.client)?.client.write_error(&error);
    let difference = Matcher::default().difference(&case.expect, &serde_json::from_slice(&written)?);
    let fault = difference
        .map(|difference| format!("{difference}\nthe body is:\n{}", String::from_utf8_lossy(&written)));
    fault.map_or(Ok(()), |fault| Err(fault.into()))
}
