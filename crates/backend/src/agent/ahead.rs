//! How the next conversation will begin. Most clients begin all of theirs in the same words, so a spare process can be
//! told these before anybody asks for it; what is left to do then is the conversation itself.
//!
//! A wrong guess costs somebody a cold start, so each makes the next less bold.

use super::launch::Launch;
use super::opening::Setup;

/// How many conversations in a row must have begun alike, at the least.
const FEWEST_ALIKE: u32 = 2;

/// And at the most: clients take turns, and one of them may have the agent for itself again.
const MOST_ALIKE: u32 = 64;

/// Longer beginnings are not kept. There is one for each agent, and no client is known whose tools fill it.
const MAX_BYTES: usize = 1024 * 1024;

/// What the last conversations of an agent tell about the next.
pub(super) struct Ahead {
    last: Option<(Launch, Setup)>,
    /// How many in a row began with it.
    alike: u32,
    needed: u32,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { last: None, alike: 0, needed: FEWEST_ALIKE }
    }
}

impl Ahead {
    /// Notes how a conversation begins.
    pub(super) fn begins(&mut self, launch: &Launch, setup: &Setup) {
        let is_alike = self.last.as_ref().is_some_and(|(_, last)| last.wording == setup.wording);
        let was_guessed = self.guess().is_some();
        if is_alike {
            self.alike = self.alike.saturating_add(1);
            let less = self.needed.saturating_sub(u32::from(was_guessed));
            self.needed = less.max(FEWEST_ALIKE);
            return;
        }
        if was_guessed {
            self.fails();
        }
        let can_be_told = setup.is_all_of_it() && setup.wording.bytes <= MAX_BYTES;
        self.last = can_be_told.then(|| (launch.clone(), setup.clone()));
        self.alike = 1;
    }

    /// The guess was of no use.
    pub(super) fn fails(&mut self) {
        self.needed = self.needed.saturating_mul(2).min(MOST_ALIKE);
        (self.last, self.alike) = (None, 0);
    }

    /// How the next conversation will begin, where enough of them began alike.
    pub(super) fn guess(&self) -> Option<(&Launch, &Setup)> {
        let (launch, setup) = self.last.as_ref().filter(|_| self.alike >= self.needed)?;
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
        let mut ahead = Ahead::default();
        let guess = |letter: char| {
            match letter {
                '!' => ahead.fails(),
                letter => ahead.begins(&Launch::default(), &setup(letter)),
            }
            let guess = ahead.guess().map(|(_, setup)| setup.session.clone());
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
            setup.wording.bytes = MAX_BYTES + 1;
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
