//! Suggestions for mistyped names.

/// The maximum number of suggestions.
const MAX_OFFERED: usize = 3;

/// Longer names are not compared: the cost is quadratic in the length, and clients choose the length.
const MAX_COMPARED_CHARS: usize = 128;

/// The known names closest to `wanted`, nearest first; empty if none is close.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted: Vec<char> = wanted.chars().take(MAX_COMPARED_CHARS + 1).collect();
    if wanted.len() > MAX_COMPARED_CHARS {
        return Vec::new();
    }
    let farthest = (wanted.len() / 3).max(2);
    let mut close: Vec<(usize, &str)> = known
        .into_iter()
        .filter(|name| name.len() <= MAX_COMPARED_CHARS)
        .map(|name| (distance(&wanted, name), name))
        .filter(|(distance, _)| *distance <= farthest)
        .collect();
    close.sort_unstable();
    close.truncate(MAX_OFFERED);
    close.into_iter().map(|(_, name)| name).collect()
}

/// The edit distance (insertions, deletions, substitutions), ignoring ASCII case.
fn distance(wanted: &[char], name: &str) -> usize {
    let mut row: Vec<usize> = (0..=wanted.len()).collect();
    for (line, letter) in name.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, other) in wanted.iter().enumerate() {
            let changed = usize::from(!letter.eq_ignore_ascii_case(other));
            let cost = (diagonal + changed).min(row[column] + 1).min(row[column + 1] + 1);
            diagonal = std::mem::replace(&mut row[column + 1], cost);
        }
    }
    row[wanted.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_the_name() {
        let known = ["gpt-4o", "gpt-4o-mini", "claude-sonnet-5", "demo"];
        assert_eq!(nearest("gpt4o-mini", known), ["gpt-4o-mini"]);
        assert_eq!(nearest("dmeo", known), ["demo"]);
        assert_eq!(nearest("GPT-4O", known), ["gpt-4o"]);
    }

    #[test]
    fn a_different_name_finds_nothing() {
        assert!(nearest("mistral-large", ["gpt-4o", "demo"]).is_empty());
        assert!(nearest(&"x".repeat(100_000), ["gpt-4o", "demo"]).is_empty());
    }

    #[test]
    fn distance_counts_edits() {
        let distance_of = |a: &str, b| distance(&a.chars().collect::<Vec<_>>(), b);
        assert_eq!(distance_of("", "abc"), 3);
        assert_eq!(distance_of("abc", "abc"), 0);
        assert_eq!(distance_of("kitten", "sitting"), 3);
    }
}
