//! Text of an agent, made safe for a terminal: what a person approves must be what they see.

use std::fmt::Write;

/// Replaces every character that is invisible, moves the cursor or changes the order of the text by `‹U+202E›`. Lines stay
/// lines.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character == '\n' || !is_deceptive(character) {
            shown.push(character);
        } else {
            write!(shown, "‹U+{:04X}›", u32::from(character)).unwrap_or_default();
        }
    }
    shown
}

/// True if the text contains a character that [`visible`] replaces.
pub(crate) fn has_deceptive(text: &str) -> bool {
    text.chars().any(|character| character != '\n' && is_deceptive(character))
}

fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(visible(text), expected);
        assert_eq!(has_deceptive(text), text != expected);
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        check("echo 'grün 🦀 日本'\ncat x | head -3", "echo 'grün 🦀 日本'\ncat x | head -3");
    }

    #[test]
    fn controls_and_invisible_characters_are_shown() {
        check("a\x1b[2Jb\rc\td\x00", "a‹U+001B›[2Jb‹U+000D›c‹U+0009›d‹U+0000›");
        check("rm \u{202e}txt.\u{200b}x\u{feff}\u{e0041}", "rm ‹U+202E›txt.‹U+200B›x‹U+FEFF›‹U+E0041›");
        check("\u{9b}31m\u{2028}", "‹U+009B›31m‹U+2028›");
    }
}
