//! Model names with wildcards: `claude-*` matches every name that starts with `claude-`.

use std::fmt;

/// A model name in which each `*` matches any text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModelPattern(String);

impl ModelPattern {
    /// Wraps the pattern; every string is a valid one.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// The pattern.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if it has no wildcard.
    pub fn is_exact(&self) -> bool {
        !self.0.contains('*')
    }

    /// True if the pattern matches `name`.
    pub fn matches(&self, name: &str) -> bool {
        if self.0 == "*" {
            // Fast path: most callers may use every model.
            return true;
        }
        let mut pieces = self.0.split('*');
        // `split` always yields a first piece.
        let Some(mut rest) = pieces.next().and_then(|start| name.strip_prefix(start)) else { return false };
        let Some(last) = pieces.next_back() else { return rest.is_empty() };
        for piece in pieces {
            let Some(found) = rest.find(piece) else { return false };
            rest = &rest[found + piece.len()..];
        }
        rest.ends_with(last)
    }
}

impl fmt::Display for ModelPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::ModelPattern;

    #[track_caller]
    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let pattern = ModelPattern::new(pattern);
        for name in matching {
            assert!(pattern.matches(name), "{pattern} should match {name}");
        }
        for name in others {
            assert!(!pattern.matches(name), "{pattern} should not match {name}");
        }
    }

    #[test]
    fn a_name_without_a_star_matches_only_itself() {
        check("gpt-4o", &["gpt-4o"], &["gpt-4o-mini", "gpt-4", ""]);
    }

    #[test]
    fn a_star_matches_any_text() {
        check("*", &["", "x", "a/b"], &[]);
        check("claude-*", &["claude-", "claude-sonnet"], &["claude", "my-claude-x"]);
        check("*-mini", &["gpt-4o-mini", "-mini"], &["mini"]);
        check("a*b*c", &["abc", "a1b2c", "abbc"], &["ac", "acb", "ab"]);
    }

    #[test]
    fn prefix_and_suffix_may_not_overlap() {
        check("ab*ba", &["abba", "abxba"], &["aba"]);
    }
}
