//! Finds what somebody meant when they wrote a name that does not exist.

/// Fewer letters begin too many names.
const SHORTEST_BEGINNING: usize = 3;

/// `; did you mean `x`?`, or else what there is to choose from.
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

/// The known name closest to `wrong`: a slip of the fingers, or the beginning of the name.
fn nearest<'k>(wrong: &str, known: impl IntoIterator<Item = &'k str> + Clone) -> Option<&'k str> {
    let slip = toolgate_backend::nearest(wrong, known.clone()).into_iter().next();
    slip.or_else(|| {
        known.into_iter().find(|name| wrong.len() >= SHORTEST_BEGINNING && name.starts_with(wrong))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 5] = ["listen", "store", "upstreams", "models", "keys"];

    #[test]
    fn slips_are_recognised() {
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
    fn a_different_word_is_not_a_slip() {
        for wrong in ["port", "database", "x", ""] {
            assert_eq!(nearest(wrong, KEYS), None, "{wrong}");
        }
    }

    #[test]
    fn without_a_near_name_the_known_ones_are_listed() {
        assert_eq!(suggestion("zzz", ["a1", "b2"], "keys here"), "; the keys here are `a1` and `b2`");
        assert_eq!(suggestion("zzz", ["abc"], "keys here"), "; the only one here is `abc`");
        assert_eq!(suggestion("zzz", [], "upstreams"), "; there are no upstreams");
    }
}
