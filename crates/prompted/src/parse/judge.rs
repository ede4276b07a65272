//! Decides whether markup inside a value ends the value or belongs to it (P7 to P11).
//!
//! A closing tag counts only when what follows it is structure too: the next parameter, the end of the call,
//! the next call. Examples of calls inside a value are balanced: their closing tags close only them.

use super::lex::{Element, Family, InputEnd, Lex, Spelling, Tag, match_literal, tag, tag_or_escaped};
use super::start::match_trigger;
use crate::plan::{ParameterSlot, ParameterSlots, ParseRules};
use crate::recovery::Recovery;
use crate::value::CloseKind;

/// How far the parser looks past a closing tag, in bytes. Together with a held newline this stays under 300
/// characters.
pub(crate) const MAX_LOOKAHEAD: usize = 290;
/// The maximum nesting depth of examples; deeper ones are not balanced.
const MAX_NEST: usize = 32;
/// Tags that some models put around calls. They have no meaning.
pub(crate) const WRAPPERS: [&str; 5] =
    ["function_calls", "tool_calls", "tool_call", "function_call", "invokes"];

/// An open tag of an example inside a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nested {
    pub(crate) level: Level,
    /// In a string literal of source code, where tags need not be paired.
    escaped: bool,
}

/// Which tag of an example is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Call,
    Parameter,
}

/// The state of a value when the parser reaches a `<` in it.
pub(crate) struct ValueContext<'s> {
    pub(crate) rules: &'s ParseRules,
    pub(crate) slots: &'s ParameterSlots,
    pub(crate) family: Family,
    /// The open parameter's name as the model wrote it.
    pub(crate) parameter: &'s str,
    pub(crate) nest: &'s [Nested],
    pub(crate) at_line_start: bool,
    /// An unmatched closing tag has been taken for text. From then on only another closing tag may end the
    /// value: anything weaker would be a guess between two readings.
    pub(crate) saw_stray_close: bool,
    /// The value started on its own line, so its closing tag should too.
    pub(crate) is_block: bool,
}

/// What a `<` inside a value is.
#[derive(Debug, PartialEq)]
pub(crate) enum TagVerdict {
    Wait,
    /// This many bytes belong to the value.
    Data(usize, NestingChange),
    Close(ValueClose),
    /// A misplaced closing tag, followed on a later line by a (possibly misspelled) tag of the call. Treating
    /// them as text would silently lose an argument.
    Broken,
}

impl TagVerdict {
    fn implicit_close(recovery: Recovery) -> Self {
        Self::Close(ValueClose { len: 0, kind: CloseKind::Implicit, recovery: Some(recovery) })
    }
}

/// How a value ends.
#[derive(Debug, PartialEq)]
pub(crate) struct ValueClose {
    /// The length of the closing tags to skip.
    pub(crate) len: usize,
    pub(crate) kind: CloseKind,
    pub(crate) recovery: Option<Recovery>,
}

/// How text of the value changes the open examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NestingChange {
    Keep,
    Push(Nested),
    PopParameter,
    PopCall,
    /// A closing tag without an opening tag.
    StrayClose,
}

/// What follows a closing tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follower {
    /// Exactly what the syntax allows.
    Structure,
    /// Prose or foreign markup: accepted, except in strict mode.
    Loose,
    /// A parameter whose exact name is in the schema and not yet set.
    KnownParameter,
    /// A parameter that the schema does not define.
    OtherParameter,
    /// Another call, or the end of the answer, before the closing tag of this call.
    UnclosedCall,
    /// The end of the call, then a call to a tool that was not offered. An example inside a value looks the same, but its
    /// tags are balanced.
    UnofferedCall,
}

