//! Recognises single tags in a text that may still grow. A tag is only recognised once it is complete, so the
//! result does not depend on how the text is split into chunks.

use std::borrow::Cow;

use crate::value::escape;

/// The maximum length of a tag; anything longer is text.
pub(crate) const MAX_TAG: usize = 200;

/// What a growing text starts with.
#[derive(Debug, PartialEq)]
pub(crate) enum Lex<T> {
    Found(T),
    Absent,
    /// More text is needed to decide.
    Wait,
}

impl<T> Lex<T> {
    pub(crate) fn map<U>(self, convert: impl FnOnce(T) -> U) -> Lex<U> {
        match self {
            Self::Found(found) => Lex::Found(convert(found)),
            Self::Absent => Lex::Absent,
            Self::Wait => Lex::Wait,
        }
    }
}

/// Whether more text may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputEnd {
    More,
    /// The model stopped here by itself.
    Clean,
    /// The model was cut off here, so the end of the text proves nothing (P28).
    Cut,
    /// More text exists, but it is beyond the lookahead limit.
    Limit,
}

/// A tag.
#[derive(Debug, PartialEq)]
pub(crate) struct Tag<'t> {
    pub(crate) element: Element<'t>,
    pub(crate) len: usize,
    pub(crate) spelling: Spelling,
    /// `<x/>`.
    pub(crate) is_empty: bool,
}

/// The role of a tag in a call.
#[derive(Debug, PartialEq)]
pub(crate) enum Element<'t> {
    CallOpen(Family, Cow<'t, str>),
    CallClose(Family),
    ParameterOpen(Cow<'t, str>, StringMark),
    ParameterClose,
    /// Any other tag without attributes.
    Open(&'t str),
    Close(&'t str),
    Other,
}

/// The pair of tags around a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// `<invoke name="…">`.
    Invoke,
    /// `<function=…>`.
    Function,
}

/// DSML states for each parameter whether it is a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StringMark {
    None,
    String,
    Json,
}

/// How a tag is written (P31).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    Plain,
    /// `<｜DSML｜invoke …>`.
    Dsml,
    /// `＜invoke …＞`.
    Wide,
    /// `<invoke name=x>`.
    Unquoted,
    /// `<invoke name=\"x\">`: a tag in a string literal of source code, never a call.
    Escaped,
}

pub(crate) const OPENING: [char; 3] = ['<', '＜', '〈'];
const CLOSING: [char; 3] = ['>', '＞', '〉'];
pub(crate) const DSML: [&str; 2] = ["｜DSML｜", "|DSML|"];

/// The tag at the start of a text.
pub(crate) fn tag(text: &str, end: InputEnd) -> Lex<Tag<'_>> {
    match tag_or_escaped(text, end) {
        Lex::Found(Tag { spelling: Spelling::Escaped, .. }) => Lex::Absent,
        other @ (Lex::Found(_) | Lex::Absent | Lex::Wait) => other,
    }
}

/// The tag at the start of a text, including a tag in a string literal of source code.
pub(crate) fn tag_or_escaped(text: &str, end: InputEnd) -> Lex<Tag<'_>> {
    let visible = &text[..text.floor_char_boundary(MAX_TAG)];
    let end = if visible.len() < text.len() || visible.len() == MAX_TAG { InputEnd::Limit } else { end };
    match read(visible) {
        Ok(tag) => Lex::Found(tag),
        Err(LexError::Short) if end == InputEnd::More => Lex::Wait,
        Err(LexError::NoTag | LexError::Short) => Lex::Absent,
    }
}

/// Whether a text starts with `literal`.
pub(crate) fn match_literal(text: &str, literal: &str, end: InputEnd) -> Lex<()> {
    if text.starts_with(literal) {
        Lex::Found(())
    } else if end == InputEnd::More && literal.starts_with(text) {
        Lex::Wait
    } else {
        Lex::Absent
    }
}

enum LexError {
    NoTag,
    /// The text ended inside a possible tag.
    Short,
}

struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

