//! Repairs surrogate pairs that a host splits over two chunks (P21): `\ud83d` ends one chunk and `\ude80` starts the
//! next. Neither half is valid JSON by itself. A low half without a high half becomes U+FFFD; a high half without a low
//! half is dropped.

/// The start and the length of a four-digit escape.
const ESCAPE: &str = "\\u";
const ESCAPE_BYTES: usize = 6;

/// Keeps the high half of a character until the next chunk.
#[derive(Default)]
pub(super) struct Surrogates {
    high: Option<u16>,
}

impl Surrogates {
    /// The chunk with complete characters; `None` if no character is split, so that the chunk is invalid otherwise.
    pub(super) fn repair(&mut self, data: &str) -> Option<String> {
        let mut out = String::with_capacity(data.len());
        let mut rest = data;
        let mut repaired = false;
        while let Some(at) = rest.find('\\') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let Some(half) = code_unit(rest).filter(|unit| (0xd800..=0xdfff).contains(unit)) else {
                // Any other escape: copies both of its characters.
                let len = rest.chars().take(2).map(char::len_utf8).sum();
                out.push_str(&rest[..len]);
                rest = &rest[len..];
                continue;
            };
            let after = &rest[ESCAPE_BYTES..];
            if let Some(whole) = code_unit(after).and_then(|low| combined(half, low)) {
                out.push(whole);
                rest = &after[ESCAPE_BYTES..];
                continue;
            }
            repaired = true;
            rest = after;
            match self.high.take().and_then(|high| combined(high, half)) {
                Some(whole) => out.push(whole),
                None if half < 0xdc00 => self.high = Some(half),
                None => out.push(char::REPLACEMENT_CHARACTER),
            }
        }
        out.push_str(rest);
        repaired.then_some(out)
    }
}

/// The code unit of the escape at the start of a text.
fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix(ESCAPE)?.get(..ESCAPE_BYTES - ESCAPE.len())?;
    let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_number.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

fn combined(high: u16, low: u16) -> Option<char> {
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
    fn split_pairs_are_joined_and_other_text_is_unchanged() {
        check(&[(r#"a\ud83d""#, Some("a\"")), (r#"\uDE80b""#, Some("🚀b\""))]); // P21
        check(&[(r"\ud83d\ude80 \u00e9 \\ud83d \n", None)]);
        check(&[(r"\ude80x", Some("\u{fffd}x"))]);
        check(&[(r"\ud83d", Some("")), (r"\ud83d", Some("")), (r"\ude80", Some("🚀"))]);
        check(&[(r"\ud83d\ud83d\ude80", Some("🚀"))]);
        check(&[("no escape", None), (r"\", None), (r"\u12", None), (r"\é", None), (r"\u+123", None)]);
    }
}
