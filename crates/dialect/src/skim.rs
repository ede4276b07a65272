//! Looks through a JSON text for a few values and only checks the rest: nothing is built, and long strings are passed
//! over many letters at a time. Whoever looks has another way for what is unusual (a name with escapes, a name twice,
//! deep nesting, text that is no JSON), so `None` says no more than that this way is not for this text.

mod ending;
mod shape;

use memchr::memchr2;

pub(crate) use self::ending::Ending;
pub(crate) use self::shape::{Field, Shape, model_of};

/// How deep values may nest. Replies nest half as deep at most.
const MAX_DEPTH: usize = 32;

/// Numbers that are longer may be larger than any that a machine knows.
const MAX_NUMBER_BYTES: usize = 32;
const MAX_EXPONENT_DIGITS: usize = 2;

/// The values of these fields of an object, as they stand in the text; `null` is no value.
pub(crate) fn fields<'t, const N: usize>(text: &'t str, names: [&str; N]) -> Option<[Option<&'t str>; N]> {
    let mut found = [None; N];
    object(text, |skim, name| {
        let value = skim.value()?;
        match names.iter().position(|wanted| *wanted == name) {
            Some(at) => once(&mut found[at], value),
            None => Some(()),
        }
    })?;
    Some(found.map(|value| value.filter(|value| *value != "null")))
}

/// Reads a text that is one object: `field` is shown the name of each field and must take its value.
pub(crate) fn object<'t>(
    text: &'t str,
    field: impl FnMut(&mut Skim<'t>, &'t str) -> Option<()>,
) -> Option<()> {
    let mut skim = Skim { text, at: 0 };
    skim.pass_blanks();
    skim.object(field)?;
    skim.pass_blanks();
    (skim.at == text.len()).then_some(())
}

/// Puts a value where none must have been.
pub(crate) fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

/// The letters of a string that is written plainly.
pub(crate) fn plain_string(value: &str) -> Option<&str> {
    let letters = value.strip_prefix('"')?.strip_suffix('"')?;
    (!letters.contains('\\')).then_some(letters)
}

fn count(value: &str) -> Option<u64> {
    // Nineteen digits always fit. The text is JSON, so these are digits unless it is another kind of value.
    let is_plain = value.len() <= 19 && value.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| value.bytes().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// A place in a text.
pub(crate) struct Skim<'t> {
    text: &'t str,
    at: usize,
}

/// How a string is written.
#[derive(PartialEq)]
enum Writing {
    Plain,
    Escaped,
}

