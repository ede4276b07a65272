//! Suggests a known name for a misspelled one.

/// Shorter prefixes match too many names.
const MIN_PREFIX_LENGTH: usize = 3;

/// `; did you mean `x`?`, or else the list of known names.
pub(crate) fn suggestion<'k>(
    wrong: &str,
    known: impl IntoIterator<Item = &'k str> + Clone,
    kind: &str,
) -> String {
    if let Some(name) = nearest(wrong, known.clone()) {
        return format!("; did you mean `{name}`?");
    }
    let mut names: Vec<String> = known.into_iter().map(|name| format!("`{name}`")).collect();
    match names.pop() {
        None => format!("; there are no {kind}"),
        Some(only) if names.is_empty() => format!("; the only one here is {only}"),
        Some(last) => format!("; the {kind} are {} and {last}", names.join(", ")),
    }
}

/// The closest known name: one with a small edit distance, or one that begins with `wrong`.
fn nearest<'k>(wrong: &str, known: impl IntoIterator<Item = &'k str> + Clone) -> Option<&'k str> {
    let misspelled = toolgate_backend::nearest(wrong, known.clone()).into_iter().next();
    misspelled.or_else(|| {
        known.into_iter().find(|name| wrong.len() >= MIN_PREFIX_LENGTH && name.starts_with(wrong))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 5] = ["listen", "store", "upstreams", "models", "keys"];

    #[test]
    fn misspelled_names_are_recognized() {
        for (wrong, meant) in [
            ("lisen", "listen"),
            ("litsen", "listen"),
            ("model", "models"),
            ("Keys", "keys"),
            ("upstream", "upstreams"),
            ("ups", "upstreams"),
        ] {
            assert_eq!(nearest(wrong, KEYS), Some(meant), "{wrong}");
        }
    }

    #[test]
    fn a_different_word_is_not_a_misspelling() {
        for wrong in ["port", "database", "x", ""] {
            assert_eq!(nearest(wrong, KEYS), None, "{wrong}");
        }
    }

    #[test]
    fn without_a_similar_name_all_names_are_listed() {
        assert_eq!(suggestion("zzz", ["a1", "b2"], "keys here"), "; the keys here are `a1` and `b2`");
        assert_eq!(suggestion("zzz", ["abc"], "keys here"), "; the only one here is `abc`");
        assert_eq!(suggestion("zzz", [], "upstreams"), "; there are no upstreams");
    }
}
