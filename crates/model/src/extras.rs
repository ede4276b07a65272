//! Data that only one dialect understands: unknown fields and whole unknown blocks. They are written back unchanged in
//! that dialect; in every other dialect they are a reported loss (T30).

use std::fmt;

use serde_json::{Map, Value};

use crate::loss::Losses;
use crate::notes::Notes;

/// Fields of a JSON object, in their order.
pub type Fields = Map<String, Value>;

/// A dialect's name and its provider.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DialectId {
    /// The name used in the configuration: `anthropic-messages`.
    pub name: &'static str,
    /// The provider whose file ids it understands: `anthropic`, `openai`.
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

/// Fields that only one dialect understands, attached to a value that every dialect understands.
#[derive(Clone, Default, PartialEq)]
pub struct Extras(Option<Box<Owned>>);

#[derive(Clone)]
struct Owned {
    dialect: DialectId,
    fields: Fields,
    marks: Vec<&'static str>,
    envelope: Envelope,
    noted: Option<Noted>,
}

/// The notes on a text, and the names of the fields that say the same.
#[derive(Clone)]
struct Noted {
    notes: Notes,
    fields: &'static [&'static str],
}

/// Which fields belong to the envelope around the content. Other dialects have their own envelope, so dropping these
/// fields is not a loss.
#[derive(Clone, Copy, PartialEq)]
enum Envelope {
    Fields(&'static [&'static str]),
    All,
}

impl Envelope {
    fn contains(self, name: &str) -> bool {
        match self {
            Self::Fields(names) => names.contains(&name),
            Self::All => true,
        }
    }
}

impl Owned {
    fn new(dialect: DialectId, fields: Fields) -> Self {
        Self { dialect, fields, marks: Vec::new(), envelope: Envelope::Fields(&[]), noted: None }
    }
}

impl PartialEq for Owned {
    /// The envelope affects loss reports only, and notes repeat what fields say, so they do not count.
    fn eq(&self, other: &Self) -> bool {
        (self.dialect, &self.fields, &self.marks) == (other.dialect, &other.fields, &other.marks)
    }
}

impl Extras {
    /// No extra fields. Does not allocate.
    pub const NONE: Self = Self(None);

    /// The fields that `dialect` read and that have no typed counterpart.
    pub fn of(dialect: DialectId, fields: Fields) -> Self {
        if fields.is_empty() { Self::NONE } else { Self(Some(Box::new(Owned::new(dialect, fields)))) }
    }

    /// Like [`Extras::of`], but records the dialect even without fields: an absent field may have a different default
    /// in another dialect.
    pub fn marked(dialect: DialectId, fields: Fields) -> Self {
        Self(Some(Box::new(Owned::new(dialect, fields))))
    }

    /// Like [`Extras::marked`], with marks (see [`Extras::mark`]).
    pub fn marked_by(dialect: DialectId, fields: Fields, marks: Vec<&'static str>) -> Self {
        Self(Some(Box::new(Owned { marks, ..Owned::new(dialect, fields) })))
    }