fn read(text: &str) -> Result<Tag<'_>, LexError> {
    let mut cursor = Cursor { text, at: 0 };
    let opening = cursor.next_char()?;
    if !OPENING.contains(&opening) {
        return Err(LexError::NoTag);
    }
    let closes = matches!(cursor.peek()?, '/' | '／');
    if closes {
        cursor.next_char()?;
    }
    let mut spelling = if opening == '<' { Spelling::Plain } else { Spelling::Wide };
    if matches!(cursor.peek()?, '｜' | '|') {
        cursor.dsml()?;
        spelling = Spelling::Dsml;
    }
    let name = cursor.name()?;
    let mut attributes = Attributes::default();
    let is_empty = cursor.attributes(&mut attributes)?;
    if attributes.escaped {
        spelling = Spelling::Escaped;
    } else if attributes.unquoted && spelling == Spelling::Plain {
        spelling = Spelling::Unquoted;
    }
    let element = element(name, closes, &attributes);
    Ok(Tag { element, len: cursor.at, spelling, is_empty })
}

#[derive(Default)]
struct Attributes<'t> {
    /// `<function=NAME>`.
    direct: Option<&'t str>,
    name: Option<&'t str>,
    string: Option<&'t str>,
    any: bool,
    unquoted: bool,
    escaped: bool,
}

fn element<'t>(tag: &'t str, closes: bool, attributes: &Attributes<'t>) -> Element<'t> {
    let string = match attributes.string {
        Some("true") => StringMark::String,
        Some("false") => StringMark::Json,
        Some(_) | None => StringMark::None,
    };
    let name = attributes
        .direct
        .or(attributes.name)
        .map(|name| if name.contains('&') { Cow::Owned(escape::decoded(name)) } else { Cow::Borrowed(name) });
    match (tag, closes, name) {
        ("invoke", true, _) => Element::CallClose(Family::Invoke),
        ("function", true, _) => Element::CallClose(Family::Function),
        ("parameter", true, _) => Element::ParameterClose,
        ("invoke", false, Some(name)) => Element::CallOpen(Family::Invoke, name),
        ("function", false, Some(name)) => Element::CallOpen(Family::Function, name),
        ("parameter", false, Some(name)) => Element::ParameterOpen(name, string),
        (_, true, _) => Element::Close(tag),
        (_, false, None) if !attributes.any => Element::Open(tag),
        (_, false, _) => Element::Other,
    }
}