impl ValueContext<'_> {
    /// Decides on the `<` at the start of `rest`.
    pub(crate) fn judge(&self, rest: &str, end: InputEnd) -> TagVerdict {
        let (visible, end) = lookahead(rest, end);
        let tag = match tag_or_escaped(visible, end) {
            Lex::Wait => return TagVerdict::Wait,
            Lex::Absent if is_misspelled_tag(visible) => {
                return TagVerdict::Data(first_char(visible), NestingChange::StrayClose);
            }
            Lex::Absent => return TagVerdict::Data(first_char(visible), NestingChange::Keep),
            Lex::Found(tag) => tag,
        };
        match &tag.element {
            Element::ParameterClose => self.value_close(visible, &tag, end),
            Element::Close(name) if *name == self.parameter => self.value_close(visible, &tag, end),
            Element::Open(_) | Element::Close(_) | Element::Other if is_misspelled_tag(visible) => {
                TagVerdict::Data(tag.len, NestingChange::StrayClose)
            }
            Element::CallClose(family) if *family == self.family => self.call_close(visible, &tag, end),
            Element::CallOpen(family, _) if *family == self.family => self.call_open(visible, &tag, end),
            Element::ParameterOpen(name, _) => self.parameter_open(&tag, name),
            Element::CallClose(_)
            | Element::CallOpen(..)
            | Element::Open(_)
            | Element::Close(_)
            | Element::Other => TagVerdict::Data(tag.len, NestingChange::Keep),
        }
    }

    /// P8, P10, P11: a closing tag of a parameter.
    fn value_close(&self, visible: &str, first: &Tag<'_>, end: InputEnd) -> TagVerdict {
        let balances = self.nest.last().map(|nested| nested.level) == Some(Level::Parameter)
            && first.element == Element::ParameterClose;
        let data = TagVerdict::Data(
            first.len,
            if balances { NestingChange::PopParameter } else { NestingChange::StrayClose },
        );
        let mut run = first.len;
        let mut recovery = (first.element != Element::ParameterClose).then_some(Recovery::WrongClose);
        let follower = loop {
            let (at, _) = after_spaces(visible, run);
            if at == visible.len() {
                break at_end(end, Follower::UnclosedCall);
            }
            match tag(&visible[at..], end) {
                Lex::Wait => break Lex::Wait,
                // The first tag closes the example, the second the value.
                Lex::Found(next) if balances && self.is_value_close(&next) => return data,
                Lex::Found(next) if self.is_value_close(&next) => {
                    run = at + next.len;
                    recovery = recovery.or(Some(Recovery::RepeatedClose));
                }
                Lex::Found(next) => break self.follower(visible, at, &next, end),
                Lex::Absent => {
                    break match_trigger(&visible[at..], self.rules, end).map(|_| Follower::UnclosedCall);
                }
            }
        };
        let follower = match follower {
            Lex::Wait => return TagVerdict::Wait,
            Lex::Absent if balances => return data,
            Lex::Absent => match misspelled_tag_follows(visible, run, end) {
                Lex::Found(()) => return TagVerdict::Broken,
                Lex::Wait => return TagVerdict::Wait,
                Lex::Absent => return data,
            },
            Lex::Found(follower) => follower,
        };
        // The closing tag of an example, unless only this call can continue like that: then the opening tag
        // that seemed to start an example was only mentioned.
        let certain = matches!(follower, Follower::KnownParameter | Follower::Structure);
        let inside_example =
            balances && self.has_open_call() && !(self.has_only_escaped_examples() && certain);
        let mention = balances
            && matches!(
                follower,
                Follower::OtherParameter | Follower::UnclosedCall | Follower::UnofferedCall
            );
        let misplaced = self.is_block && !self.at_line_start;
        if inside_example || mention || (misplaced && !certain) {
            return data;
        }
        if self.rules.is_strict() && matches!(follower, Follower::Loose | Follower::UnclosedCall) {
            return data;
        }
        // Recoveries after the call are recorded when the call itself is parsed.
        TagVerdict::Close(ValueClose { len: run, kind: CloseKind::Tag, recovery })
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

    fn follower(&self, visible: &str, at: usize, next: &Tag<'_>, end: InputEnd) -> Lex<Follower> {
        match &next.element {
            Element::ParameterOpen(name, _) => match self.slots.slot(name) {
                ParameterSlot::Free(_) => Lex::Found(Follower::KnownParameter),
                // A parameter beyond the limit ends the value and then the call.
                ParameterSlot::Corrected(_) | ParameterSlot::Unknown | ParameterSlot::Excess => {
                    Lex::Found(Follower::OtherParameter)
                }
                ParameterSlot::Taken => Lex::Absent,
            },
            Element::CallClose(family) if *family == self.family => {
                self.after_call(visible, at + next.len, end)
            }
            Element::CallOpen(family, name) if *family == self.family && self.rules.knows_tool(name) => {
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

    /// What follows the closing tag of a call.
    fn after_call(&self, visible: &str, from: usize, end: InputEnd) -> Lex<Follower> {
        let (at, spaced) = after_spaces(visible, from);
        let prose = if spaced { Lex::Found(Follower::Loose) } else { Lex::Absent };
        let rest = &visible[at..];
        if rest.is_empty() {
            return if end == InputEnd::Limit { prose } else { at_end(end, Follower::Structure) };
        }
        match match_trigger(rest, self.rules, end) {
            Lex::Found(_) => return Lex::Found(Follower::Structure),
            Lex::Wait => return Lex::Wait,
            Lex::Absent => {}
        }
        let next = match tag(rest, end) {
            Lex::Wait => return Lex::Wait,
            Lex::Absent => return prose,
            Lex::Found(next) => next,
        };
        match &next.element {
            Element::CallOpen(_, name) if self.rules.knows_tool(name) => Lex::Found(Follower::Structure),
            Element::CallOpen(family, _) if *family == self.family => Lex::Found(Follower::UnofferedCall),
            Element::Close(name) if WRAPPERS.contains(name) => Lex::Found(Follower::Loose),
            Element::CallOpen(..)
            | Element::CallClose(_)
            | Element::ParameterOpen(..)
            | Element::ParameterClose => Lex::Absent,
            Element::Open(_) | Element::Close(_) | Element::Other => prose,
        }
    }

    /// P7: a value that only the closing tag of the call ends.
    fn call_close(&self, visible: &str, tag: &Tag<'_>, end: InputEnd) -> TagVerdict {
        let balances = self.has_open_call();
        let data =
            TagVerdict::Data(tag.len, if balances { NestingChange::PopCall } else { NestingChange::Keep });
        let inside_example = balances && !self.has_only_escaped_examples();
        if inside_example || !self.at_line_start || (self.rules.is_strict() && !self.saw_stray_close) {
            return data;
        }
        match self.after_call(visible, tag.len, end) {
            Lex::Wait => TagVerdict::Wait,
            Lex::Found(Follower::Structure) if self.saw_stray_close => TagVerdict::Broken,
            Lex::Found(Follower::Structure) => TagVerdict::implicit_close(Recovery::MissingValueClose),
            Lex::Found(Follower::Loose) if !self.saw_stray_close && is_wrapper_close(visible, tag.len) => {
                TagVerdict::implicit_close(Recovery::MissingValueClose)
            }
            Lex::Found(_) | Lex::Absent => data,
        }
    }

    /// An opening tag of a call inside a value starts an example if a call follows; otherwise it is only
    /// mentioned.
    fn call_open(&self, visible: &str, opening: &Tag<'_>, end: InputEnd) -> TagVerdict {
        let mention = TagVerdict::Data(opening.len, NestingChange::Keep);
        // In source code, a newline may be written as an escape.
        let rest = visible[opening.len..].trim_start();
        let rest = rest.strip_prefix("\\n").unwrap_or(rest).trim_start();
        if rest == "\\" && end == InputEnd::More {
            return TagVerdict::Wait;
        }
        match tag_or_escaped(rest, end) {
            Lex::Wait => TagVerdict::Wait,
            Lex::Found(Tag { element: Element::ParameterOpen(..) | Element::CallClose(_), .. }) => {
                self.push(opening, Level::Call)
            }
            Lex::Found(_) | Lex::Absent => mention,
        }
    }

    /// P9: a value that only the next parameter's opening tag ends.
    fn parameter_open(&self, tag: &Tag<'_>, name: &str) -> TagVerdict {
        let is_next =
            self.has_only_escaped_examples() && matches!(self.slots.slot(name), ParameterSlot::Free(_));
        let is_next = is_next && tag.spelling != Spelling::Escaped;
        if !is_next || !self.at_line_start || (self.rules.is_strict() && !self.saw_stray_close) {
            return self.push(tag, Level::Parameter);
        }
        if self.saw_stray_close {
            return TagVerdict::Broken;
        }
        TagVerdict::implicit_close(Recovery::ImplicitClose)
    }

    fn push(&self, tag: &Tag<'_>, level: Level) -> TagVerdict {
        let nested = Nested { level, escaped: tag.spelling == Spelling::Escaped };
        let fits = self.nest.len() < MAX_NEST && !tag.is_empty;
        TagVerdict::Data(tag.len, if fits { NestingChange::Push(nested) } else { NestingChange::Keep })
    }

    /// True if every open example is in a string literal of source code.
    fn has_only_escaped_examples(&self) -> bool {
        self.nest.iter().all(|nested| nested.escaped)
    }

    fn has_open_call(&self) -> bool {
        self.nest.iter().any(|nested| nested.level == Level::Call)
    }
}

/// The part of `rest` that decisions may depend on.
pub(crate) fn lookahead(rest: &str, end: InputEnd) -> (&str, InputEnd) {
    let visible = &rest[..rest.floor_char_boundary(MAX_LOOKAHEAD)];
    (visible, if visible.len() < rest.len() { InputEnd::Limit } else { end })
}

fn at_end(end: InputEnd, follower: Follower) -> Lex<Follower> {
    match end {
        InputEnd::More => Lex::Wait,
        InputEnd::Clean => Lex::Found(follower),
        InputEnd::Cut | InputEnd::Limit => Lex::Absent,
    }
}

fn is_wrapper_close(visible: &str, from: usize) -> bool {
    let (at, _) = after_spaces(visible, from);
    match tag(&visible[at..], InputEnd::Limit) {
        Lex::Found(Tag { element: Element::Close(name), .. }) => WRAPPERS.contains(&name),
        Lex::Found(_) | Lex::Absent | Lex::Wait => false,
    }
}

/// Whether the next line starts with a misspelled tag of a call.
fn misspelled_tag_follows(visible: &str, from: usize, end: InputEnd) -> Lex<()> {
    const NO_BRACKET: [&str; 4] = ["parameter name=", "invoke name=", "/parameter>", "/invoke>"];
    let (at, _) = after_spaces(visible, from);
    let rest = &visible[at..];
    if !visible[from..at].contains('\n') {
        return Lex::Absent;
    }
    if is_misspelled_tag(rest) {
        return Lex::Found(());
    }
    let found =
        NO_BRACKET.iter().map(|tag| match_literal(rest, tag, end)).find(|found| *found != Lex::Absent);
    found.unwrap_or(Lex::Absent)
}

/// Whether the text starts with a misspelled tag of a call: its name starts like `parameter` or `invoke`, but
/// the tag is not valid.
pub(crate) fn is_misspelled_tag(text: &str) -> bool {
    const MIN_LENGTH: usize = 5;
    let Some(rest) = text.strip_prefix('<') else { return false };
    let name = rest.strip_prefix('/').unwrap_or(rest);
    let len = name.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(name.len());
    let name = &name[..len];
    let near = name.len() >= MIN_LENGTH
        && ["parameter", "invoke"].iter().any(|tag| tag.starts_with(name) || name.starts_with(tag));
    let valid = match tag_or_escaped(text, InputEnd::Limit) {
        Lex::Found(tag) => !matches!(tag.element, Element::Open(_) | Element::Close(_) | Element::Other),
        Lex::Absent | Lex::Wait => false,
    };
    near && !valid
}

/// The position of the next character that is not whitespace, and whether any whitespace was skipped.
fn after_spaces(text: &str, from: usize) -> (usize, bool) {
    let rest = &text[from..];
    let at = from + rest.len() - rest.trim_start().len();
    (at, at > from)
}

fn first_char(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}
