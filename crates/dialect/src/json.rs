//! JSON parsing with error paths. Tracking the path is slow, so a text is parsed without it first and only parsed again,
//! with the path, if that fails.

use serde::Deserialize;
use serde::de::Error;
use serde_json::Value;

/// Why a JSON text could not be parsed.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// The path of the value at fault, such as `messages[0].role`; `None` if it is the whole text.
    pub(crate) path: Option<String>,
    pub(crate) cause: serde_json::Error,
}

/// Parses a text that is exactly one JSON value.
pub(crate) fn read<'de, T: Deserialize<'de>>(text: &'de [u8]) -> Result<T, Unreadable> {
    // One UTF-8 check for the whole text saves a check per string.
    let text = std::str::from_utf8(text).map_err(|_| Unreadable { path: None, cause: utf8_error(text) })?;
    serde_json::from_str(text).map_err(|cause| {
        let mut json = serde_json::Deserializer::from_str(text);
        match serde_path_to_error::deserialize::<_, T>(&mut json) {
            // The value itself is valid, so trailing characters are at fault.
            Ok(_) => Unreadable { path: None, cause },
            Err(error) => {
                let path = Some(error.path().to_string()).filter(|path| path != "." && path != "?");
                Unreadable { path, cause: error.into_inner() }
            }
        }
    })
}

/// The error that names the position of the first byte that is not UTF-8.
fn utf8_error(text: &[u8]) -> serde_json::Error {
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
    fn check(text: &str, path: Option<&str>, cause: &str) {
        let error = read::<Outer>(text.as_bytes()).expect_err("an invalid text");
        assert_eq!(error.path.as_deref(), path, "{text}");
        assert!(error.cause.to_string().starts_with(cause), "{text}: {}", error.cause);
    }

    #[test]
    fn errors_carry_the_path_of_the_value() {
        check(
            r#"{"inner": [{"number": 1}, {"number": "x"}]}"#,
            Some("inner[1].number"),
            "invalid type: string",
        );
        check(r#"{"inner": [{}]}"#, Some("inner[0]"), "missing field `number`");
        check("{}", None, "missing field `inner`");
        check("{", None, "EOF while parsing");
        check(r#"{"inner": []} x"#, None, "trailing characters");
        let error = read::<Outer>(b"{\"other\": \"\xff\"}").expect_err("invalid UTF-8");
        assert_eq!(error.cause.to_string(), "invalid unicode code point at line 1 column 12");
    }

    #[test]
    fn a_valid_text_is_parsed() {
        assert!(read::<Outer>(br#" {"inner": [{"number": 1}]} "#).is_ok());
    }
}
