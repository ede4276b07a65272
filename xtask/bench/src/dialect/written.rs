//! A call that a model writes as text, because it knows no other way: after the trigger that its prompt teaches.

use memchr::memmem;

use super::TOOL_NAME;

const PREFIX: &str = "<<CALL_";
const SUFFIX: &str = ">>";
const LETTERS: usize = 10;

/// How many characters a model says at a time.
const PIECE: usize = 4;

/// The letters of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Trigger([u8; LETTERS]);

impl Trigger {
    /// For a request that teaches none, so that the relay gets the same text.
    pub(crate) const UNTAUGHT: Self = Self(*b"k3f9q2ab7c");

    /// The trigger that a request's body teaches.
    pub(crate) fn taught_in(body: &[u8]) -> Option<Self> {
        let start = memmem::find(body, PREFIX.as_bytes())? + PREFIX.len();
        let letters = body.get(start..start + LETTERS)?;
        body[start + LETTERS..].starts_with(SUFFIX.as_bytes()).then_some(())?;
        letters.try_into().ok().map(Self)
    }

    /// The call, a few characters a piece.
    pub(super) fn pieces(self) -> Vec<String> {
        let letters = String::from_utf8_lossy(&self.0);
        let text = format!(
            "\n{PREFIX}{letters}{SUFFIX}\n<invoke name=\"{TOOL_NAME}\">\n<parameter name=\"city\">Paris</parameter>\n</invoke>"
        );
        let letters: Vec<char> = text.chars().collect();
        letters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taught_trigger_is_the_one_that_is_written() {
        let body = br#"{"content":"write <<CALL_abcdefghij>> by itself"}"#;
        let trigger = Trigger::taught_in(body).unwrap();
        assert!(trigger.pieces().concat().starts_with("\n<<CALL_abcdefghij>>\n<invoke"));
        assert_eq!(Trigger::taught_in(b"<<CALL_short>>"), None);
        assert_eq!(Trigger::taught_in(b"nothing"), None);
    }
}
