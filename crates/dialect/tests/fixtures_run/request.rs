//! A client's request as a host of another dialect (or the same) gets it.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_dialect::Translation;
use toolgate_dialect::host::HostFacts;
use toolgate_model::{TurnError, estimate};

use super::matching::Matcher;
use super::{ExpectedError, Outcome, check_losses, dialect, load};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestCase {
    #[serde(rename = "case")]
    _case: String,
    #[serde(rename = "why")]
    _why: String,
    client: String,
    /// Kept as text: key order and escapes are part of some cases.
    body: Box<RawValue>,
    upstream: String,
    /// The host's profile; an unknown host if it is absent.
    profile: Option<String>,
    expect: Option<Value>,
    expect_error: Option<ExpectedError>,
    /// The estimated input tokens.
    estimate: Option<u64>,
    /// Pieces of text that must stand in the host's body byte for byte.
    #[serde(default)]
    contains: Vec<String>,
    #[serde(default)]
    losses: Vec<String>,
}

/// Runs one fixture.
pub(crate) fn check(path: &Path) -> datatest_stable::Result<()> {
    let case: RequestCase = load(path)?;
    match (translate(&case)?, &case.expect_error) {
        (Ok(()), None) => Ok(()),
        (Err(error), Some(expect)) => Ok(expect.check(&error)?),
        (Ok(()), Some(_)) => Err("an error was expected".into()),
        (Err(error), None) => Err(format!("the request was refused: {error}").into()),
    }
}

/// The inner error is the dialect's rejection, the outer one is a fault of the fixture.
fn translate(case: &RequestCase) -> Result<Result<(), TurnError>, String> {
    let read = match dialect(&case.client)?.client.read_request(case.body.get().as_bytes()) {
        Ok(read) => read,
        Err(error) => return Ok(Err(error)),
    };
    let (client, host) = (dialect(&case.client)?.client.id(), dialect(&case.upstream)?.upstream);
    let facts = match &case.profile {
        None => HostFacts::at(host.id(), ""),
        Some(name) => HostFacts::named(host.id(), name).ok_or("there is no such profile")?,
    };
    let profile = facts.profile(read.value.model.as_str());
    let written = match Translation::new(host).request(client, &read.value, &read.value.model, &profile) {
        Ok(written) => written,
        Err(error) => return Ok(Err(error)),
    };
    let mut losses = read.losses;
    losses.append(written.losses);
    let estimated = estimate::input_tokens(&read.value);
    if case.estimate.is_some_and(|expect| expect != estimated) {
        return Err(format!("the input is estimated at {estimated} tokens and not {:?}", case.estimate));
    }
    judge(case, &written.body)?;
    check_losses(&case.losses, &losses)?;
    Ok(Ok(()))
}

fn judge(case: &RequestCase, body: &[u8]) -> Outcome {
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    if let Some(expect) = &case.expect {
        let found: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let difference = Matcher::default().difference(expect, &found);
        difference.map_or(Ok(()), |difference| Err(format!("{difference}\nthe body is:\n{text}")))?;
    }
    match case.contains.iter().find(|piece| !text.contains(*piece)) {
        None => Ok(()),
        Some(missing) => Err(format!("`{missing}` does not stand in the body:\n{text}")),
    }
}
