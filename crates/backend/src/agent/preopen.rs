//! How the next conversation will begin. Most clients begin all of theirs in the same words, so a spare process can be
//! told these before anybody asks for it; what is left to do then is the conversation itself.
//!
//! A wrong guess costs somebody a cold start, so each makes the next lowered bold.

use super::launch::Launch;
use super::opening::Setup;

/// How many conversations in a row must have begun in_a_row, at the least.
const MIN_IN_A_ROW: u32 = 2;

/// And at the most: clients take turns, and one of them may have the agent for itself again.
const MAX_IN_A_ROW: u32 = 64;

/// Longer beginnings are not kept. There is one for each agent, and no client is known whose tools fill it.
const MAX_BYTES: usize = 1024 * 1024;

/// What the last conversations of an agent tell about the next.
pub(super) struct PreopenGuess {
    last: Option<(Launch, Setup)>,
    /// How many in a row began with it.
    in_a_row: u32,
    required: u32,
}

impl Default for PreopenGuess {
    fn default() -> Self {
        Self { last: None, in_a_row: 0, required: MIN_IN_A_ROW }
    }
}

impl PreopenGuess {
    /// RecordInputs how a conversation begins.
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

    /// The guess was of no use.
    pub(super) fn reset_after_miss(&mut self) {
        self.required = self.required.saturating_mul(2).min(MAX_IN_A_ROW);
        (self.last, self.in_a_row) = (None, 0);
    }

    /// How the next conversation will begin, where enough of them began in_a_row.
    pub(super) fn guess(&self) -> Option<(&Launch, &Setup)> {
        let (launch, setup) = self.last.as_ref().filter(|_| self.in_a_row >= self.required)?;
        Some((launch, setup))
    }
}

#[cfg(test)]
mod tests {
    use toolgate_dialect::claude_stream_json::write::SystemPrompt;

    use super::*;

    /// Conversations that begin like this, one letter each, and what is expected after each of them. A small letter has
    /// the program's own prompt, `#` is too long, and `!` says that the guess was of no use.
    #[track_caller]
    fn check(begun: &str, expected: &str) {
        let mut preopen = PreopenGuess::default();
        let guess = |letter: char| {
            match letter {
                '!' => preopen.reset_after_miss(),
                letter => preopen.observe(&Launch::default(), &setup(letter)),
            }
            let guess = preopen.guess().map(|(_, setup)| setup.session.clone());
            guess.unwrap_or_else(|| "-".to_owned())
        };
        assert_eq!(begun.chars().map(guess).collect::<String>(), expected, "{begun}");
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
    fn two_that_begin_alike_tell_the_next() {
        check("A", "-");
        check("AAA", "-AA");
        check("ABAB", "----");
        check("ABBB", "--BB");
    }

    #[test]
    fn each_wrong_guess_makes_the_next_less_bold_and_each_right_one_bolder() {
        check("AABBBB", "-A---B");
        check("AABBBBC", "-A---B-");
        check("AABBBBCCCCCCCC", "-A---B-------C");
        // Two right ones, and it is as before.
        check("AABBBBBBCCCC", "-A---BBB---C");
        check("AAAAAAAABBBB", "-AAAAAAA---B");
    }

    #[test]
    fn a_guess_that_is_of_no_use_is_forgotten() {
        check("AA!AAA", "-A----");
        check("AA!AAAA", "-A----A");
    }

    #[test]
    fn what_cannot_be_told_ahead_is_not_expected() {
        check("aaaa", "----");
        check("####", "----");
        check("AaA#A", "-----");
        check("AAaa", "-A--");
    }
}
