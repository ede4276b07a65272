//! Whether what looks like markup inside a value ends the value or belongs to it (P7 to P11).
//!
//! A closing tag counts only when what follows it is structure too: the next parameter, the end of the call, the next
//! call. Whole examples inside a value are balanced: their own closing tags close them and nothing else.

use super::lex::{Element, End, Family, Lex, Spelling, Tag, quoted_tag, tag, word};
use crate::plan::{Rules, Slot, Slots};
use crate::recovery::Recovery;
use crate::value::Ending;

/// How far the parser looks past a closing tag, in bytes. With a held line end this stays under 300 characters.
pub(crate) const MAX_LOOKAHEAD: usize = 290;
/// How many examples may lie in one another; deeper ones are not balanced.
const MAX_NEST: usize = 32;
/// Tags that some models put around calls. They mean nothing.
pub(crate) const WRAPPERS: [&str; 5] =
    ["function_calls", "tool_calls", "tool_call", "function_call", "invokes"];

/// An open tag of an example inside a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nested {
    pub(crate) level: Level,
    /// In the source code of a program, where tags need not come in pairs.
    quoted: bool,
}

/// Which tag of an example is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Call,
    Parameter,
}

/// What the value's scanner knows when it meets a `<`.
pub(crate) struct Scene<'s> {
    pub(crate) rules: &'s Rules,
    pub(crate) slots: &'s Slots,
    pub(crate) family: Family,
    /// The open parameter as the model wrote it.
    pub(crate) parameter: &'s str,
    pub(crate) nest: &'s [Nested],
    pub(crate) at_line_start: bool,
    /// A closing tag that closed nothing has been taken for text: from then on only another one may end the value.
    /// Ending it by anything weaker would be a guess between two readings.
    pub(crate) holds_close: bool,
    /// The value began on a line of its own, so its end should too.
    pub(crate) is_block: bool,
}

/// What a `<` inside a value is.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Wait,
    /// So many bytes of the value.
    Data(usize, Nesting),
    Close(Close),
    /// A closing tag in the wrong place, and on a later line a tag of the call, perhaps with a slip in it. Taking
    /// them for text would lose an argument in silence.
    Broken,
}

/// How a value ends.
#[derive(Debug, PartialEq)]
pub(crate) struct Close {
    /// The closing tags to consume.
    pub(crate) len: usize,
    pub(crate) ending: Ending,
    pub(crate) recovery: Option<Recovery>,
}

/// What data does to the examples that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nesting {
    Keep,
    Push(Nested),
    PopParameter,
    PopCall,
    /// A closing tag of nothing.
    StrayClose,
}

/// What comes after a closing tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follower {
    /// Exactly what the syntax allows.
    Structure,
    /// Prose or foreign markup: accepted, but not in strict mode.
    Loose,
    /// The next parameter, by its exact name in the schema.
    KnownParameter,
    /// A parameter that the schema does not know.
    OtherParameter,
    /// The call went on to another call without its own closing tag.
    UnclosedCall,
}

