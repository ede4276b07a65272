//! Characters that a host cuts in two (P21): `\ud83d` ends one chunk and `\ude80` begins the next. Neither half is
//! valid JSON; together they are one character. A half whose other half never comes is U+FFFD or nothing.

/// How an escape of four digits begins, and how long it is.
const ESCAPE: &str = "\\u";
const ESCAPE_BYTES: usize = 6;

/// Remembers the first half of a character from one chunk to the next.
#[derive(Default)]
pub(super) struct Surrogates {
    high: Option<u16>,
}

impl Surrogates {
    /// The chunk with whole characters in it; `None` where no character is cut, so that something else is wrong.
    pub(super) fn repair(&mut self, data: &str) -> Option<String> {
        let mut out = String::with_capacity(data.len());
        let mut rest = data;
        let mut repaired = false;
        while let Some(at) = rest.find('\\') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let Some(half) = escaped(rest).filter(|unit| (0xd800..=0xdfff).contains(unit)) else {
                // Any other escape, both of its characters.
                let len = rest.chars().take(2).map(char::len_utf8).sum();
                out.push_str(&rest[..len]);
                rest = &rest[len..];
                continue;
            };
            let after = &rest[ESCAPE_BYTES..];
            if let Some(whole) = escaped(after).and_then(|low| joined(half, low)) {
                out.push(whole);
                rest = &after[ESCAPE_BYTES..];
                continue;
            }
            repaired = true;
            rest = after;
            match self.high.take().and_then(|high| joined(high, half)) {
                Some(whole) => out.push(whole),
                None if half < 0xdc00 => self.high = Some(half),
                None => out.push(char::REPLACEMENT_CHARACTER),
            }
        }
        out.push_str(rest);
        repaired.then_some(out)
    }
}

/// The number that an escape at the start of a text stands for.
fn escaped(text: &str) -> Option<u16> {
    let digits = text.strip_prefix(ESCAPE)?.get(..ESCAPE_BYTES - ESCAPE.len())?;
    let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_number.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

fn joined(high: u16, low: u16) -> Option<char> {
    char::decode_utf16([high, low]).next()?.ok().filter(|_| high >= 0xd800 && low >= 0xdc00)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(chunks: &[(&str, Option<&str>)]) {
        let mut surrogates = Surrogates::default();
        for (chunk, expect) in chunks {
            assert_eq!(surrogates.repair(chunk).as_deref(), *expect, "{chunk}");
        }
    }

    #[test]
    fn halves_are_joined_and_everything_else_stays() {
        check(&[(r#"a\ud83d""#, Some("a\"")), (r#"\uDE80b""#, Some("🚀b\""))]); // P21
        check(&[(r"\ud83d\ude80 \u00e9 \\ud83d \n", None)]);
        check(&[(r"\ude80x", Some("\u{fffd}x"))]);
        check(&[(r"\ud83d", Some("")), (r"\ud83d", Some("")), (r"\ude80", Some("🚀"))]);
        check(&[(r"\ud83d\ud83d\ude80", Some("🚀"))]);
        check(&[("no escape", None), (r"\", None), (r"\u12", None), (r"\é", None), (r"\u+123", None)]);
    }
}