    /// Declares fields that are part of the envelope (an item's id, its status): dropping them is not reported.
    #[must_use]
    pub fn envelope_fields(self, names: &'static [&'static str]) -> Self {
        self.with_envelope(Envelope::Fields(names))
    }

    /// Declares all fields part of the envelope, as in a reply that repeats the request's settings.
    #[must_use]
    pub fn all_envelope_fields(self) -> Self {
        self.with_envelope(Envelope::All)
    }

    fn with_envelope(mut self, envelope: Envelope) -> Self {
        if let Some(owned) = &mut self.0 {
            owned.envelope = envelope;
        }
        self
    }

    /// Adds the notes on a text, which other dialects can write as well. They say the same as these fields of `dialect`.
    #[must_use]
    pub fn with_notes(self, dialect: DialectId, notes: Notes, fields: &'static [&'static str]) -> Self {
        if notes.is_empty() {
            return self;
        }
        let mut owned = self.0.unwrap_or_else(|| Box::new(Owned::new(dialect, Fields::new())));
        owned.noted = Some(Noted { notes, fields });
        Self(Some(owned))
    }

    /// The notes, unless `dialect` wrote them in its own fields.
    pub fn notes_for(&self, dialect: DialectId) -> Option<&Notes> {
        let owned = self.0.as_deref().filter(|owned| owned.dialect != dialect)?;
        owned.noted.as_ref().map(|noted| &noted.notes)
    }

    fn noted_fields(&self) -> &'static [&'static str] {
        let noted = self.0.as_deref().and_then(|owned| owned.noted.as_ref());
        noted.map(|noted| noted.fields).unwrap_or_default()
    }

    /// True if no dialect attached anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The dialect that attached something.
    pub fn owner(&self) -> Option<DialectId> {
        self.0.as_deref().map(|owned| owned.dialect)
    }

    /// The fields, if they belong to `dialect`. Reports no losses; see [`Extras::write`].
    pub fn known_to(&self, dialect: DialectId) -> Option<&Fields> {
        self.0.as_deref().filter(|owned| owned.dialect == dialect).map(|owned| &owned.fields)
    }

    /// One field, if it belongs to `dialect`.
    pub fn field(&self, dialect: DialectId, name: &str) -> Option<&Value> {
        self.known_to(dialect)?.get(name)
    }

    /// Adds a field of `dialect`. Fields of another dialect are replaced.
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

    /// Records which of two equivalent spellings `dialect` used (`max_tokens` or `max_completion_tokens`). A mark is
    /// never written, and dropping it is not a loss.
    pub fn mark(&mut self, dialect: DialectId, mark: &'static str) {
        match &mut self.0 {
            Some(owned) if owned.dialect == dialect => owned.marks.push(mark),
            other => {
                *other = Some(Box::new(Owned { marks: vec![mark], ..Owned::new(dialect, Fields::new()) }));
            }
        }
    }

    /// True if `dialect` set this mark.
    pub fn is_marked(&self, dialect: DialectId, mark: &str) -> bool {
        self.0.as_deref().is_some_and(|owned| owned.dialect == dialect && owned.marks.contains(&mark))
    }

    /// The fields to write in `dialect`; fields of another dialect are reported as lost at `place`.
    pub fn write(&self, dialect: DialectId, place: &str, losses: &mut Losses) -> Fields {
        let (fields, unwritten) = self.write_noted(dialect, place, losses);
        if unwritten.is_some() {
            for name in self.noted_fields() {
                losses.unknown_to(dialect, path(place, name));
            }
        }
        fields
    }

    /// Like [`Extras::write`], for a dialect that can write notes: returns those of another dialect.
    pub fn write_noted(
        &self,
        dialect: DialectId,
        place: &str,
        losses: &mut Losses,
    ) -> (Fields, Option<&Notes>) {
        let Some(owned) = &self.0 else { return (Fields::new(), None) };
        if owned.dialect == dialect {
            return (owned.fields.clone(), None);
        }
        let noted = self.noted_fields();
        let is_lost = |name: &str, value: &Value| {
            !owned.envelope.contains(name) && !noted.contains(&name) && !is_empty(value)
        };
        for (name, _) in owned.fields.iter().filter(|(name, value)| is_lost(name, value)) {
            losses.unknown_to(dialect, path(place, name));
        }
        (Fields::new(), self.notes_for(dialect))
    }
}

fn path(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

/// True for a value that says nothing: dropping it is not a loss.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
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

/// A whole block, item or tool that only one dialect understands.
#[derive(Clone, PartialEq)]
pub struct Opaque {
    /// The dialect that understands it.
    pub dialect: DialectId,
    /// Its type there: `server_tool_use`, `web_search_call`.
    pub kind: String,
    /// The object, its tag included.
    pub fields: Fields,
}

impl Opaque {
    /// The object to write in `dialect`; `None` in another dialect, and the block is reported as lost.
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
    fn envelope_fields_are_dropped_without_a_loss_report() {
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
        check(&extras.clone().envelope_fields(&["id"]), &["item.caller"]);
        check(&extras.all_envelope_fields(), &[]);
    }

    #[test]
    fn notes_are_a_loss_only_where_they_cannot_be_written() {
        let fields =
            Fields::from_iter([("logprobs".to_owned(), true.into()), ("caller".to_owned(), 1.into())]);
        let notes = Notes { logprobs: vec![1.into()], ..Notes::default() };
        let extras = Extras::of(OWNER, fields).with_notes(OWNER, notes.clone(), &["logprobs"]);
        let lost = |write: &dyn Fn(&mut Losses)| {
            let mut losses = Losses::default();
            write(&mut losses);
            losses.iter().map(|loss| loss.place.clone()).collect::<Vec<_>>()
        };
        let written = lost(&|losses| {
            assert_eq!(extras.write_noted(OTHER, "text", losses), (Fields::new(), Some(&notes)));
        });
        assert_eq!(written, ["text.caller"]);
        let unwritten = lost(&|losses| assert_eq!(extras.write(OTHER, "text", losses), Fields::new()));
        assert_eq!(unwritten, ["text.caller", "text.logprobs"]);
        let own = lost(&|losses| assert_eq!(extras.write(OWNER, "text", losses).len(), 2));
        assert_eq!(own, Vec::<String>::new());
    }

    #[test]
    fn empty_fields_are_dropped_without_a_loss_report() {
        let Value::Object(fields) =
            serde_json::json!({ "refusal": null, "annotations": [], "metadata": {}, "store": false })
        else {
            return;
        };
        let mut losses = Losses::default();
        Extras::of(OWNER, fields).write(OTHER, "", &mut losses);
        assert_eq!(losses.iter().map(|loss| loss.place.as_str()).collect::<Vec<_>>(), ["store"]);
    }
}
