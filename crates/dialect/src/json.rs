//! JSON texts, read fast. Only what cannot be read is read once more, to find the place at fault: keeping track of
//! the place costs, and most texts are good.

use serde::Deserialize;
use serde::de::Error;
use serde_json::Value;

/// Why a JSON text could not be read.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// Where, as in `messages[0].role`; `None` where it is the text as a whole.
    pub(crate) place: Option<String>,
    pub(crate) cause: serde_json::Error,
}

/// Reads a text that holds one value and nothing after it.
pub(crate) fn read<'de, T: Deserialize<'de>>(text: &'de [u8]) -> Result<T, Unreadable> {
    // Checked once for the whole text, letters need not be checked string by string.
    let text =
        std::str::from_utf8(text).map_err(|_| Unreadable { place: None, cause: wrong_letter(text) })?;
    serde_json::from_str(text).map_err(|cause| {
        let mut json = serde_json::Deserializer::from_str(text);
        match serde_path_to_error::deserialize::<_, T>(&mut json) {
            // The value was good, so it is what follows.
            Ok(_) => Unreadable { place: None, cause },
            Err(error) => {
                let place = Some(error.path().to_string()).filter(|place| place != "." && place != "?");
                Unreadable { place, cause: error.into_inner() }
            }
        }
    })
}

/// Says where a text stops being UTF-8.
fn wrong_letter(text: &[u8]) -> serde_json::Error {
    match serde_json::from_slice::<Value>(text) {
        Err(cause) => cause,
        Ok(_) => Error::custom("the text is not UTF-8"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Outer {
        #[serde(rename = "inner")]
        _inner: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    struct Inner {
        #[serde(rename = "number")]
        _number: u8,
    }

    #[track_caller]
    fn check(text: &str, place: Option<&str>, cause: &str) {
        let error = read::<Outer>(text.as_bytes()).expect_err("a bad text");
        assert_eq!(error.place.as_deref(), place, "{text}");
        assert!(error.cause.to_string().starts_with(cause), "{text}: {}", error.cause);
    }

    #[test]
    fn the_place_at_fault_is_named() {
        check(
            r#"{"inner": [{"number": 1}, {"number": "x"}]}"#,
            Some("inner[1].number"),
            "invalid type: string",
        );
        check(r#"{"inner": [{}]}"#, Some("inner[0]"), "missing field `number`");
        check("{}", None, "missing field `inner`");
        check("{", None, "EOF while parsing");
        check(r#"{"inner": []} x"#, None, "trailing characters");
        let error = read::<Outer>(b"{\"other\": \"\xff\"}").expect_err("no UTF-8");
        assert_eq!(error.cause.to_string(), "invalid unicode code point at line 1 column 12");
    }

    #[test]
    fn a_good_text_is_read() {
        assert!(read::<Outer>(br#" {"inner": [{"number": 1}]} "#).is_ok());
    }
}
