//! Sizes as people write them: `512KiB`, `32MiB`.

const KIB: usize = 1024;

/// More than one request may take of a machine's memory.
const LARGEST: usize = KIB * KIB * KIB;

/// Reads a whole number and its unit as a number of bytes; the error says how to write it.
pub(crate) fn parse_size(text: &str) -> Result<usize, &'static str> {
    const FORM: &str = "write a whole number and a unit: \"512KiB\", \"32MiB\" or \"1GiB\"";
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: usize = number.parse().map_err(|_| FORM)?;
    let bytes_per_unit = match unit {
        "KiB" => KIB,
        "MiB" => KIB * KIB,
        "GiB" => KIB * KIB * KIB,
        _ => return Err(FORM),
    };
    match number.checked_mul(bytes_per_unit) {
        Some(0) => Err("it must be larger than zero"),
        Some(bytes) if bytes <= LARGEST => Ok(bytes),
        _ => Err("it may be at most 1GiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        for (text, bytes) in [("1KiB", 1024), ("512KiB", 524_288), ("32MiB", 33_554_432), ("1GiB", LARGEST)] {
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
