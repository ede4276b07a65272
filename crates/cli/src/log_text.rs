//! What stands in a log line for people, written the short way where it is plain: texts and numbers.

use std::fmt::{self, Write};

/// Shows what would command a terminal instead of sending it there: names and messages come from strangers.
pub(crate) struct Harmless<'a>(pub(crate) &'a mut String);

impl Write for Harmless<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if is_plain(text, []) {
            self.0.push_str(text);
            return Ok(());
        }
        for letter in text.chars() {
            match letter {
                '\n' | '\t' => self.0.push(letter),
                _ if letter.is_ascii_control() => write!(self.0, "\\x{:02x}", u32::from(letter))?,
                _ if letter.is_control() => write!(self.0, "\\u{{{:x}}}", u32::from(letter))?,
                _ => self.0.push(letter),
            }
        }
        Ok(())
    }
}

/// True only where a text between quotes is the text itself.
pub(crate) fn needs_no_quoting(text: &str) -> bool {
    is_plain(text, [b'"', b'\\'])
}

/// Half of what a turn tells are numbers, and the formatter's way to write them is a long one.
pub(crate) fn push_number(line: &mut String, number: u64) {
    match number {
        0..10 => {}
        10..100 => line.push(digit(number / 10)),
        100..1000 => {
            line.push(digit(number / 100));
            line.push(digit(number / 10));
        }
        _ => push_number(line, number / 10),
    }
    line.push(digit(number));
}

/// The last digit of a number.
pub(crate) fn digit(number: u64) -> char {
    char::from(b'0' + (number % 10) as u8)
}

/// True if no byte of a text would command a terminal, none is beyond ASCII and none is one of `but`.
fn is_plain<const N: usize>(text: &str, but: [u8; N]) -> bool {
    const HIGHEST: u64 = in_each(0x80);
    // Eight are looked at together. One that is not plain has the highest bit of its byte set: from the beginning beyond
    // ASCII, after the subtraction below a space, after the addition if it is 0x7f. One of `but` becomes zero, and
    // takes from its neighbour when one is subtracted.
    let marks = |eight: u64| {
        let controls = eight | eight.wrapping_sub(in_each(b' ')) | eight.wrapping_add(in_each(1));
        but.iter().fold(controls, |marks, but| marks | (eight ^ in_each(*but)).wrapping_sub(in_each(1)))
    };
    let are_plain = |eight: &[u8; 8]| marks(u64::from_le_bytes(*eight)) & HIGHEST == 0;
    let bytes = text.as_bytes();
    // The last eight overlap with those before them, unless there are fewer.
    let Some(last) = bytes.last_chunk() else {
        return bytes.iter().all(|byte| (b' '..0x7f).contains(byte) && !but.contains(byte));
    };
    let (eights, _) = bytes.as_chunks();
    eights.iter().all(are_plain) && are_plain(last)
}

/// A word of eight times this byte.
const fn in_each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts with one odd letter at every place, short ones and long ones.
    fn texts() -> impl Iterator<Item = String> {
        let odd = (0..=0xa0).filter_map(char::from_u32).chain(['é', '\u{200b}', '€', '🦀']);
        let at = |odd: char, length: usize, place: usize| {
            let mut text = "x".repeat(length);
            text.insert(place, odd);
            text
        };
        let places = [(0, 0), (3, 0), (3, 3), (40, 0), (40, 7), (40, 31), (40, 40)];
        odd.flat_map(move |odd| places.map(|(length, place)| at(odd, length, place)))
    }

    #[test]
    fn a_text_that_needs_no_quoting_is_the_same_between_quotes() {
        for text in texts() {
            let quoted = format!("{text:?}");
            if needs_no_quoting(&text) {
                assert_eq!(quoted, format!("\"{text}\""));
            } else {
                assert!(quoted.contains('\\') || !text.is_ascii(), "{quoted} could be written the short way");
            }
        }
    }

    #[test]
    fn a_text_is_the_same_in_one_piece_and_letter_by_letter() {
        for text in texts() {
            let (mut whole, mut letters) = (String::new(), String::new());
            Harmless(&mut whole).write_str(&text).unwrap();
            for letter in text.chars() {
                Harmless(&mut letters).write_char(letter).unwrap();
            }
            assert_eq!(whole, letters);
            let is_harmless = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\t');
            assert!(whole.chars().all(is_harmless), "{whole:?}");
            assert_eq!(whole == text, text.chars().all(is_harmless), "{whole:?}");
        }
    }

    #[test]
    fn numbers_are_the_usual_ones() {
        let powers = (0..20).map(|power| 10_u64.pow(power));
        let numbers =
            powers.flat_map(|power| [power - 1, power, power + 1, power / 3, power.saturating_mul(7)]);
        for number in numbers.chain([u64::MAX]) {
            let mut line = String::from("n=");
            push_number(&mut line, number);
            assert_eq!(line, format!("n={number}"));
        }
    }
}
