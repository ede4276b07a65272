//! What a translation could not carry over. Nothing is dropped in silence: losses reach a response header, the
//! log and the console.

use std::fmt;

use crate::extras::DialectId;

/// How many losses are kept for one turn; a hostile request must not grow the list without bound.
const MAX_LOSSES: usize = 64;

/// One thing that did not reach the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Where it stood: `top_k`, `messages[].cache_control`.
    pub place: String,
    /// Why it was left out, for people.
    pub reason: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.place, self.reason)
    }
}

/// The losses of one translation, each place once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses(Vec<Loss>);

impl Losses {
    /// Reports that what stood at `place` was left out.
    pub fn add(&mut self, place: impl Into<String>, reason: impl Into<String>) {
        let place = place.into();
        if self.0.len() < MAX_LOSSES && !self.0.iter().any(|loss| loss.place == place) {
            self.0.push(Loss { place, reason: reason.into() });
        }
    }

    /// Reports a field that `target` has no word for.
    pub fn unknown_to(&mut self, target: DialectId, place: impl Into<String>) {
        self.add(place, format!("{target} has no such thing"));
    }

    /// Takes over the losses of another step.
    pub fn append(&mut self, other: Self) {
        for loss in other.0 {
            self.add(loss.place, loss.reason);
        }
    }

    /// True where everything arrived.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The losses in the order they were met.
    pub fn iter(&self) -> impl Iterator<Item = &Loss> {
        self.0.iter()
    }

    /// True if something at this place was lost.
    pub fn contains(&self, place: &str) -> bool {
        self.0.iter().any(|loss| loss.place == place)
    }
}

/// A value in other words, and what could not be said in them.
#[derive(Clone, Debug, PartialEq)]
pub struct Translated<T> {
    /// What could be said.
    pub value: T,
    /// What could not.
    pub losses: Losses,
}

impl<T> Translated<T> {
    /// A translation that lost nothing.
    pub fn exact(value: T) -> Self {
        Self { value, losses: Losses::default() }
    }
}
