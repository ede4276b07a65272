//! `toolgate keys new NAME`: creates a key and prints it once, with its lines for the config.

use std::io::{self, Write};

use anyhow::Context;
use sha2::{Digest, Sha256};

/// 256 random bits cannot be guessed, so a fast hash is safe.
const RANDOM_BYTES: usize = 32;

/// Lets people and secret scanners recognize a leaked key.
const PREFIX: &str = "tg-";

/// Creates a key and prints it with its config lines.
pub(crate) fn new(name: &str, out: &mut dyn Write) -> anyhow::Result<()> {
    anyhow::ensure!(
        !name.trim().is_empty() && !name.chars().any(char::is_control),
        "a key needs a visible name: toolgate keys new alice"
    );
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random).context("creating a key: the system's random number generator failed")?;
    write_key(name, &format!("{PREFIX}{}", hex(&random)), out).context("writing the key")
}

fn write_key(name: &str, key: &str, out: &mut dyn Write) -> io::Result<()> {
    let quoted = toml::Value::from(name);
    writeln!(out, "The key of {name}. It is shown only once and stored nowhere:\n\n{key}\n")?;
    writeln!(out, "Add these lines to your config and restart toolgate:\n")?;
    writeln!(out, "[[keys]]\nname = {quoted}\nsha256 = \"{}\"", hex(&Sha256::digest(key.as_bytes())))?;
    writeln!(out, "models = [\"*\"]")
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap_or_default();
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str) -> String {
        let mut out = Vec::new();
        new(name, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_printed_lines_match_the_key() {
        let text = written("al\"ice");
        let key = text.lines().find(|line| line.starts_with(PREFIX)).unwrap();
        let config: toml::Table = text[text.find("[[keys]]").unwrap()..].parse().unwrap();
        let entry = &config["keys"][0];
        assert_eq!(entry["name"].as_str(), Some("al\"ice"));
        assert_eq!(entry["sha256"].as_str(), Some(hex(&Sha256::digest(key)).as_str()));
        assert_eq!(key.len(), PREFIX.len() + RANDOM_BYTES * 2);
    }

    #[test]
    fn every_key_is_different() {
        assert_ne!(written("a"), written("a"));
    }

    #[test]
    fn a_key_without_a_name_is_refused() {
        assert!(new(" ", &mut Vec::new()).is_err());
    }
}