impl Scene<'_> {
    /// Judges `rest`, which begins with an opening bracket.
    pub(crate) fn judge(&self, rest: &str, end: End) -> Verdict {
        let visible = &rest[..rest.floor_char_boundary(MAX_LOOKAHEAD)];
        let end = if visible.len() < rest.len() { End::Limit } else { end };
        let tag = match quoted_tag(visible, end) {
            Lex::Wait => return Verdict::Wait,
            Lex::Absent if is_slip(visible) => {
                return Verdict::Data(first_char(visible), Nesting::StrayClose);
            }
            Lex::Absent => return Verdict::Data(first_char(visible), Nesting::Keep),
            Lex::Found(tag) => tag,
        };
        match &tag.element {
            Element::ParameterClose => self.value_close(visible, &tag, end),
            Element::Close(name) if *name == self.parameter => self.value_close(visible, &tag, end),
            Element::Open(_) | Element::Close(_) | Element::Other if is_slip(visible) => {
                Verdict::Data(tag.len, Nesting::StrayClose)
            }
            Element::CallClose(family) if *family == self.family => self.call_close(visible, &tag, end),
            Element::CallOpen(family, _) if *family == self.family => self.call_open(visible, &tag, end),
            Element::ParameterOpen(name, _) => self.parameter_open(&tag, name),
            Element::CallClose(_)
            | Element::CallOpen(..)
            | Element::Open(_)
            | Element::Close(_)
            | Element::Other => Verdict::Data(tag.len, Nesting::Keep),
        }
    }

    /// P8, P10, P11
    fn value_close(&self, visible: &str, first: &Tag<'_>, end: End) -> Verdict {
        let balances = self.nest.last().map(|nested| nested.level) == Some(Level::Parameter)
            && first.element == Element::ParameterClose;
        let data =
            Verdict::Data(first.len, if balances { Nesting::PopParameter } else { Nesting::StrayClose });
        let mut run = first.len;
        let mut recovery = (first.element != Element::ParameterClose).then_some(Recovery::WrongClose);
        let follower = loop {
            let (at, _) = after_spaces(visible, run);
            if at == visible.len() {
                break at_end(end, Follower::UnclosedCall);
            }
            match tag(&visible[at..], end) {
                Lex::Wait => break Lex::Wait,
                // The first closes the example, the second the value.
                Lex::Found(next) if balances && self.is_value_close(&next) => return data,
                Lex::Found(next) if self.is_value_close(&next) => {
                    run = at + next.len;
                    recovery = recovery.or(Some(Recovery::RepeatedClose));
                }
                Lex::Found(next) => break self.follower(visible, at, &next, end),
                Lex::Absent => break self.trigger(&visible[at..], end, Follower::UnclosedCall),
            }
        };
        let follower = match follower {
            Lex::Wait => return Verdict::Wait,
            Lex::Absent if balances => return data,
            Lex::Absent => match slip_follows(visible, run, end) {
                Lex::Found(()) => return Verdict::Broken,
                Lex::Wait => return Verdict::Wait,
                Lex::Absent => return data,
            },
            Lex::Found(follower) => follower,
        };
        // An example's own closing tag, unless what follows can only be this call's: then the opening tag that
        // seemed to begin an example was a mere mention.
        let certain = matches!(follower, Follower::KnownParameter | Follower::Structure);
        let inside_example = balances && self.has_open_call() && !(self.has_only_quotes() && certain);
        let mention = balances && matches!(follower, Follower::OtherParameter | Follower::UnclosedCall);
        let misplaced = self.is_block && !self.at_line_start;
        if inside_example || mention || (misplaced && !certain) {
            return data;
        }
        let loose = matches!(follower, Follower::Loose).then_some(Recovery::TailDropped);
        let unclosed = matches!(follower, Follower::UnclosedCall).then_some(Recovery::MissingCallClose);
        if self.rules.is_strict() && (loose.or(unclosed).is_some()) {
            return data;
        }
        // The recoveries after the call are recorded where the call is read.
        Verdict::Close(Close { len: run, ending: Ending::Tag, recovery })
    }

    fn is_value_close(&self, tag: &Tag<'_>) -> bool {
        match &tag.element {
            Element::ParameterClose => true,
            Element::Close(name) => *name == self.parameter,
            Element::CallOpen(..)
            | Element::CallClose(_)
            | Element::ParameterOpen(..)
            | Element::Open(_)
            | Element::Other => false,
        }
    }

    fn follower(&self, visible: &str, at: usize, next: &Tag<'_>, end: End) -> Lex<Follower> {
        match &next.element {
            Element::ParameterOpen(name, _) => match self.slots.slot(name) {
                Slot::Free(_) => Lex::Found(Follower::KnownParameter),
                // One too many ends the value, and then the call.
                Slot::Corrected(_) | Slot::Unknown | Slot::Excess => Lex::Found(Follower::OtherParameter),
                Slot::Taken => Lex::Absent,
            },
            Element::CallClose(family) if *family == self.family => {
                self.after_call(visible, at + next.len, end)
            }
            Element::CallOpen(family, name) if *family == self.family && self.rules.knows(name) => {
                Lex::Found(Follower::UnclosedCall)
            }
            Element::CallClose(_)
            | Element::CallOpen(..)
            | Element::ParameterClose
            | Element::Open(_)
            | Element::Close(_)
            | Element::Other => Lex::Absent,
        }
    }

    /// What may come after the tag that closes a call.
    fn after_call(&self, visible: &str, from: usize, end: End) -> Lex<Follower> {
        let (at, spaced) = after_spaces(visible, from);
        let prose = if spaced { Lex::Found(Follower::Loose) } else { Lex::Absent };
        let rest = &visible[at..];
        if rest.is_empty() {
            return if end == End::Limit { prose } else { at_end(end, Follower::Structure) };
        }
        match self.trigger(rest, end, Follower::Structure) {
            Lex::Absent => {}
            other @ (Lex::Found(_) | Lex::Wait) => return other,
        }
        let next = match tag(rest, end) {
            Lex::Wait => return Lex::Wait,
            Lex::Absent => return prose,
            Lex::Found(next) => next,
        };
        match &next.element {
            Element::CallOpen(_, name) if self.rules.knows(name) => Lex::Found(Follower::Structure),
            Element::Close(name) if WRAPPERS.contains(name) => Lex::Found(Follower::Loose),
            Element::CallOpen(..)
            | Element::CallClose(_)
            | Element::ParameterOpen(..)
            | Element::ParameterClose => Lex::Absent,
            Element::Open(_) | Element::Close(_) | Element::Other => prose,
        }
    }

    /// P7: a value that only the call's own closing tag ends.
    fn call_close(&self, visible: &str, tag: &Tag<'_>, end: End) -> Verdict {
        let balances = self.has_open_call();
        let data = Verdict::Data(tag.len, if balances { Nesting::PopCall } else { Nesting::Keep });
        let inside_example = balances && !self.has_only_quotes();
        if inside_example || !self.at_line_start || (self.rules.is_strict() && !self.holds_close) {
            return data;
        }
        match self.after_call(visible, tag.len, end) {
            Lex::Wait => Verdict::Wait,
            Lex::Found(Follower::Structure) if self.holds_close => Verdict::Broken,
            Lex::Found(Follower::Structure) => Verdict::Close(Close {
                len: 0,
                ending: Ending::Implicit,
                recovery: Some(Recovery::MissingValueClose),
            }),
            Lex::Found(Follower::Loose) if !self.holds_close && is_wrapper_close(visible, tag.len) => {
                Verdict::Close(Close {
                    len: 0,
                    ending: Ending::Implicit,
                    recovery: Some(Recovery::MissingValueClose),
                })
            }
            Lex::Found(_) | Lex::Absent => data,
        }
    }

    /// A call inside a value is an example if it goes on like a call, and a mere mention otherwise.
    fn call_open(&self, visible: &str, opening: &Tag<'_>, end: End) -> Verdict {
        let mention = Verdict::Data(opening.len, Nesting::Keep);
        // In source code a line end may be written as an escape.
        let rest = visible[opening.len..].trim_start();
        let rest = rest.strip_prefix("\\n").unwrap_or(rest).trim_start();
        if rest == "\\" && end == End::More {
            return Verdict::Wait;
        }
        match quoted_tag(rest, end) {
            Lex::Wait => Verdict::Wait,
            Lex::Found(Tag { element: Element::ParameterOpen(..) | Element::CallClose(_), .. }) => {
                self.push(opening, Level::Call)
            }
            Lex::Found(_) | Lex::Absent => mention,
        }
    }

    /// P9: a value that only the next parameter ends.
    fn parameter_open(&self, tag: &Tag<'_>, name: &str) -> Verdict {
        let is_next = self.has_only_quotes() && matches!(self.slots.slot(name), Slot::Free(_));
        let is_next = is_next && tag.spelling != Spelling::Escaped;
        if !is_next || !self.at_line_start || (self.rules.is_strict() && !self.holds_close) {
            return self.push(tag, Level::Parameter);
        }
        if self.holds_close {
            return Verdict::Broken;
        }
        let recovery = Some(Recovery::ImplicitClose);
        Verdict::Close(Close { len: 0, ending: Ending::Implicit, recovery })
    }

    fn push(&self, tag: &Tag<'_>, level: Level) -> Verdict {
        let nested = Nested { level, quoted: tag.spelling == Spelling::Escaped };
        let fits = self.nest.len() < MAX_NEST && !tag.is_empty;
        Verdict::Data(tag.len, if fits { Nesting::Push(nested) } else { Nesting::Keep })
    }

    /// True where no example is open but in the source code of a program.
    fn has_only_quotes(&self) -> bool {
        self.nest.iter().all(|nested| nested.quoted)
    }

    fn has_open_call(&self) -> bool {
        self.nest.iter().any(|nested| nested.level == Level::Call)
    }

    fn trigger(&self, rest: &str, end: End, follower: Follower) -> Lex<Follower> {
        match self.rules.trigger.as_deref().map_or(Lex::Absent, |trigger| word(rest, trigger, end)) {
            Lex::Found(()) => Lex::Found(follower),
            Lex::Wait => Lex::Wait,
            Lex::Absent => Lex::Absent,
        }
    }
}

