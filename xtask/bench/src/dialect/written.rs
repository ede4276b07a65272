//! A call that a model without native tools writes as text, after the trigger that its prompt defines.

use memchr::memmem;

use super::TOOL_NAME;

const PREFIX: &str = "<<CALL_";
const SUFFIX: &str = ">>";
const LETTERS: usize = 10;

/// Characters per delta.
const PIECE: usize = 4;

/// The characters of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Trigger([u8; LETTERS]);

impl Trigger {
    /// For a request that defines none, so that the relay gets the same text.
    pub(crate) const DEFAULT: Self = Self(*b"k3f9q2ab7c");

    /// The trigger that a request's body defines.
    pub(crate) fn defined_in(body: &[u8]) -> Option<Self> {
        let start = memmem::find(body, PREFIX.as_bytes())? + PREFIX.len();
        let letters = body.get(start..start + LETTERS)?;
        body[start + LETTERS..].starts_with(SUFFIX.as_bytes()).then_some(())?;
        letters.try_into().ok().map(Self)
    }

    /// The call, split into deltas.
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
    fn the_trigger_of_the_request_is_written() {
        let body = br#"{"content":"write <<CALL_abcdefghij>> by itself"}"#;
        let trigger = Trigger::defined_in(body).unwrap();
        assert!(trigger.pieces().concat().starts_with("\n<<CALL_abcdefghij>>\n<invoke"));
        assert_eq!(Trigger::defined_in(b"<<CALL_short>>"), None);
        assert_eq!(Trigger::defined_in(b"nothing"), None);
    }
}
