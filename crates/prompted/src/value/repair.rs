//! Repairs almost-JSON as models write it (P14): raw newlines, Python's literals and quotes, trailing commas,
//! stray escapes, unquoted keys. One pass. Missing brackets and separators are rejected: adding them would be a
//! guess.

use super::escape;

/// The maximum nesting depth of arrays and objects.
const MAX_DEPTH: usize = 100;

/// The text as valid JSON; `None` if that would require guessing.
pub(crate) fn json(text: &str) -> Option<String> {
    let mut reader = Reader { rest: text, out: String::with_capacity(text.len()), depth: 0 };
    reader.value()?;
    reader.spaces();
    reader.rest.is_empty().then_some(reader.out)
}

struct Reader<'t> {
    rest: &'t str,
    out: String,
    depth: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Option<()> {
        self.spaces();
        match self.rest.chars().next()? {
            '{' => self.list('}', Self::entry),
            '[' => self.list(']', Self::value),
            quote @ ('"' | '\'') => self.string(quote),
            _ => self.literal(),
        }
    }

    fn list(&mut self, close: char, item: fn(&mut Self) -> Option<()>) -> Option<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let open = self.bump()?;
        self.out.push(open);
        let mut first = true;
        loop {
            self.spaces();
            if self.rest.starts_with(close) {
                break;
            }
            if !first {
                self.out.push(',');
            }
            item(self)?;
            first = false;
            self.spaces();
            if self.rest.starts_with(',') {
                self.bump()?;
            } else if !self.rest.starts_with(close) {
                return None;
            }
        }
        self.depth -= 1;
        let close = self.bump()?;
        self.out.push(close);
        Some(())
    }

    fn entry(&mut self) -> Option<()> {
        match self.rest.chars().next()? {
            quote @ ('"' | '\'') => self.string(quote)?,
            _ => self.bare_key()?,
        }
        self.spaces();
        self.rest = self.rest.strip_prefix(':')?;
        self.out.push(':');
        self.value()
    }

    fn bare_key(&mut self) -> Option<()> {
        let end = self
            .rest
            .find(|character: char| !(character.is_alphanumeric() || character == '_' || character == '-'))?;
        if end == 0 {
            return None;
        }
        escape::quoted(&self.rest[..end], &mut self.out);
        self.rest = &self.rest[end..];
        Some(())
    }

    fn string(&mut self, quote: char) -> Option<()> {
        self.bump()?;
        self.out.push('"');
        loop {
            match self.bump()? {
                '\\' => self.escaped()?,
                character if character == quote => break,
                character => escape::text(character.encode_utf8(&mut [0; 4]), &mut self.out),
            }
        }
        self.out.push('"');
        Some(())
    }

    fn escaped(&mut self) -> Option<()> {
        match self.bump()? {
            character @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {
                self.out.push('\\');
                self.out.push(character);
            }
            'u' => {
                let digits =
                    self.rest.get(..4).filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
                self.out.push_str("\\u");
                self.out.push_str(digits);
                self.rest = &self.rest[4..];
            }
            // `\d` is a regular expression whose backslash was not doubled; `\$` is a shell escape.
            character if character.is_ascii_alphanumeric() => {
                self.out.push_str("\\\\");
                self.out.push(character);
            }
            character => escape::text(character.encode_utf8(&mut [0; 4]), &mut self.out),
        }
        Some(())
    }

    fn literal(&mut self) -> Option<()> {
        let end = self.rest.find([',', '}', ']', ':', ' ', '\n', '\r', '\t']).unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        let json = match word {
            "True" => "true",
            "False" => "false",
            "None" => "null",
            other => super::coerce::valid_json(other)?,
        };
        self.out.push_str(json);
        self.rest = &self.rest[end..];
        Some(())
    }

    fn spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn bump(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.rest = &self.rest[character.len_utf8()..];
        Some(character)
    }
}
