//! Model names with stars: `claude-*` stands for every name that begins so.

use std::fmt;

/// A model's name, or a name in which each `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModelPattern(String);

impl ModelPattern {
    /// Takes the pattern as it is: every text is one.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// The pattern.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True where it stands for one name only.
    pub fn is_exact(&self) -> bool {
        !self.0.contains('*')
    }

    /// True if `name` is meant.
    pub fn matches(&self, name: &str) -> bool {
        if self.0 == "*" {
            // Most callers may use everything.
            return true;
        }
        let mut pieces = self.0.split('*');
        // `split` always gives a first piece.
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
    fn a_name_without_a_star_is_only_itself() {
        check("gpt-4o", &["gpt-4o"], &["gpt-4o-mini", "gpt-4", ""]);
    }

    #[test]
    fn a_star_stands_for_any_text() {
        check("*", &["", "x", "a/b"], &[]);
        check("claude-*", &["claude-", "claude-sonnet"], &["claude", "my-claude-x"]);
        check("*-mini", &["gpt-4o-mini", "-mini"], &["mini"]);
        check("a*b*c", &["abc", "a1b2c", "abbc"], &["ac", "acb", "ab"]);
    }

    #[test]
    fn start_and_end_may_not_share_letters() {
        check("ab*ba", &["abba", "abxba"], &["aba"]);
    }
}
