//! Finds what somebody meant when they wrote a name that does not exist.

/// The known name closest to `wrong`, if one is close enough to be a slip of the fingers or goes on from it.
fn nearest<'k>(wrong: &str, known: impl IntoIterator<Item = &'k str> + Clone) -> Option<&'k str> {
    let longer = || known.clone().into_iter().find(|name| wrong.len() >= 3 && name.starts_with(wrong));
    known
        .clone()
        .into_iter()
        .map(|name| (distance(&wrong.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= tolerance(wrong, name))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
        .or_else(longer)
}

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

/// One slip in three letters still reads as the same word.
fn tolerance(wrong: &str, name: &str) -> usize {
    (wrong.chars().count().max(name.chars().count()) / 3).max(1)
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, &letter) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &other) in right.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != other);
            let mut best = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && letter == right[column - 1] && left[row - 1] == other;
            if swapped {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[right.len()]
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
            ("upstream", "upstreams"), ("ups", "upstreams"),
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
