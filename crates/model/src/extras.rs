//! What only one dialect knows: unknown fields and whole unknown blocks. They go back to where they came from
//! unchanged, and everywhere else they are a reported loss (T30).

use std::fmt;

use serde_json::{Map, Value};

use crate::loss::Losses;

/// Fields of a JSON object, in their order.
pub type Fields = Map<String, Value>;

/// A dialect's name, and the provider whose files and seals it shares.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DialectId {
    /// As in the configuration: `anthropic-messages`.
    pub name: &'static str,
    /// Whose ids for uploaded files it understands: `anthropic`, `openai`.
    pub provider: &'static str,
}

impl fmt::Display for DialectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for DialectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Fields that only their own dialect understands, carried beside what everybody understands.
#[derive(Clone, Default, PartialEq)]
pub struct Extras(Option<Box<Owned>>);

#[derive(Clone)]
struct Owned {
    dialect: DialectId,
    fields: Fields,
    marks: Vec<&'static str>,
    wrapping: Wrapping,
}

/// Which fields only wrap what was said. Other dialects wrap it in their own way, so leaving them out loses nothing.
#[derive(Clone, Copy, PartialEq)]
enum Wrapping {
    These(&'static [&'static str]),
    All,
}

impl Wrapping {
    fn contains(self, name: &str) -> bool {
        match self {
            Self::These(names) => names.contains(&name),
            Self::All => true,
        }
    }
}

impl Owned {
    fn new(dialect: DialectId, fields: Fields) -> Self {
        Self { dialect, fields, marks: Vec::new(), wrapping: Wrapping::These(&[]) }
    }
}

impl PartialEq for Owned {
    /// What wraps is about reporting, not about what is carried.
    fn eq(&self, other: &Self) -> bool {
        (self.dialect, &self.fields, &self.marks) == (other.dialect, &other.fields, &other.marks)
    }
}

impl Extras {
    /// No extra fields. Costs nothing.
    pub const NONE: Self = Self(None);

    /// The fields that `dialect` read and has no other place for.
    pub fn of(dialect: DialectId, fields: Fields) -> Self {
        if fields.is_empty() { Self::NONE } else { Self(Some(Box::new(Owned::new(dialect, fields)))) }
    }

    /// Like [`Extras::of`], but says whose they are even where there are none: some fields mean another thing when
    /// they are absent in another dialect.
    pub fn marked(dialect: DialectId, fields: Fields) -> Self {
        Self(Some(Box::new(Owned::new(dialect, fields))))
    }

    /// The same with marks (see [`Extras::mark`]).
    pub fn marked_by(dialect: DialectId, fields: Fields, marks: Vec<&'static str>) -> Self {
        Self(Some(Box::new(Owned { marks, ..Owned::new(dialect, fields) })))
    }

