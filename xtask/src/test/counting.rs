//! Runs a command, shows its output as it comes, and counts the tests that it reports.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use crate::cargo::{described, not_started};
use crate::report::Counts;

/// Runs the command; the counts are what it said even when it failed.
pub(crate) fn run(command: &mut Command) -> (Counts, Result<(), String>) {
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(cause) => return (Counts::default(), Err(not_started(command, &cause))),
    };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let counts = std::thread::scope(|scope| {
        let errors = scope
            .spawn(|| stderr.map_or(Counts::default(), |stream| show(stream, |line| eprintln!("{line}"))));
        let output = stdout.map_or(Counts::default(), |stream| show(stream, |line| println!("{line}")));
        sum(output, errors.join().unwrap_or_default())
    });
    let result = match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{} ended with {status}", described(command))),
        Err(cause) => Err(format!("waiting for {}: {cause}", described(command))),
    };
    (counts, result)
}

fn show(stream: impl Read, print: impl Fn(&str)) -> Counts {
    let mut counts = Counts::default();
    for line in BufReader::new(stream).split(b'\n') {
        // The command's own exit status tells whether a lost line matters.
        let Ok(line) = line else { break };
        let line = String::from_utf8_lossy(&line);
        print(&line);
        counts = sum(counts, counts_in(&line));
    }
    counts
}

fn sum(a: Counts, b: Counts) -> Counts {
    Counts { passed: a.passed + b.passed, failed: a.failed + b.failed }
}

/// The counts in a summary line of nextest, of `cargo test` or of one of our SDK suites.
fn counts_in(line: &str) -> Counts {
    let line = line.trim();
    let is_nextest = line.starts_with("Summary [");
    let is_cargo_test = line.starts_with("test result: ");
    let is_suite = line.ends_with(" failed") && line.split_whitespace().count() == 4;
    if !(is_nextest || is_cargo_test || is_suite) {
        return Counts::default();
    }
    let before = |word: &str| number_before(line, word).unwrap_or(0);
    // A test that hung and was ended, or that could not be started, has failed.
    let failed = before("failed") + before("timed") + before("exec");
    Counts { passed: before("passed"), failed }
}

fn number_before(line: &str, word: &str) -> Option<usize> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_word = |candidate: &str| candidate.trim_matches([',', ';', '.']) == word;
    words.windows(2).find(|pair| is_word(pair[1])).and_then(|pair| pair[0].parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, passed: usize, failed: usize) {
        assert_eq!(counts_in(line), Counts { passed, failed }, "{line}");
    }

    #[test]
    fn summaries_are_counted() {
        check("     Summary [   0.010s] 12 tests run: 12 passed, 0 skipped", 12, 0);
        check(
            "     Summary [   3.010s] 12 tests run: 8 passed (1 slow), 2 failed, 2 timed out, 3 skipped",
            8,
            4,
        );
        check(
            "test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.2s",
            4,
            1,
        );
        check("31 passed, 2 failed", 31, 2);
    }

    #[test]
    fn other_lines_count_nothing() {
        check("ok m/text-16 whole: 3 passed on", 0, 0);
        check("PASS [   0.010s] crate tests::some_passed", 0, 0);
        check("", 0, 0);
    }

    #[test]
    fn what_a_command_says_is_counted_even_when_it_fails() {
        let (counts, result) = run(Command::new("sh").args(["-c", "echo '2 passed, 1 failed'; exit 1"]));
        assert_eq!(counts, Counts { passed: 2, failed: 1 });
        assert!(result.is_err());
    }
}
