//! The facts of hosts, by name or by the host part of their URL.

mod makers;
mod others;

use super::facts::{Effort, ReasoningSwitch, Reasons, Set, ThoughtSignatures};
use super::profile::Facts;

/// Every known host.
pub(super) fn all() -> impl Iterator<Item = &'static Host> + Clone {
    makers::MAKERS.iter().chain(others::OTHERS)
}

/// One host.
pub(super) struct Host {
    /// The value of `profile` in the configuration.
    pub(super) name: &'static str,
    /// The names of the host, or the domains above them.
    pub(super) urls: &'static [&'static str],
    /// As a Chat host.
    pub(super) chat: Facts,
    /// As a Responses host.
    pub(super) responses: Facts,
    /// As a Messages host.
    pub(super) messages: Facts,
    /// Models with facts of their own in Chat requests, by the beginning of the normalised name.
    pub(super) models: &'static [(&'static str, Facts)],
}

const NO_HOST: Host = Host {
    name: "",
    urls: &[],
    chat: Facts::NONE,
    responses: Facts::NONE,
    messages: Facts::NONE,
    models: &[],
};

const fn efforts(values: &[Effort]) -> Facts {
    Facts {
        efforts: Some(Set::<Effort>::of(values)),
        reasoning_switch: Some(ReasoningSwitch::Effort),
        ..Facts::NONE
    }
}

/// What every known host refuses unless its row says otherwise.
pub(super) const KNOWN: Facts = Facts { thought_signatures: Some(ThoughtSignatures::Refused), ..Facts::NONE };

/// A model that reasons by default and takes these efforts.
const fn reasoner(reasons: Reasons, values: &[Effort]) -> Facts {
    Facts { reasons: Some(reasons), ..efforts(values) }
}

/// A model that does not reason.
const PLAIN: Facts = Facts { reasons: Some(Reasons::Never), ..Facts::NONE };