    /// Says that these fields only wrap what was said (an item's id, its status): no dialect reports their loss.
    #[must_use]
    pub fn wrapped_by(self, names: &'static [&'static str]) -> Self {
        self.with_wrapping(Wrapping::These(names))
    }

    /// Says that all fields do: a reply that repeats the request's settings.
    #[must_use]
    pub fn all_wrapping(self) -> Self {
        self.with_wrapping(Wrapping::All)
    }

    fn with_wrapping(mut self, wrapping: Wrapping) -> Self {
        if let Some(owned) = &mut self.0 {
            owned.wrapping = wrapping;
        }
        self
    }

    /// True where there is nothing to carry.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The fields, if `dialect` is the one that knows them. Looks without reporting: see [`Extras::write`].
    pub fn known_to(&self, dialect: DialectId) -> Option<&Fields> {
        self.0.as_deref().filter(|owned| owned.dialect == dialect).map(|owned| &owned.fields)
    }

    /// One field, if `dialect` is the one that knows it.
    pub fn field(&self, dialect: DialectId, name: &str) -> Option<&Value> {
        self.known_to(dialect)?.get(name)
    }

    /// Adds a field that `dialect` knows. What another dialect left here is replaced.
    pub fn insert(&mut self, dialect: DialectId, name: impl Into<String>, value: Value) {
        match &mut self.0 {
            Some(owned) if owned.dialect == dialect => {
                owned.fields.insert(name.into(), value);
            }
            other => {
                let mut fields = Fields::new();
                fields.insert(name.into(), value);
                *other = Some(Box::new(Owned::new(dialect, fields)));
            }
        }
    }

    /// Remembers how `dialect` had said something it could have said in two ways (`max_tokens` or
    /// `max_completion_tokens`). A mark is never written and its loss loses nothing, so nobody reports it.
    pub fn mark(&mut self, dialect: DialectId, mark: &'static str) {
        match &mut self.0 {
            Some(owned) if owned.dialect == dialect => owned.marks.push(mark),
            other => {
                *other = Some(Box::new(Owned { marks: vec![mark], ..Owned::new(dialect, Fields::new()) }));
            }
        }
    }

    /// True where `dialect` left this mark.
    pub fn is_marked(&self, dialect: DialectId, mark: &str) -> bool {
        self.0.as_deref().is_some_and(|owned| owned.dialect == dialect && owned.marks.contains(&mark))
    }

    /// The fields to write where `dialect` is the target; fields of another dialect are reported as lost at `place`.
    pub fn write(&self, dialect: DialectId, place: &str, losses: &mut Losses) -> Fields {
        let Some(owned) = &self.0 else { return Fields::new() };
        if owned.dialect == dialect {
            return owned.fields.clone();
        }
        for name in owned.fields.keys().filter(|name| !owned.wrapping.contains(name)) {
            losses
                .unknown_to(dialect, if place.is_empty() { name.clone() } else { format!("{place}.{name}") });
        }
        Fields::new()
    }
}

impl fmt::Debug for Extras {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("-"),
            Some(owned) => {
                write!(f, "{}:{}{:?}", owned.dialect, Value::Object(owned.fields.clone()), owned.marks)
            }
        }
    }
}

/// A whole block, item or tool that only its own dialect knows.
#[derive(Clone, PartialEq)]
pub struct Opaque {
    /// Who knows it.
    pub dialect: DialectId,
    /// What it calls itself there: `server_tool_use`, `web_search_call`.
    pub kind: String,
    /// The object, its tag included.
    pub fields: Fields,
}

impl Opaque {
    /// The object to write where `dialect` is the target; elsewhere `None`, and the block is reported as lost.
    pub fn write(&self, dialect: DialectId, place: &str, losses: &mut Losses) -> Option<&Fields> {
        if self.dialect == dialect {
            return Some(&self.fields);
        }
        losses.unknown_to(dialect, format!("{place}[{}]", self.kind));
        None
    }
}

impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.dialect, Value::Object(self.fields.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: DialectId = DialectId { name: "owner", provider: "owner" };
    const OTHER: DialectId = DialectId { name: "other", provider: "other" };

    #[test]
    fn what_only_wraps_is_lost_without_a_word() {
        let check = |extras: &Extras, expect: &[&str]| {
            let mut losses = Losses::default();
            assert_eq!(extras.write(OTHER, "item", &mut losses), Fields::new());
            assert_eq!(losses.iter().map(|loss| loss.place.as_str()).collect::<Vec<_>>(), expect);
            assert_eq!(extras.write(OWNER, "item", &mut Losses::default()).len(), 2);
        };
        let fields: Fields = [("id", "1"), ("caller", "x")]
            .map(|(name, value)| (name.to_owned(), value.into()))
            .into_iter()
            .collect();
        let extras = Extras::of(OWNER, fields);
        check(&extras, &["item.id", "item.caller"]);
        check(&extras.clone().wrapped_by(&["id"]), &["item.caller"]);
        check(&extras.all_wrapping(), &[]);
    }
}
