//! Escapes control characters in log lines: text from a client or a host must not control a terminal or forge a line.

use std::borrow::Cow;

/// True if the line is visible ASCII up to its final newline, as nearly every line is.
pub(crate) fn is_plain(line: &[u8]) -> bool {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    text.iter().all(|byte| (b' '..=b'~').contains(byte))
}

/// Escapes all control characters of a line except its final newline and the colours that the formatter adds.
pub(crate) fn escape_controls(line: &str) -> Cow<'_, str> {
    let (text, newline) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
    if !text.contains(char::is_control) {
        return Cow::Borrowed(line);
    }
    let mut escaped = String::with_capacity(line.len());
    let mut rest = text;
    while let Some(at) = rest.find(char::is_control) {
        escaped.push_str(&rest[..at]);
        rest = &rest[at..];
        let colour = colour_code(rest);
        escaped.push_str(colour);
        rest = &rest[colour.len()..];
        if colour.is_empty() {
            let mut characters = rest.chars();
            escaped.extend(characters.next().into_iter().flat_map(char::escape_default));
            rest = characters.as_str();
        }
    }
    escaped.push_str(rest);
    escaped.push_str(newline);
    Cow::Owned(escaped)
}

/// The colour code (`ESC [ 1;31 m`) that the text begins with, or nothing.
fn colour_code(text: &str) -> &str {
    let end = text
        .strip_prefix("\x1b[")
        .map(|numbers| numbers.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'))
        .and_then(|end| end.strip_prefix('m'));
    end.map_or("", |end| &text[..text.len() - end.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        assert_eq!(escape_controls(line), expected);
    }

    #[test]
    fn control_characters_are_escaped() {
        check("turn é 🦀\n", "turn é 🦀\n");
        check("a\x1b[2J\u{9b}\x07b\n", "a\\u{1b}[2J\\u{9b}\\u{7}b\n");
        check("a\nERROR forged\r\n", "a\\nERROR forged\\r\n");
        check("\x1b[1;", "\\u{1b}[1;");
    }

    #[test]
    fn colours_stay() {
        check(
            "\x1b[2mtime\x1b[0m \x1b[32m INFO\x1b[0m \x07\n",
            "\x1b[2mtime\x1b[0m \x1b[32m INFO\x1b[0m \\u{7}\n",
        );
    }
}
