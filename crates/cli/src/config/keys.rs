//! `[[keys]]`: the callers, identified by the SHA-256 of their keys.

use toolgate_gateway::config::{Key, ModelPattern};

use super::problem::{Located, ReadContext};
use super::section::{ListForm, Section};

/// Reads all keys. Names and hashes must be unique.
pub(crate) fn read_all(sections: &[Section<'_>], context: &mut ReadContext<'_>) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for section in sections {
        let Some(key) = read(section, context) else { continue };
        if let Some(twin) = keys.iter().find(|other| other.name == key.name || other.sha256 == key.sha256) {
            let what = if twin.name == key.name { "name" } else { "sha256" };
            let problem =
                format!("two [[keys]] have the same {what} (`{}`): change or remove one", twin.name);
            context.error(section.key_position(what).unwrap_or(section.position()), problem);
            continue;
        }
        keys.push(key);
    }
    keys
}

fn read(section: &Section<'_>, context: &mut ReadContext<'_>) -> Option<Key> {
    section.expect_keys(&["name", "sha256", "models"], context);
    if section.key_position("name").is_none() {
        section.missing("name = \"alice\"", context);
    }
    if section.key_position("sha256").is_none() {
        section.missing("sha256 = \"…\"", context);
    }
    let name = section.text("name", "alice", context);
    let sha256 = section.text("sha256", "64 hexadecimal digits", context);
    let models = section.texts("models", ListForm::Many, context);
    let name = name.filter(|name| {
        let usable = !name.value.trim().is_empty() && !name.value.chars().any(char::is_control);
        if !usable {
            context.error(name.position, "`name` of a key must be visible text, such as \"alice\"");
        }
        usable
    });
    let sha256 = sha256.and_then(|digits| read_hash(&digits, context));
    let models = match models {
        Some(models) => models.into_iter().map(|model| ModelPattern::new(model.value)).collect(),
        None => vec![ModelPattern::new("*")],
    };
    Some(Key { name: name?.value, sha256: sha256?, models })
}

// The message does not contain the text, which may be the key itself, pasted by mistake.
fn read_hash(digits: &Located<String>, context: &mut ReadContext<'_>) -> Option<[u8; 32]> {
    let hash = parse_hash(&digits.value);
    if hash.is_none() {
        context.error(
            digits.position,
            "`sha256` must be 64 hexadecimal digits: the hash that `toolgate keys new NAME` prints, not the key",
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
    // `from_str_radix` accepts a sign.
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(hash)
}
