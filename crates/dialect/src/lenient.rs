//! Numbers as clients send them and hosts accept them: `1000.0` and `"1000"` for 1000, and `-1` for no limit.

use serde::de::{Deserialize, Deserializer, Error, Unexpected};
use serde_json::{Number, Value};

/// Reads a number or a string with a number in it.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Number>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::Number(number) => Ok(Some(number)),
        Value::String(text) => match text.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(D::Error::invalid_type(Unexpected::Str(&text), &"a number")),
        },
        Value::Bool(flag) => Err(D::Error::invalid_type(Unexpected::Bool(flag), &"a number")),
        Value::Array(_) => Err(D::Error::invalid_type(Unexpected::Seq, &"a number")),
        Value::Object(_) => Err(D::Error::invalid_type(Unexpected::Map, &"a number")),
    }
}

/// Reads a whole number. A negative one means that there is no limit.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = number(deserializer)? else { return Ok(None) };
    match (number.as_u64(), number.as_f64()) {
        (Some(count), _) => Ok(Some(count)),
        (None, Some(value)) if value < 0.0 => Ok(None),
        // Values above 2^53 are no limits that a host knows.
        (None, Some(value)) if value.fract() == 0.0 && value < 9_007_199_254_740_992.0 => {
            Ok(format!("{value:.0}").parse().ok())
        }
        (None, value) => Err(D::Error::invalid_value(
            value.map_or(Unexpected::Other("number"), Unexpected::Float),
            &"a whole number",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_every_accepted_form_are_read() {
        let check = |text: &str, expect_count: Option<u64>, expect_number: Option<&str>| {
            let json = &mut serde_json::Deserializer::from_str(text);
            assert_eq!(count(json).unwrap(), expect_count, "{text}");
            let json = &mut serde_json::Deserializer::from_str(text);
            assert_eq!(number(json).unwrap().map(|number| number.to_string()).as_deref(), expect_number);
        };
        check("5", Some(5), Some("5"));
        check("5.0", Some(5), Some("5.0"));
        check(r#""5""#, Some(5), Some("5"));
        check("-1", None, Some("-1"));
        check("null", None, None);
    }

    #[test]
    fn other_values_are_rejected() {
        let check = |text: &str, expect: &str| {
            let json = &mut serde_json::Deserializer::from_str(text);
            assert!(count(json).unwrap_err().to_string().starts_with(expect), "{text}");
        };
        check("0.5", "invalid value: floating point `0.5`, expected a whole number");
        check(r#""ten""#, "invalid type: string \"ten\", expected a number");
        check("true", "invalid type: boolean `true`, expected a number");
        check("[]", "invalid type: sequence, expected a number");
        check("{}", "invalid type: map, expected a number");
    }
}