fn at_end(end: End, follower: Follower) -> Lex<Follower> {
    match end {
        End::More => Lex::Wait,
        End::Clean => Lex::Found(follower),
        End::Cut | End::Limit => Lex::Absent,
    }
}

fn is_wrapper_close(visible: &str, from: usize) -> bool {
    let (at, _) = after_spaces(visible, from);
    match tag(&visible[at..], End::Limit) {
        Lex::Found(Tag { element: Element::Close(name), .. }) => WRAPPERS.contains(&name),
        Lex::Found(_) | Lex::Absent | Lex::Wait => false,
    }
}

/// Whether the next line begins with a tag of the call that has a slip in it.
fn slip_follows(visible: &str, from: usize, end: End) -> Lex<()> {
    const WITHOUT_BRACKET: [&str; 4] = ["parameter name=", "invoke name=", "/parameter>", "/invoke>"];
    let (at, _) = after_spaces(visible, from);
    let rest = &visible[at..];
    if !visible[from..at].contains('\n') {
        return Lex::Absent;
    }
    if is_slip(rest) {
        return Lex::Found(());
    }
    let found = WITHOUT_BRACKET.iter().map(|slip| word(rest, slip, end)).find(|found| *found != Lex::Absent);
    found.unwrap_or(Lex::Absent)
}

/// A tag that was meant to be one of a call's: its name, or all of its name but the last letters, and no valid rest.
pub(crate) fn is_slip(text: &str) -> bool {
    const MIN_LETTERS: usize = 5;
    let Some(rest) = text.strip_prefix('<') else { return false };
    let name = rest.strip_prefix('/').unwrap_or(rest);
    let len = name.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(name.len());
    let name = &name[..len];
    let near = name.len() >= MIN_LETTERS
        && ["parameter", "invoke"].iter().any(|tag| tag.starts_with(name) || name.starts_with(tag));
    let valid = match quoted_tag(text, End::Limit) {
        Lex::Found(tag) => !matches!(tag.element, Element::Open(_) | Element::Close(_) | Element::Other),
        Lex::Absent | Lex::Wait => false,
    };
    near && !valid
}

/// The position of the next character that is no space, and whether there was one before it.
fn after_spaces(text: &str, from: usize) -> (usize, bool) {
    let rest = &text[from..];
    let at = from + rest.len() - rest.trim_start().len();
    (at, at > from)
}

fn first_char(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}
