//! Where calls begin: after a trigger any of the known syntaxes, otherwise nothing (P4, P22, P23, P31).

use super::judge::{MAX_LOOKAHEAD, WRAPPERS};
use super::lex::{DSML, Element, End, Family, Lex, OPENING, Spelling, tag, word};
use crate::plan::Rules;

/// The first thing of a call, or what may stand before it.
#[derive(Debug, PartialEq)]
pub(crate) enum Start {
    /// `<invoke name="…">` and its kin.
    Tagged(Opening),
    /// `<function_call><tool>NAME</tool><args_json>`: the arguments follow as JSON.
    Arguments {
        name: String,
        len: usize,
    },
    /// `{"name": …}`, alone or in an array.
    Json,
    /// A tag or fence that means nothing.
    Wrapper(usize),
    Trigger(usize),
}

/// A call's opening tag.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Opening {
    pub(crate) name: String,
    pub(crate) family: Family,
    pub(crate) spelling: Spelling,
    pub(crate) len: usize,
    pub(crate) is_empty: bool,
}

/// What a text that begins with no space begins with.
pub(crate) fn start(rest: &str, rules: &Rules, end: End) -> Lex<Start> {
    let visible = &rest[..rest.floor_char_boundary(MAX_LOOKAHEAD)];
    let end = if visible.len() < rest.len() { End::Limit } else { end };
    match rules.trigger.as_deref().map_or(Lex::Absent, |trigger| word(visible, trigger, end)) {
        Lex::Found(()) => {
            return Lex::Found(Start::Trigger(rules.trigger.as_ref().map_or(0, String::len)));
        }
        Lex::Wait => return Lex::Wait,
        Lex::Absent => {}
    }
    match visible.as_bytes().first() {
        Some(b'{') => next_is(visible, '"', end),
        Some(b'[') => next_is(visible, '{', end),
        Some(b'`') => fence(visible, end),
        Some(_) => tagged(visible, end),
        None => Lex::Absent,
    }
}

fn tagged(visible: &str, end: End) -> Lex<Start> {
    let tag = match tag(visible, end) {
        Lex::Wait => return Lex::Wait,
        Lex::Absent => return Lex::Absent,
        Lex::Found(tag) => tag,
    };
    match tag.element {
        Element::CallOpen(family, name) => Lex::Found(Start::Tagged(Opening {
            name: name.into_owned(),
            family,
            spelling: tag.spelling,
            len: tag.len,
            is_empty: tag.is_empty,
        })),
        Element::Open("function_call") => toolify(visible, tag.len, end),
        Element::Open(name) | Element::Close(name) if WRAPPERS.contains(&name) => {
            Lex::Found(Start::Wrapper(tag.len))
        }
        Element::Close("args_json" | "args") => Lex::Found(Start::Wrapper(tag.len)),
        Element::CallClose(_)
        | Element::ParameterOpen(..)
        | Element::ParameterClose
        | Element::Open(_)
        | Element::Close(_)
        | Element::Other => Lex::Absent,
    }
}

/// Toolify's form, up to where the JSON begins.
fn toolify(visible: &str, from: usize, end: End) -> Lex<Start> {
    let mut scan = Scan { rest: &visible[from..], end };
    let header = (|| {
        scan.expect("<tool>")?;
        let name = scan.until('<')?;
        scan.expect("</tool>")?;
        if !scan.optional("<args_json>")? {
            scan.expect("<args>")?;
        }
        scan.optional("<![CDATA[")?;
        Ok(name.trim().to_owned())
    })();
    match header {
        Ok(name) => Lex::Found(Start::Arguments { name, len: visible.len() - scan.rest.len() }),
        // A wrapper of something else.
        Err(Lex::Absent) => Lex::Found(Start::Wrapper(from)),
        Err(other) => match other {
            Lex::Wait => Lex::Wait,
            Lex::Absent | Lex::Found(()) => Lex::Absent,
        },
    }
}

struct Scan<'t> {
    rest: &'t str,
    end: End,
}

impl<'t> Scan<'t> {
    fn expect(&mut self, literal: &str) -> Result<(), Lex<()>> {
        let trimmed = self.rest.trim_start();
        match word(trimmed, literal, self.end) {
            Lex::Found(()) => {
                self.rest = &trimmed[literal.len()..];
                Ok(())
            }
            other @ (Lex::Absent | Lex::Wait) => Err(other),
        }
    }