impl<'t> Cursor<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Result<char, LexError> {
        self.rest().chars().next().ok_or(LexError::Short)
    }

    fn next_char(&mut self) -> Result<char, LexError> {
        let character = self.peek()?;
        self.at += character.len_utf8();
        Ok(character)
    }

    fn dsml(&mut self) -> Result<(), LexError> {
        for mark in DSML {
            match match_literal(self.rest(), mark, InputEnd::More) {
                Lex::Found(()) => {
                    self.at += mark.len();
                    return Ok(());
                }
                Lex::Wait => return Err(LexError::Short),
                Lex::Absent => {}
            }
        }
        Err(LexError::NoTag)
    }

    fn name(&mut self) -> Result<&'t str, LexError> {
        let start = self.at;
        while matches!(self.peek()?, 'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '.') {
            self.next_char()?;
        }
        if self.at == start { Err(LexError::NoTag) } else { Ok(&self.text[start..self.at]) }
    }

    /// Reads up to and including the closing bracket; true for an empty element.
    fn attributes(&mut self, attributes: &mut Attributes<'t>) -> Result<bool, LexError> {
        if self.peek()? == '=' {
            self.next_char()?;
            attributes.direct = Some(self.direct_value()?);
        }
        loop {
            let spaced = self.spaces()?;
            match self.next_char()? {
                character if CLOSING.contains(&character) => return Ok(false),
                '/' if CLOSING.contains(&self.peek()?) => {
                    self.next_char()?;
                    return Ok(true);
                }
                character if spaced && character.is_ascii_alphabetic() => self.attribute(attributes)?,
                _ => return Err(LexError::NoTag),
            }
        }
    }

    fn attribute(&mut self, attributes: &mut Attributes<'t>) -> Result<(), LexError> {
        let start = self.at - 1;
        while matches!(self.peek()?, 'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-') {
            self.next_char()?;
        }
        let key = &self.text[start..self.at];
        self.spaces()?;
        if self.next_char()? != '=' {
            return Err(LexError::NoTag);
        }
        self.spaces()?;
        let value = if matches!(self.peek()?, '"' | '\'') {
            self.quoted()?
        } else if self.peek()? == '\\' {
            attributes.escaped = true;
            self.escaped_value()?
        } else {
            attributes.unquoted = true;
            self.bare_value()?
        };
        attributes.any = true;
        match key {
            "name" => attributes.name = Some(value),
            "string" => attributes.string = Some(value),
            _ => {}
        }
        Ok(())
    }

    fn quoted(&mut self) -> Result<&'t str, LexError> {
        let quote = self.next_char()?;
        if !matches!(quote, '"' | '\'') {
            return Err(LexError::NoTag);
        }
        let start = self.at;
        loop {
            match self.next_char()? {
                '\n' | '<' => return Err(LexError::NoTag),
                character if character == quote => return Ok(&self.text[start..self.at - 1]),
                _ => {}
            }
        }
    }

    fn escaped_value(&mut self) -> Result<&'t str, LexError> {
        self.next_char()?;
        let value = self.quoted()?;
        value.strip_suffix('\\').ok_or(LexError::NoTag)
    }

    /// A name without quotes, or with one of the two quotes missing.
    fn bare_value(&mut self) -> Result<&'t str, LexError> {
        let value = self.name()?;
        if matches!(self.peek()?, '"' | '\'') {
            self.next_char()?;
        }
        Ok(value)
    }

    fn direct_value(&mut self) -> Result<&'t str, LexError> {
        if matches!(self.peek()?, '"' | '\'') {
            return self.quoted();
        }
        let start = self.at;
        while !CLOSING.contains(&self.peek()?) {
            if matches!(self.next_char()?, '\n' | '<') {
                return Err(LexError::NoTag);
            }
        }
        let value = self.text[start..self.at].trim();
        if value.is_empty() { Err(LexError::NoTag) } else { Ok(value) }
    }

    fn spaces(&mut self) -> Result<bool, LexError> {
        let start = self.at;
        while matches!(self.peek()?, ' ' | '\t') {
            self.next_char()?;
        }
        Ok(self.at > start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_only_once_they_are_complete() {
        let check = |text: &str, expect: Element<'_>| {
            let Lex::Found(found) = tag(text, InputEnd::More) else { panic!("{text} is not a tag") };
            assert_eq!((found.element, found.len), (expect, text.len()), "{text}");
            for (cut, _) in text.char_indices().skip(1) {
                assert_eq!(tag(&text[..cut], InputEnd::More), Lex::Wait, "{}", &text[..cut]);
                assert_eq!(tag(&text[..cut], InputEnd::Clean), Lex::Absent, "{}", &text[..cut]);
            }
        };
        check("<invoke name=\"Bash\">", Element::CallOpen(Family::Invoke, "Bash".into()));
        check("<invoke  name = 'a b'  >", Element::CallOpen(Family::Invoke, "a b".into()));
        check("<invoke name=\"a&quot;b\">", Element::CallOpen(Family::Invoke, "a\"b".into()));
        check("<function=Bash>", Element::CallOpen(Family::Function, "Bash".into()));
        check("<parameter=k>", Element::ParameterOpen("k".into(), StringMark::None));
        check("</parameter>", Element::ParameterClose);
        check("</｜DSML｜invoke>", Element::CallClose(Family::Invoke));
        check("＜invoke name=\"x\"＞", Element::CallOpen(Family::Invoke, "x".into()));
        check(
            "<｜DSML｜parameter name=\"k\" string=\"false\">",
            Element::ParameterOpen("k".into(), StringMark::Json),
        );
        check("<parameter name=k\">", Element::ParameterOpen("k".into(), StringMark::None));
        check("<function_calls>", Element::Open("function_calls"));
    }

    #[test]
    fn invalid_tags_are_rejected_at_once() {
        for text in ["< a", "<=", "<a=\n", "<invoke name=x/", "<a b ", "<<", "<a\n", "<|x"] {
            let text = format!("{text}!");
            assert_eq!(tag(&text, InputEnd::More), Lex::Absent, "{text}");
        }
        assert_eq!(tag(&format!("<parameter name=\"{}", "x".repeat(MAX_TAG)), InputEnd::More), Lex::Absent);
    }
}
