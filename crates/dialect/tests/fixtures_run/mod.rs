//! Runs fixtures: one module per kind, and the matching of expectations.

pub(crate) mod error;
pub(crate) mod frames;
pub(crate) mod matching;
pub(crate) mod ping;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod sse;

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toolgate_dialect::registry::{self, Dialect};
use toolgate_model::{ErrorKind, Losses, TurnError};

/// The result of a check: nothing, or the fault.
pub(crate) type Outcome = Result<(), String>;

/// Reads a fixture. An unknown or missing field is an error, so that a typo does not skip an expectation.
pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read the fixture: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("not a fixture of this kind: {error}"))
}

/// The dialect that a fixture names.
pub(crate) fn dialect(name: &str) -> Result<&'static Dialect, String> {
    registry::find(name).ok_or_else(|| format!("no dialect is called `{name}`"))
}

/// The error a fixture expects.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedError {
    status: u16,
    message_contains: String,
    kind: Option<String>,
}

impl ExpectedError {
    /// Status, kind and message are as expected.
    pub(crate) fn check(&self, error: &TurnError) -> Outcome {
        if error.status() != self.status {
            return Err(format!("the error's status is {} and not {}: {error}", error.status(), self.status));
        }
        if self.kind.as_deref().is_some_and(|kind| kind != kind_name(error.kind)) {
            return Err(format!("the error's kind is {}: {error}", kind_name(error.kind)));
        }
        if !error.message.contains(&self.message_contains) {
            return Err(format!("the error does not say `{}`: {error}", self.message_contains));
        }
        Ok(())
    }
}

/// Exactly the expected places were reported as lost, in any order.
pub(crate) fn check_losses(expect: &[String], losses: &Losses) -> Outcome {
    let mut found: Vec<&str> = losses.iter().map(|loss| loss.place.as_str()).collect();
    let mut wanted: Vec<&str> = expect.iter().map(String::as_str).collect();
    found.sort_unstable();
    wanted.sort_unstable();
    if found == wanted { Ok(()) } else { Err(format!("the losses are {found:?} and not {wanted:?}")) }
}

fn kind_name(kind: ErrorKind) -> String {
    format!("{kind:?}")
}
