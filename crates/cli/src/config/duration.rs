//! Parses durations: `2m`, `30s`, `500ms`.

use std::time::Duration;

/// No timeout of the gateway is longer than a day.
const MAX_DURATION: Duration = Duration::from_hours(24);

/// Parses a whole number and its unit. The error says what to write.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    const FORM: &str = "write a whole number and a unit: \"500ms\", \"30s\", \"2m\" or \"1h\"";
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| FORM)?;
    let milliseconds_per_unit = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(FORM),
    };
    let milliseconds = number.checked_mul(milliseconds_per_unit).ok_or("it may be at most 24h")?;
    match Duration::from_millis(milliseconds) {
        Duration::ZERO => Err("it must be greater than zero"),
        duration if duration > MAX_DURATION => Err("it may be at most 24h"),
        duration => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_parsed() {
        for (text, milliseconds) in [("500ms", 500), ("30s", 30_000), ("2m", 120_000), ("1h", 3_600_000)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "5",
            "s",
            "1.5s",
            "-1s",
            "5 s",
            "5d",
            "25h",
            "0s",
            "99999999999999999999s",
            "9999999999999999h",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
