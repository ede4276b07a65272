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

#[derive(Clone, PartialEq)]
struct Owned {
    dialect: DialectId,
    fields: Fields,
    marks: Vec<&'static str>,
}

impl Extras {
    /// No extra fields. Costs nothing.
    pub const NONE: Self = Self(None);

    /// The fields that `dialect` read and has no other place for.
    pub fn of(dialect: DialectId, fields: Fields) -> Self {
        if fields.is_empty() {
            Self::NONE
        } else {
            Self(Some(Box::new(Owned { dialect, fields, marks: Vec::new() })))
        }
    }

    /// Like [`Extras::of`], but says whose they are even where there are none: some fields mean another thing when
    /// they are absent in another dialect.
    pub fn marked(dialect: DialectId, fields: Fields) -> Self {
        Self(Some(Box::new(Owned { dialect, fields, marks: Vec::new() })))
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
                *other = Some(Box::new(Owned { dialect, fields, marks: Vec::new() }));
            }
        }
    }

    /// Remembers how `dialect` had said something it could have said in two ways (`max_tokens` or
    /// `max_completion_tokens`). A mark is never written and its loss loses nothing, so nobody reports it.
    pub fn mark(&mut self, dialect: DialectId, mark: &'static str) {
        match &mut self.0 {
            Some(owned) if owned.dialect == dialect => owned.marks.push(mark),
            other => *other = Some(Box::new(Owned { dialect, fields: Fields::new(), marks: vec![mark] })),
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
        for name in owned.fields.keys() {
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
