//! Runs a command, prints its output and counts the tests in it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use crate::cargo::{command_line, not_started};
use crate::report::TestCounts;

/// Runs the command. The counts are valid even if it failed.
pub(crate) fn run(command: &mut Command) -> (TestCounts, Result<(), String>) {
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(cause) => return (TestCounts::default(), Err(not_started(command, &cause))),
    };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let counts = std::thread::scope(|scope| {
        let errors = scope.spawn(|| {
            stderr.map_or(TestCounts::default(), |stream| show(stream, |line| eprintln!("{line}")))
        });
        let output = stdout.map_or(TestCounts::default(), |stream| show(stream, |line| println!("{line}")));
        sum(output, errors.join().unwrap_or_default())
    });
    let result = match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{} ended with {status}", command_line(command))),
        Err(cause) => Err(format!("waiting for {}: {cause}", command_line(command))),
    };
    (counts, result)
}

fn show(stream: impl Read, print: impl Fn(&str)) -> TestCounts {
    let mut counts = TestCounts::default();
    for line in BufReader::new(stream).split(b'\n') {
        // The exit status shows whether the lost output matters.
        let Ok(line) = line else { break };
        let line = String::from_utf8_lossy(&line);
        print(&line);
        counts = sum(counts, counts_in(&line));
    }
    counts
}

fn sum(a: TestCounts, b: TestCounts) -> TestCounts {
    TestCounts { passed: a.passed + b.passed, failed: a.failed + b.failed }
}

/// The counts in a summary line of nextest, `cargo test` or an SDK suite.
fn counts_in(line: &str) -> TestCounts {
    let line = line.trim();
    let is_nextest = line.starts_with("Summary [");
    let is_cargo_test = line.starts_with("test result: ");
    let is_suite = line.ends_with(" failed") && line.split_whitespace().count() == 4;
    if !(is_nextest || is_cargo_test || is_suite) {
        return TestCounts::default();
    }
    let before = |word: &str| number_before(line, word).unwrap_or(0);
    // Tests that timed out or could not be started have failed.
    let failed = before("failed") + before("timed") + before("exec");
    TestCounts { passed: before("passed"), failed }
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
        assert_eq!(counts_in(line), TestCounts { passed, failed }, "{line}");
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
    fn the_output_of_a_failed_command_is_counted() {
        let (counts, result) = run(Command::new("sh").args(["-c", "echo '2 passed, 1 failed'; exit 1"]));
        assert_eq!(counts, TestCounts { passed: 2, failed: 1 });
        assert!(result.is_err());
    }
}
