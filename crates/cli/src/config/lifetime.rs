//! Parses how long data is kept: `12h`, `30d`.

use std::time::Duration;

/// Ten years: nobody keeps conversations longer, and times stay far from overflowing.
const MAX_HOURS: u64 = 3650 * 24;

/// Parses a whole number of hours or days. The error says what to write.
pub(crate) fn parse_lifetime(text: &str) -> Result<Duration, &'static str> {
    const FORM: &str = "write a whole number of hours or days: \"12h\" or \"30d\"";
    const TOO_LONG: &str = "it may be at most 3650d";
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| FORM)?;
    let hours_per_unit = match unit {
        "h" => 1,
        "d" => 24,
        _ => return Err(FORM),
    };
    match number.checked_mul(hours_per_unit).ok_or(TOO_LONG)? {
        0 => Err("it must be at least 1h; to keep nothing, write `sessions = \"none\"`"),
        hours if hours > MAX_HOURS => Err(TOO_LONG),
        hours => Ok(Duration::from_hours(hours)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_and_days_are_parsed() {
        for (text, hours) in [("1h", 1), ("36h", 36), ("30d", 720), ("3650d", MAX_HOURS)] {
            assert_eq!(parse_lifetime(text), Ok(Duration::from_hours(hours)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in
            ["", "5", "d", "1.5d", "-1d", "5 d", "10m", "0h", "0d", "3651d", "99999999999999999999d", "2w"]
        {
            assert!(parse_lifetime(text).is_err(), "{text}");
        }
        assert!(parse_lifetime("1000000000000000000d").is_err());
    }
}
