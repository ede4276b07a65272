//! Guesses how the next conversation will open. Most clients open all their conversations the same way, so a warm
//! process can be opened before a request claims it, and only the conversation itself remains to be sent.
//!
//! A wrong guess costs a cold start, so each miss raises the bar for the next guess.

use super::launch::Launch;
use super::opening::Setup;

/// The minimum number of equal openings in a row before guessing.
const MIN_IN_A_ROW: u32 = 2;

/// The maximum of that number: clients come and go, and one of them may use the agent alone again.
const MAX_IN_A_ROW: u32 = 64;

/// Larger openings are not stored. Each agent stores one, and no known client's tools reach this size.
const MAX_BYTES: usize = 1024 * 1024;

/// The last opening of an agent, and whether to expect it again.
pub(super) struct PreopenGuess {
    last: Option<(Launch, Setup)>,
    /// How many conversations in a row had this opening.
    in_a_row: u32,
    required: u32,
}

impl Default for PreopenGuess {
    fn default() -> Self {
        Self { last: None, in_a_row: 0, required: MIN_IN_A_ROW }
    }
}

impl PreopenGuess {
    /// Notes the opening of a conversation.
    pub(super) fn observe(&mut self, launch: &Launch, setup: &Setup) {
        let is_same = self.last.as_ref().is_some_and(|(_, last)| last.fingerprint == setup.fingerprint);
        let was_guessed = self.guess().is_some();
        if is_same {
            self.in_a_row = self.in_a_row.saturating_add(1);
            let lowered = self.required.saturating_sub(u32::from(was_guessed));
            self.required = lowered.max(MIN_IN_A_ROW);
            return;
        }
        if was_guessed {
            self.reset_after_miss();
        }
        let can_preopen = setup.is_self_contained() && setup.fingerprint.bytes <= MAX_BYTES;
        self.last = can_preopen.then(|| (launch.clone(), setup.clone()));
        self.in_a_row = 1;
    }

    /// Forgets the opening after a wrong guess and raises the bar.
    pub(super) fn reset_after_miss(&mut self) {
        self.required = self.required.saturating_mul(2).min(MAX_IN_A_ROW);
        (self.last, self.in_a_row) = (None, 0);
    }

    /// The expected opening, if enough conversations in a row had it.
    pub(super) fn guess(&self) -> Option<(&Launch, &Setup)> {
        let (launch, setup) = self.last.as_ref().filter(|_| self.in_a_row >= self.required)?;
        Some((launch, setup))
    }
}

#[cfg(test)]
mod tests {
    use toolgate_dialect::claude_stream_json::write::SystemPrompt;

    use super::*;

    /// `openings` has a letter per conversation; `expected` is the guess after each. A lower-case letter appends to the
    /// default prompt, `#` is too large, and `!` reports a miss.
    #[track_caller]
    fn check(openings: &str, expected: &str) {
        let mut preopen = PreopenGuess::default();
        let guess = |letter: char| {
            match letter {
                '!' => preopen.reset_after_miss(),
                letter => preopen.observe(&Launch::default(), &setup(letter)),
            }
            let guess = preopen.guess().map(|(_, setup)| setup.session.clone());
            guess.unwrap_or_else(|| "-".to_owned())
        };
        assert_eq!(openings.chars().map(guess).collect::<String>(), expected, "{openings}");
    }

    fn setup(letter: char) -> Setup {
        let mut setup = Setup::replacing("alice", &letter.to_string());
        setup.session = letter.to_string();
        if letter.is_lowercase() {
            setup.opening.system = SystemPrompt::Append(letter.to_string());
        }
        if letter == '#' {
            setup.fingerprint.bytes = MAX_BYTES + 1;
        }
        setup
    }

    #[test]
    fn two_equal_openings_predict_the_next() {
        check("A", "-");
        check("AAA", "-AA");
        check("ABAB", "----");
        check("ABBB", "--BB");
    }

    #[test]
    fn each_miss_raises_the_bar_and_each_hit_lowers_it() {
        check("AABBBB", "-A---B");
        check("AABBBBC", "-A---B-");
        check("AABBBBCCCCCCCC", "-A---B-------C");
        // Two hits undo one miss.
        check("AABBBBBBCCCC", "-A---BBB---C");
        check("AAAAAAAABBBB", "-AAAAAAA---B");
    }

    #[test]
    fn a_miss_is_forgotten() {
        check("AA!AAA", "-A----");
        check("AA!AAAA", "-A----A");
    }

    #[test]
    fn an_opening_that_cannot_be_sent_early_is_not_predicted() {
        check("aaaa", "----");
        check("####", "----");
        check("AaA#A", "-----");
        check("AAaa", "-A--");
    }
}