    /// True where the literal is there.
    fn optional(&mut self, literal: &str) -> Result<bool, Lex<()>> {
        match self.expect(literal) {
            Ok(()) => Ok(true),
            Err(Lex::Wait) => Err(Lex::Wait),
            Err(Lex::Absent | Lex::Found(())) => Ok(false),
        }
    }

    fn until(&mut self, stop: char) -> Result<&'t str, Lex<()>> {
        match self.rest.find(stop) {
            Some(at) => {
                let found = &self.rest[..at];
                self.rest = &self.rest[at..];
                Ok(found)
            }
            None if self.end == End::More => Err(Lex::Wait),
            None => Err(Lex::Absent),
        }
    }
}

/// Whether an answer that is over stopped inside what would have become the start of a call (P28). Where the model was
/// cut off every unfinished tag may have become one; where it stopped by itself only one that begins like a call.
pub(crate) fn is_cut_start(rest: &str, rules: &Rules, end: End) -> bool {
    let undecided = start(rest, rules, End::More) == Lex::Wait;
    match end {
        End::More | End::Limit => false,
        End::Cut => undecided,
        End::Clean => undecided && begins_like_call(rest, rules),
    }
}

fn begins_like_call(rest: &str, rules: &Rules) -> bool {
    let trigger = rules.trigger.as_deref().is_some_and(|trigger| trigger.starts_with(rest));
    let Some(tag) = rest.strip_prefix(OPENING) else { return trigger || rest.starts_with(['{', '[']) };
    let spelt = DSML.iter().find_map(|mark| tag.strip_prefix(mark)).unwrap_or(tag);
    let ended = spelt.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let mut openings = WRAPPERS.into_iter().chain(["invoke", "function"]);
    let known = openings.any(|name| match ended {
        Some(len) => name == &spelt[..len],
        None => name.starts_with(spelt),
    });
    known || trigger || DSML.iter().any(|mark| mark.starts_with(tag))
}

fn next_is(visible: &str, wanted: char, end: End) -> Lex<Start> {
    match visible[1..].trim_start().chars().next() {
        Some(letter) if letter == wanted => Lex::Found(Start::Json),
        None if end == End::More => Lex::Wait,
        Some(_) | None => Lex::Absent,
    }
}

/// A fence's line: some models fence what comes after the trigger.
fn fence(visible: &str, end: End) -> Lex<Start> {
    match word(visible, "```", end) {
        Lex::Wait => Lex::Wait,
        Lex::Absent => Lex::Absent,
        Lex::Found(()) => match visible.find('\n') {
            Some(line) => Lex::Found(Start::Wrapper(line)),
            None if end == End::More => Lex::Wait,
            None => Lex::Found(Start::Wrapper(visible.len())),
        },
    }
}

/// What stands after a trigger at the start of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AfterTrigger {
    /// A call, or prose on the next line before one.
    Call,
    /// The trigger is only mentioned.
    Mention,
    Wait,
}

/// P4: a trigger opens calls if a call follows it, or at least its line ends.
pub(crate) fn after_trigger(rest: &str, rules: &Rules, end: End) -> AfterTrigger {
    let visible = &rest[..rest.floor_char_boundary(MAX_LOOKAHEAD)];
    let end = if visible.len() < rest.len() { End::Limit } else { end };
    let trimmed = visible.trim_start();
    let line_ended = visible[..visible.len() - trimmed.len()].contains('\n');
    let loose = if rules.is_strict() || !line_ended { AfterTrigger::Mention } else { AfterTrigger::Call };
    if trimmed.is_empty() {
        return match end {
            End::More => AfterTrigger::Wait,
            End::Limit => loose,
            End::Clean | End::Cut if rules.is_strict() => AfterTrigger::Mention,
            End::Clean | End::Cut => AfterTrigger::Call,
        };
    }
    if !rules.is_strict() && is_cut_start(trimmed, rules, end) {
        return AfterTrigger::Call;
    }
    match start(trimmed, rules, end) {
        Lex::Found(_) => AfterTrigger::Call,
        Lex::Wait => AfterTrigger::Wait,
        Lex::Absent => loose,
    }
}
