//! The last fields of a JSON object, read without what stands before them: hosts say what a reply cost after the reply
//! itself, which may be long.

use memchr::memmem::Finder;

use super::Skim;

/// How far from its end a text is searched. What hosts say after a reply is a third of this.
const REACH_BYTES: usize = 1024;

/// The end of a text that is one object, where its last fields stand.
pub(crate) struct Ending<'t> {
    bytes: &'t [u8],
}

impl<'t> Ending<'t> {
    pub(crate) fn of(text: &'t [u8]) -> Self {
        Self { bytes: &text[text.len().saturating_sub(REACH_BYTES)..] }
    }

    /// Whether these bytes stand here, and what comes after them first.
    pub(crate) fn after(&self, finder: &Finder<'_>) -> Option<&'t [u8]> {
        let at = finder.find(self.bytes)?;
        Some(&self.bytes[at + finder.needle().len()..])
    }

    /// Shows `field` the name of the last field that has this name (in quotes), and of all after it; it must take the
    /// value of each. `None` unless they are the last fields of the whole object: that is certain where the text is
    /// JSON. A quote within a string has a backslash before it, so these quotes are a name's own; and what closes
    /// with the end of the text is the object that the text is.
    pub(crate) fn fields_from(
        &self,
        name: &Finder<'_>,
        mut field: impl FnMut(&mut Skim<'t>, &'t str) -> Option<()>,
    ) -> Option<()> {
        let at = name.find_iter(self.bytes).last()?;
        if at == 0 || self.bytes[at - 1] == b'\\' {
            return None;
        }
        let text = std::str::from_utf8(&self.bytes[at..]).ok()?;
        let mut skim = Skim { text, at: 0 };
        skim.members(&mut field)?;
        skim.pass_blanks();
        (skim.at == text.len()).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::value::RawValue;

    use super::*;
    use crate::skim::tests::on_any_text;

    fn usage(text: &[u8]) -> Option<&str> {
        let mut found = None;
        Ending::of(text).fields_from(&Finder::new("\"usage\""), |skim, name| {
            let value = skim.value()?;
            if name == "usage" {
                found = Some(value);
            }
            Some(())
        })?;
        found
    }

    #[test]
    fn what_is_found_in_json_is_a_field_of_the_whole() {
        on_any_text(|text| {
            let Ok(all) = serde_json::from_slice::<HashMap<String, &RawValue>>(text) else { return };
            if let Some(found) = usage(text) {
                assert_eq!(Some(found), all.get("usage").map(|value| value.get()));
            }
        });
    }

    #[test]
    fn it_is_found_behind_long_texts_and_before_other_fields() {
        let long = "word \\\"usage\\\" ".repeat(1000);
        let check = |fields: &str, expect: Option<&str>| {
            let text = format!(r#"{{"content":"{long}",{fields}}}"#);
            assert_eq!(usage(text.as_bytes()), expect, "{fields}");
        };
        check(r#""usage":{"a":1}"#, Some(r#"{"a":1}"#));
        check(r#""usage" : {"a":1} , "b":[{"c":"}"}]"#, Some(r#"{"a":1}"#));
        check(r#""usage":1,"usage":2"#, Some("2"));
        check(r#""b":{"usage":1}"#, None);
        check(r#""b":[{"usage":1}]"#, None);
        check(r#""usage":1,"b":{"usage":2}"#, None);
        check(r#""b":"usage""#, None);
        check(r#""b\"usage":1"#, None);
        check(&format!(r#""usage":1,"b":"{long}""#), None);
        assert_eq!(usage(br#""usage":1}"#), None);
    }
}
