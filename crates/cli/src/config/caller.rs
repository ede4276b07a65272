//! `[[keys]]`: who may call, known by the SHA-256 of their key.

use toolgate_gateway::config::{Key, ModelPattern};

use super::problem::{Placed, Reading};
use super::section::{ListForm, Section};

/// Reads every key and sees to it that no two share a name or a hash.
pub(crate) fn read_all(sections: &[Section<'_>], reading: &mut Reading<'_>) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for section in sections {
        let Some(key) = read(section, reading) else { continue };
        if let Some(twin) = keys.iter().find(|other| other.name == key.name || other.sha256 == key.sha256) {
            let what = if twin.name == key.name { "name" } else { "sha256" };
            let problem =
                format!("two [[keys]] have the same {what} (`{}`): change or remove one", twin.name);
            reading.error(section.key_place(what).unwrap_or(section.place()), problem);
            continue;
        }
        keys.push(key);
    }
    keys
}

fn read(section: &Section<'_>, reading: &mut Reading<'_>) -> Option<Key> {
    section.expect_keys(&["name", "sha256", "models"], reading);
    if section.key_place("name").is_none() {
        section.missing("name = \"alice\"", reading);
    }
    if section.key_place("sha256").is_none() {
        section.missing("sha256 = \"…\"", reading);
    }
    let name = section.text("name", "alice", reading);
    let sha256 = section.text("sha256", "64 hexadecimal digits", reading);
    let models = section.texts("models", ListForm::Many, reading);
    let name = name.filter(|name| {
        let usable = !name.value.trim().is_empty() && !name.value.chars().any(char::is_control);
        if !usable {
            reading.error(name.place, "`name` of a key must be a visible text, such as \"alice\"");
        }
        usable
    });
    let sha256 = sha256.and_then(|digits| read_hash(&digits, reading));
    let models = match models {
        Some(models) => models.into_iter().map(|model| ModelPattern::new(model.value)).collect(),
        None => vec![ModelPattern::new("*")],
    };
    Some(Key { name: name?.value, sha256: sha256?, models })
}

// A text of the wrong form may be the key itself, pasted by mistake: it is not repeated.
fn read_hash(digits: &Placed<String>, reading: &mut Reading<'_>) -> Option<[u8; 32]> {
    let hash = parse_hash(&digits.value);
    if hash.is_none() {
        reading.error(
            digits.place,
            "`sha256` must be 64 hexadecimal digits, the hash and not the key: `toolgate keys new NAME` prints it",
        );
    }
    hash
}

fn parse_hash(digits: &str) -> Option<[u8; 32]> {
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    let mut hash = [0; 32];
    for (index, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[index * 2..index * 2 + 2], 16).ok()?;
    }
    // `from_str_radix` takes a sign.
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(hash)
}
