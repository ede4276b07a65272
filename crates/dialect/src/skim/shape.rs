//! Whether a text has the shape that a reader takes, told without building anything. Shapes are tables, one for each
//! dialect; they hold what is usual, so a text that does not fit may still be a good one.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::{Skim, Writing, once};

/// What a value may be.
pub(crate) enum Shape {
    /// Any value.
    Any,
    /// No value.
    Never,
    /// `false`.
    False,
    /// `true` or `false`.
    Flag,
    /// A number of any kind.
    Number,
    /// A whole number, not negative, of nine digits at most: it fits wherever one is counted.
    Count,
    /// A string.
    Text,
    /// A string that is one of these words.
    Word(&'static [&'static str]),
    /// The name of the model.
    Model,
    /// The id of a call, which no other call has that waits for its result.
    CallId,
    /// The id of a call that waits for its result.
    ResultId,
    /// A list of such values.
    List(&'static Shape),
    /// A list of such values, and of one at least.
    Filled(&'static Shape),
    /// An object that may have other fields as well.
    Object(&'static [Field]),
    /// An object that has no other fields.
    Closed(&'static [Field]),
    /// One of these objects, told apart by the word in the first field of this name.
    Tagged(&'static str, &'static [(&'static str, Shape)]),
    /// One of these values, told apart by their first letters.
    OneOf(&'static [Shape]),
}

/// A field of an object.
pub(crate) struct Field {
    name: &'static str,
    shape: Shape,
    need: Need,
}

#[derive(PartialEq)]
enum Need {
    Needed,
    Optional,
    NeverNull,
}

impl Field {
    /// A field that must be there.
    pub(crate) const fn needed(name: &'static str, shape: Shape) -> Self {
        Self { name, shape, need: Need::Needed }
    }

    /// A field that may be missing; `null` says no more than that.
    pub(crate) const fn optional(name: &'static str, shape: Shape) -> Self {
        Self { name, shape, need: Need::Optional }
    }

    /// A field that may be missing but is not `null`.
    pub(crate) const fn never_null(name: &'static str, shape: Shape) -> Self {
        Self { name, shape, need: Need::NeverNull }
    }
}

/// The model that a request names, if it is of this shape and asks for a whole reply.
pub(crate) fn model_of<'t>(body: &'t [u8], shape: &Shape) -> Option<&'t str> {
    if seems_to_stream(body) {
        return None;
    }
    let text = std::str::from_utf8(body).ok()?;
    let mut seen = Seen::default();
    let mut skim = Skim { text, at: 0 };
    skim.pass_blanks();
    skim.fit(shape, &mut seen)?;
    skim.pass_blanks();
    seen.model.filter(|_| skim.at == text.len())
}

/// Whether a stream may be asked for. Most clients do so, often at the end of a long request, which would be gone
/// through in vain; to look for the word takes a tenth of that.
fn seems_to_stream(body: &[u8]) -> bool {
    static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"stream\""));
    NAME.find_iter(body).any(|at| {
        let value = body[at + NAME.needle().len()..].iter().find(|byte| !b": \t\r\n".contains(byte));
        value == Some(&b't')
    })
}

/// What was met on the way.
#[derive(Default)]
struct Seen<'t> {
    model: Option<&'t str>,
    /// Calls that wait for their results.
    open: Vec<&'t str>,
}

/// Calls that may wait at once: each new one is compared with all of them.
const MAX_OPEN_CALLS: usize = 64;

impl<'t> Skim<'t> {
    /// Takes a value of this shape.
    fn fit(&mut self, shape: &Shape, seen: &mut Seen<'t>) -> Option<()> {
        match shape {
            Shape::Any => self.value().map(|_| ()),
            Shape::Never => None,
            Shape::False => self.pass_word(b"false"),
            Shape::Flag => self.pass_word(b"true").or_else(|| self.pass_word(b"false")),
            Shape::Number => self.pass_number(),
            Shape::Count => self.pass_count(),
            Shape::Text => self.pass_string().map(|_| ()),
            Shape::Word(words) => {
                let word = self.plain_string()?;
                words.contains(&word).then_some(())
            }
            Shape::Model => once(&mut seen.model, self.plain_string()?),
            Shape::CallId => seen.call(self.plain_string()?),
            Shape::ResultId => seen.result(self.plain_string()?),
            Shape::List(element) => self.array(|skim| skim.fit(element, seen)),
            Shape::Filled(element) => {
                let mut is_empty = true;
                self.array(|skim| {
                    is_empty = false;
                    skim.fit(element, seen)
                })?;
                (!is_empty).then_some(())
            }
            Shape::Object(fields) => self.fit_fields(fields, Self::pass_any, seen),
            Shape::Closed(fields) => self.fit_fields(fields, |_| None, seen),
            Shape::Tagged(tag, shapes) => {
                let word = self.tag(tag)?;
                let (_, shape) = shapes.iter().find(|(of, _)| *of == word)?;
                self.fit(shape, seen)
            }
            Shape::OneOf(shapes) => {
                let first = self.peek()?;
                self.fit(shapes.iter().find(|shape| shape.may_begin_with(first))?, seen)
            }
        }
    }

    /// Takes an object with these fields, each once at most, and others as `other` has it.
    fn fit_fields(
        &mut self,
        fields: &[Field],
        other: impl Fn(&mut Self) -> Option<()>,
        seen: &mut Seen<'t>,
    ) -> Option<()> {
        let mut met = 0_u32;
        self.object(|skim, name| {
            let Some(at) = fields.iter().position(|field| field.name == name) else { return other(skim) };
            let bit = 1 << at;
            if met & bit != 0 {
                return None;
            }
            met |= bit;
            let Field { name: _, shape, need } = &fields[at];
            if *need == Need::Optional && skim.peek() == Some(b'n') {
                return skim.pass_word(b"null");
            }
            skim.fit(shape, seen)
        })?;
        let is_whole = |(at, field): (usize, &Field)| field.need != Need::Needed || met & 1 << at != 0;
        fields.iter().enumerate().all(is_whole).then_some(())
    }

    /// The word in a field of the object that comes next; nothing is taken. Mostly it is the first.
    fn tag(&self, name: &str) -> Option<&'t str> {
        let mut ahead = Skim { text: self.text, at: self.at };
        let mut found = None;
        ahead.object(|skim, met| {
            if met == name {
                found = skim.plain_string();
                // Enough is known.
                return None;
            }
            skim.pass_any()
        });
        found
    }

    fn plain_string(&mut self) -> Option<&'t str> {
        let start = self.at + 1;
        if self.pass_string()? == Writing::Escaped {
            return None;
        }
        self.text.get(start..self.at - 1)
    }

    fn pass_any(&mut self) -> Option<()> {
        self.value().map(|_| ())
    }

    fn pass_count(&mut self) -> Option<()> {
        const MAX_DIGITS: usize = 9;
        let start = self.at;
        if !self.peek()?.is_ascii_digit() {
            return None;
        }
        self.pass_number()?;
        let number = self.text.get(start..self.at)?;
        (number.len() <= MAX_DIGITS && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(())
    }
}

impl<'t> Seen<'t> {
    fn call(&mut self, id: &'t str) -> Option<()> {
        if id.is_empty() || self.open.len() == MAX_OPEN_CALLS || self.open.contains(&id) {
            return None;
        }
        self.open.push(id);
        Some(())
    }

    fn result(&mut self, id: &str) -> Option<()> {
        let at = self.open.iter().position(|open| *open == id)?;
        self.open.swap_remove(at);
        Some(())
    }
}

impl Shape {
    fn may_begin_with(&self, first: u8) -> bool {
        match self {
            Self::Any => true,
            Self::Never => false,
            Self::False => first == b'f',
            Self::Flag => matches!(first, b't' | b'f'),
            Self::Number | Self::Count => first == b'-' || first.is_ascii_digit(),
            Self::Text | Self::Word(_) | Self::Model | Self::CallId | Self::ResultId => first == b'"',
            Self::List(_) | Self::Filled(_) => first == b'[',
            Self::Object(_) | Self::Closed(_) | Self::Tagged(..) => first == b'{',
            Self::OneOf(shapes) => shapes.iter().any(|shape| shape.may_begin_with(first)),
        }
    }
}