impl<'t> Skim<'t> {
    /// Takes any value, as it stands.
    pub(crate) fn value(&mut self) -> Option<&'t str> {
        let start = self.at;
        self.pass_value(MAX_DEPTH)?;
        self.text.get(start..self.at)
    }

    /// Takes an object, as [`object`] does.
    pub(crate) fn object(&mut self, field: impl FnMut(&mut Self, &'t str) -> Option<()>) -> Option<()> {
        self.take(b'{')?;
        self.members(field)
    }

    /// Takes the fields of an object and its end.
    fn members(&mut self, mut field: impl FnMut(&mut Self, &'t str) -> Option<()>) -> Option<()> {
        self.list(b'}', |skim| {
            let start = skim.at + 1;
            if skim.pass_string()? == Writing::Escaped {
                return None;
            }
            let name = skim.text.get(start..skim.at - 1)?;
            skim.pass_colon()?;
            field(skim, name)
        })
    }

    /// Takes an object that holds nothing but these counts. Where it is another, nothing is taken.
    pub(crate) fn counts<const N: usize>(&mut self, names: [&str; N]) -> Option<[Option<u64>; N]> {
        let start = self.at;
        let mut found = [None; N];
        let taken = self.object(|skim, name| {
            let at = names.iter().position(|wanted| *wanted == name)?;
            once(&mut found[at], count(skim.value()?)?)
        });
        if taken.is_none() {
            self.at = start;
        }
        taken.map(|()| found)
    }

    /// Takes an array: `element` must take each of its values.
    pub(crate) fn array(&mut self, element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.take(b'[')?;
        self.list(b']', element)
    }

    fn list(&mut self, close: u8, mut member: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.pass_blanks();
        if self.take(close).is_some() {
            return Some(());
        }
        loop {
            member(self)?;
            self.pass_blanks();
            match self.next()? {
                b',' => self.pass_blanks(),
                other => return (other == close).then_some(()),
            }
        }
    }

    fn pass_value(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'"' => self.pass_string().map(|_| ()),
            b'{' => {
                let depth = depth.checked_sub(1)?;
                self.at += 1;
                self.list(b'}', |skim| {
                    skim.pass_string()?;
                    skim.pass_colon()?;
                    skim.pass_value(depth)
                })
            }
            b'[' => {
                let depth = depth.checked_sub(1)?;
                self.at += 1;
                self.list(b']', |skim| skim.pass_value(depth))
            }
            b't' => self.pass_word(b"true"),
            b'f' => self.pass_word(b"false"),
            b'n' => self.pass_word(b"null"),
            _ => self.pass_number(),
        }
    }

    fn pass_string(&mut self) -> Option<Writing> {
        self.take(b'"')?;
        let mut writing = Writing::Plain;
        loop {
            self.at += plain_letters(self.rest());
            match self.next()? {
                b'"' => return Some(writing),
                b'\\' => {
                    writing = Writing::Escaped;
                    self.pass_escaped()?;
                }
                // A control character.
                _ => return None,
            }
        }
    }

    fn pass_escaped(&mut self) -> Option<()> {
        match self.next()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => match self.code_unit()? {
                // The second half of a letter without the first is no letter.
                0xdc00..=0xdfff => None,
                0xd800..=0xdbff => {
                    self.pass_word(b"\\u")?;
                    matches!(self.code_unit()?, 0xdc00..=0xdfff).then_some(())
                }
                _ => Some(()),
            },
            _ => None,
        }
    }

    /// Takes four hexadecimal digits.
    fn code_unit(&mut self) -> Option<u32> {
        let digits = self.rest().first_chunk::<4>()?;
        self.at += digits.len();
        digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
    }

    fn pass_number(&mut self) -> Option<()> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.pass_digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.pass_digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            let exponent = self.at;
            self.pass_digits()?;
            if self.at - exponent > MAX_EXPONENT_DIGITS {
                return None;
            }
        }
        (self.at - start <= MAX_NUMBER_BYTES).then_some(())
    }

    fn pass_digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn pass_word(&mut self, word: &[u8]) -> Option<()> {
        self.rest().starts_with(word).then(|| self.at += word.len())
    }

    fn pass_colon(&mut self) -> Option<()> {
        self.pass_blanks();
        self.take(b':')?;
        self.pass_blanks();
        Some(())
    }

    fn pass_blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }
}

/// How many letters come before a quote, a backslash or a control character. Names and words are short, and for them
/// a search that can do many letters at a time costs more to begin than to do; so it is for strings that turn out long.
fn plain_letters(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(word) = text[at..].first_chunk::<8>() {
        let special = special_letters(u64::from_le_bytes(*word));
        if special != 0 {
            return at + (special.trailing_zeros() / 8) as usize;
        }
        at += word.len();
        if at == SHORT {
            let long = &text[at..];
            let end = memchr2(b'"', b'\\', long).unwrap_or(long.len());
            let least = long[..end].iter().fold(u8::MAX, |least, letter| least.min(*letter));
            return at + if least < b' ' { one_by_one(long) } else { end };
        }
    }
    at + one_by_one(&text[at..])
}

/// What is searched without the help of a library.
const SHORT: usize = 32;

fn one_by_one(text: &[u8]) -> usize {
    text.iter().position(|letter| matches!(letter, b'"' | b'\\' | ..b' ')).unwrap_or(text.len())
}

/// Sets the top bit of the first byte that is a quote, a backslash or a control character (and of some after it): eight
/// comparisons by one subtraction, of which only the first borrow can be trusted.
fn special_letters(word: u64) -> u64 {
    let below = |word: u64, bound: u8| word.wrapping_sub(u64::from_le_bytes([bound; 8])) & !word;
    let quote = below(word ^ u64::from_le_bytes([b'"'; 8]), 1);
    let backslash = below(word ^ u64::from_le_bytes([b'\\'; 8]), 1);
    (quote | backslash | below(word, b' ')) & u64::from_le_bytes([0x80; 8])
}

#[cfg(test)]
pub(crate) mod tests;
