//! Parses sizes: `128B`, `512KiB`, `32MiB`.

const KIB: usize = 1024;

/// More memory than one request should take.
const MAX_SIZE: usize = KIB * KIB * KIB;

/// Parses a whole number and its unit into bytes. The error says what to write.
pub(crate) fn parse_size(text: &str) -> Result<usize, &'static str> {
    const FORM: &str = "write a whole number and a unit: \"128B\", \"512KiB\", \"32MiB\" or \"1GiB\"";
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: usize = number.parse().map_err(|_| FORM)?;
    let bytes_per_unit = match unit {
        "B" => 1,
        "KiB" => KIB,
        "MiB" => KIB * KIB,
        "GiB" => KIB * KIB * KIB,
        _ => return Err(FORM),
    };
    match number.checked_mul(bytes_per_unit) {
        Some(0) => Err("it must be greater than zero"),
        Some(bytes) if bytes <= MAX_SIZE => Ok(bytes),
        _ => Err("it may be at most 1GiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_parsed() {
        for (text, bytes) in
            [("128B", 128), ("1KiB", 1024), ("512KiB", 524_288), ("32MiB", 33_554_432), ("1GiB", MAX_SIZE)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in
            ["", "5", "MiB", "1.5MiB", "-1MiB", "5 MiB", "5MB", "2GiB", "0KiB", "99999999999999999999KiB"]
        {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
