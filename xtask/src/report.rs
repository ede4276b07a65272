//! The steps of a test run: a heading for each, how long it took, and one table at the end.

use std::fmt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How many tests a step ran.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

/// A finished step; a failed one says why, even when no single test failed.
pub(crate) struct Step {
    name: String,
    took: Duration,
    counts: Counts,
    failure: Option<String>,
}

/// What a step has to say: its tests, and why it failed if it did.
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    pub(crate) failure: Option<String>,
}

/// All steps of a run, in order.
#[derive(Default)]
pub(crate) struct Report {
    steps: Vec<Step>,
}

impl Report {
    /// Runs one step under its heading.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Outcome) {
        println!("\n== {name}");
        let start = Instant::now();
        let Outcome { counts, failure } = work();
        let step = Step { name: name.to_owned(), took: start.elapsed(), counts, failure };
        println!("-- {name}: {}, {:.1} s", step.verdict(), step.took.as_secs_f64());
        self.steps.push(step);
    }

    /// The whole run; a step that failed without a failed test counts as one failure, so the last line never
    /// looks better than the run was.
    fn total(&self) -> Counts {
        let mut total = Counts::default();
        for step in &self.steps {
            total.passed += step.counts.passed;
            let at_least = usize::from(step.failure.is_some());
            total.failed += step.counts.failed.max(at_least);
        }
        total
    }

    /// Prints the table and, as the very last line, the sum: scripts read it.
    pub(crate) fn finish(&self) -> ExitCode {
        println!("\n{self}");
        let Counts { passed, failed } = self.total();
        println!("{passed} passed, {failed} failed");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<32} {:>8} {:>8} {:>9}", "step", "passed", "failed", "time")?;
        for step in &self.steps {
            let Step { name, took, counts, failure } = step;
            let seconds = format!("{:.1} s", took.as_secs_f64());
            let (passed, failed) = if *counts == Counts::default() {
                ("-".to_owned(), "-".to_owned())
            } else {
                (counts.passed.to_string(), counts.failed.to_string())
            };
            write!(f, "{name:<32} {passed:>8} {failed:>8} {seconds:>9}  {}", step.verdict())?;
            match failure {
                Some(why) => writeln!(f, ": {}", why.lines().next().unwrap_or_default())?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

impl Step {
    fn verdict(&self) -> &'static str {
        if self.failure.is_some() { "FAILED" } else { "ok" }
    }
}

impl Outcome {
    /// A step without tests of its own.
    pub(crate) fn plain(result: Result<(), String>) -> Self {
        Self::counted(Counts::default(), result)
    }

    /// A step with tests; failed tests fail it even if its command did not notice.
    pub(crate) fn counted(counts: Counts, result: Result<(), String>) -> Self {
        let in_numbers = (counts.failed > 0).then(|| format!("{} failed", counts.failed));
        let in_words = result.err();
        if let Some(why) = &in_words {
            println!("{why}");
        }
        Self { counts, failure: in_numbers.or(in_words) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(steps: &[(usize, usize, Option<&str>)]) -> Report {
        let mut report = Report::default();
        for (passed, failed, failure) in steps {
            let counts = Counts { passed: *passed, failed: *failed };
            let result = failure.map_or(Ok(()), |why| Err(why.to_owned()));
            report.step("a step", || Outcome::counted(counts, result));
        }
        report
    }

    #[test]
    fn tests_of_all_steps_are_added() {
        let report = report(&[(3, 0, None), (4, 0, None)]);
        assert_eq!(report.total(), Counts { passed: 7, failed: 0 });
        assert_eq!(report.finish(), ExitCode::SUCCESS);
    }

    #[test]
    fn a_step_that_fails_without_tests_is_one_failure() {
        let report = report(&[(3, 0, None), (0, 0, Some("clippy complained"))]);
        assert_eq!(report.total(), Counts { passed: 3, failed: 1 });
        assert!(report.to_string().contains("FAILED: clippy complained"));
        assert_eq!(report.finish(), ExitCode::FAILURE);
    }

    #[test]
    fn a_failed_test_fails_a_step_whose_command_did_not_notice() {
        let report = report(&[(3, 2, None)]);
        assert_eq!(report.total(), Counts { passed: 3, failed: 2 });
        assert!(report.to_string().contains("FAILED: 2 failed"));
    }
}
