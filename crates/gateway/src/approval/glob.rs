//! Patterns with `*`.

/// True if the text matches: `*` stands for any text, everything else for itself.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        let Some(found) = rest.find(piece) else { return false };
        rest = &rest[found + piece.len()..];
    }
    rest.ends_with(last)
}

/// True if some text matches both globs, in any letter case.
pub(super) fn may_be_same(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|text| text.to_lowercase().chars().collect::<Vec<char>>());
    // reached[i][j]: the first i letters of one and the first j of the other match the same text.
    let mut reached = vec![vec![false; other.len() + 2]; one.len() + 2];
    reached[0][0] = true;
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            if !reached[i][j] {
                continue;
            }
            let (left, right) = (one.get(i), other.get(j));
            let (left_is_star, right_is_star) = (left == Some(&'*'), right == Some(&'*'));
            reached[i + 1][j] |= left_is_star || (right_is_star && left.is_some());
            reached[i][j + 1] |= right_is_star || (left_is_star && right.is_some());
            reached[i + 1][j + 1] |= left.is_some() && left == right;
        }
    }
    reached[one.len()][other.len()]
}
