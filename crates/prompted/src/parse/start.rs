//! Recognises the start of a call: any known syntax after a trigger, nothing elsewhere (P4, P22, P23, P31).

use super::judge::{WRAPPERS, lookahead};
use super::lex::{DSML, Element, Family, InputEnd, Lex, OPENING, Spelling, match_literal, tag};
use crate::plan::ParseRules;

/// The start of a call, or something that may precede it.
#[derive(Debug, PartialEq)]
pub(crate) enum CallStart {
    /// `<invoke name="…">` or an equivalent tag.
    Tagged(CallTag),
    /// `<function_call><tool>NAME</tool><args_json>`: the arguments follow as JSON.
    Arguments {
        name: String,
        len: usize,
    },
    /// `{"name": …}`, alone or in an array.
    Json,
    /// A tag or fence without meaning.
    Wrapper(usize),
    Trigger(usize),
}

/// The opening tag of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallTag {
    pub(crate) name: String,
    pub(crate) family: Family,
    pub(crate) spelling: Spelling,
    pub(crate) len: usize,
    pub(crate) is_empty: bool,
}

/// Recognises the start of a call in a text that does not start with whitespace.
pub(crate) fn call_start(rest: &str, rules: &ParseRules, end: InputEnd) -> Lex<CallStart> {
    let (visible, end) = lookahead(rest, end);
    match match_trigger(visible, rules, end) {
        Lex::Found(len) => return Lex::Found(CallStart::Trigger(len)),
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

/// The trigger at the start of a text, by its length.
pub(crate) fn match_trigger(text: &str, rules: &ParseRules, end: InputEnd) -> Lex<usize> {
    let Some(trigger) = &rules.trigger else { return Lex::Absent };
    match_literal(text, trigger, end).map(|()| trigger.len())
}

fn tagged(visible: &str, end: InputEnd) -> Lex<CallStart> {
    let tag = match tag(visible, end) {
        Lex::Wait => return Lex::Wait,
        Lex::Absent => return Lex::Absent,
        Lex::Found(tag) => tag,
    };
    match tag.element {
        Element::CallOpen(family, name) => Lex::Found(CallStart::Tagged(CallTag {
            name: name.into_owned(),
            family,
            spelling: tag.spelling,
            len: tag.len,
            is_empty: tag.is_empty,
        })),
        Element::Open("function_call") => toolify(visible, tag.len, end),
        Element::Open(name) | Element::Close(name) if WRAPPERS.contains(&name) => {
            Lex::Found(CallStart::Wrapper(tag.len))
        }
        Element::Close("args_json" | "args") => Lex::Found(CallStart::Wrapper(tag.len)),
        Element::CallClose(_)
        | Element::ParameterOpen(..)
        | Element::ParameterClose
        | Element::Open(_)
        | Element::Close(_)
        | Element::Other => Lex::Absent,
    }
}

/// Toolify's format, up to the start of the JSON.
fn toolify(visible: &str, from: usize, end: InputEnd) -> Lex<CallStart> {
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
        Ok(name) => Lex::Found(CallStart::Arguments { name, len: visible.len() - scan.rest.len() }),
        Err(Lex::Wait) => Lex::Wait,
        // A wrapper with other content.
        Err(Lex::Absent | Lex::Found(())) => Lex::Found(CallStart::Wrapper(from)),
    }
}

struct Scan<'t> {
    rest: &'t str,
    end: InputEnd,
}

impl<'t> Scan<'t> {
    fn expect(&mut self, literal: &str) -> Result<(), Lex<()>> {
        let trimmed = self.rest.trim_start();
        match match_literal(trimmed, literal, self.end) {
            Lex::Found(()) => {
                self.rest = &trimmed[literal.len()..];
                Ok(())
            }
            other @ (Lex::Absent | Lex::Wait) => Err(other),
        }
    }

    /// True if the literal is present.
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
            None if self.end == InputEnd::More => Err(Lex::Wait),
            None => Err(Lex::Absent),
        }
    }
}

/// Whether a finished answer ended inside the start of a call (P28). If the model was cut off, any unfinished
/// tag may have become a call; if it stopped by itself, only one that starts like a call.
pub(crate) fn is_cut_start(rest: &str, rules: &ParseRules, end: InputEnd) -> bool {
    let undecided = call_start(rest, rules, InputEnd::More) == Lex::Wait;
    match end {
        InputEnd::More | InputEnd::Limit => false,
        InputEnd::Cut => undecided,
        InputEnd::Clean => undecided && begins_like_call(rest, rules),
    }
}

fn begins_like_call(rest: &str, rules: &ParseRules) -> bool {
    let trigger = rules.trigger.as_deref().is_some_and(|trigger| trigger.starts_with(rest));
    let Some(tag) = rest.strip_prefix(OPENING) else { return trigger || rest.starts_with(['{', '[']) };
    let name = DSML.iter().find_map(|mark| tag.strip_prefix(mark)).unwrap_or(tag);
    let name_end = name.find(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    let mut known_names = WRAPPERS.into_iter().chain(["invoke", "function"]);
    let known = known_names.any(|known| match name_end {
        Some(len) => known == &name[..len],
        None => known.starts_with(name),
    });
    known || trigger || DSML.iter().any(|mark| mark.starts_with(tag))
}

fn next_is(visible: &str, expected: char, end: InputEnd) -> Lex<CallStart> {
    match visible[1..].trim_start().chars().next() {
        Some(character) if character == expected => Lex::Found(CallStart::Json),
        None if end == InputEnd::More => Lex::Wait,
        Some(_) | None => Lex::Absent,
    }
}

/// The first line of a code fence: some models fence what follows the trigger.
fn fence(visible: &str, end: InputEnd) -> Lex<CallStart> {
    match match_literal(visible, "```", end) {
        Lex::Wait => Lex::Wait,
        Lex::Absent => Lex::Absent,
        Lex::Found(()) => match visible.find('\n') {
            Some(line) => Lex::Found(CallStart::Wrapper(line)),
            None if end == InputEnd::More => Lex::Wait,
            None => Lex::Found(CallStart::Wrapper(visible.len())),
        },
    }
}

/// What follows a trigger at the start of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AfterTrigger {
    /// A call, or prose on the next line that may precede one.
    Call,
    /// The trigger is only mentioned in prose.
    Mention,
    Wait,
}

/// P4: a trigger starts calls if a call follows it, or if at least its line ends.
pub(crate) fn after_trigger(rest: &str, rules: &ParseRules, end: InputEnd) -> AfterTrigger {
    let (visible, end) = lookahead(rest, end);
    let trimmed = visible.trim_start();
    let line_ended = visible[..visible.len() - trimmed.len()].contains('\n');
    let otherwise = if rules.is_strict() || !line_ended { AfterTrigger::Mention } else { AfterTrigger::Call };
    if trimmed.is_empty() {
        return match end {
            InputEnd::More => AfterTrigger::Wait,
            InputEnd::Limit => otherwise,
            InputEnd::Clean | InputEnd::Cut if rules.is_strict() => AfterTrigger::Mention,
            InputEnd::Clean | InputEnd::Cut => AfterTrigger::Call,
        };
    }
    if !rules.is_strict() && is_cut_start(trimmed, rules, end) {
        return AfterTrigger::Call;
    }
    match call_start(trimmed, rules, end) {
        Lex::Found(_) => AfterTrigger::Call,
        Lex::Wait => AfterTrigger::Wait,
        Lex::Absent => otherwise,
    }
}
