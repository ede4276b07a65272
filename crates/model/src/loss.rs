//! Losses: what a translation could not represent. Every loss is reported, in a response header, the log and the console.

use std::fmt;

use crate::extras::DialectId;

/// The maximum number of losses per turn: a hostile request must not grow the list without limit.
const MAX_LOSSES: usize = 64;

/// Fields whose loss is routine wherever they are: marks for a host's cache, a flag that is written as text, and the seals
/// of reasoning whose text is sent.
const ROUTINE_FIELDS: [&str; 3] = ["cache_control", "is_error", "seal"];

/// Places of routine losses: what only the host's cache and records use, and values that are expressed in another way.
const ROUTINE_PLACES: [&str; 10] = [
    "client_metadata",
    "context_management",
    "metadata",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "store",
    "thinking.budget_tokens",
    "usage",
    "user",
];

/// One loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The path of the lost field: `top_k`, `messages[].cache_control`.
    pub place: String,
    /// The reason, for people.
    pub reason: String,
}

impl Loss {
    /// True if the answer is the same without it. Clients cause such losses with every request.
    pub fn is_routine(&self) -> bool {
        let field = self.place.rsplit('.').next().unwrap_or_default();
        ROUTINE_FIELDS.contains(&field) || ROUTINE_PLACES.contains(&self.place.as_str())
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.place, self.reason)
    }
}

/// The losses of one translation, at most one per place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses(Vec<Loss>);

impl Losses {
    /// Reports a loss at `place`.
    pub fn add(&mut self, place: impl Into<String>, reason: impl Into<String>) {
        let place = place.into();
        if self.0.len() < MAX_LOSSES && !self.0.iter().any(|loss| loss.place == place) {
            self.0.push(Loss { place, reason: reason.into() });
        }
    }

    /// Reports a field that `target` does not support.
    pub fn unknown_to(&mut self, target: DialectId, place: impl Into<String>) {
        self.add(place, format!("{target} does not support it"));
    }

    /// Appends the losses of another step.
    pub fn append(&mut self, other: Self) {
        for loss in other.0 {
            self.add(loss.place, loss.reason);
        }
    }

    /// True if nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The losses in the order they were reported.
    pub fn iter(&self) -> impl Iterator<Item = &Loss> {
        self.0.iter()
    }

    /// The losses, routine ones last.
    pub fn routine_last(&self) -> impl Iterator<Item = &Loss> {
        let (routine, real): (Vec<_>, Vec<_>) = self.0.iter().partition(|loss| loss.is_routine());
        real.into_iter().chain(routine)
    }

    /// True if a loss was reported at this place.
    pub fn contains(&self, place: &str) -> bool {
        self.0.iter().any(|loss| loss.place == place)
    }
}

/// A translated value and its losses.
#[derive(Clone, Debug, PartialEq)]
pub struct Translated<T> {
    /// The value.
    pub value: T,
    /// What could not be represented.
    pub losses: Losses,
}

impl<T> Translated<T> {
    /// A translation without losses.
    pub fn exact(value: T) -> Self {
        Self { value, losses: Losses::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routine_losses_come_last() {
        let mut losses = Losses::default();
        for place in [
            "system.cache_control",
            "top_k",
            "metadata",
            "messages[].tool_result.is_error",
            "reasoning.metadata",
            "messages[].user",
        ] {
            losses.add(place, "test");
        }
        let places: Vec<&str> = losses.routine_last().map(|loss| loss.place.as_str()).collect();
        let expected = [
            "top_k",
            "reasoning.metadata",
            "messages[].user",
            "system.cache_control",
            "metadata",
            "messages[].tool_result.is_error",
        ];
        assert_eq!(places, expected);
    }
}
