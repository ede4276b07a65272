//! The steps of a test run: a heading and the duration of each, and a table at the end.

use std::fmt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The number of tests of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct TestCounts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

/// A finished step. It can fail without a failed test.
pub(crate) struct TestStep {
    name: String,
    took: Duration,
    counts: TestCounts,
    failure: Option<String>,
}

/// The result of a step: its tests, and the reason if it failed.
pub(crate) struct StepResult {
    pub(crate) counts: TestCounts,
    pub(crate) failure: Option<String>,
}

/// All steps of a run, in order.
#[derive(Default)]
pub(crate) struct Report {
    steps: Vec<TestStep>,
}

impl Report {
    /// Runs one step under its heading.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> StepResult) {
        println!("\n== {name}");
        let start = Instant::now();
        let StepResult { counts, failure } = work();
        let step = TestStep { name: name.to_owned(), took: start.elapsed(), counts, failure };
        println!("-- {name}: {}, {:.1} s", step.verdict(), step.took.as_secs_f64());
        self.steps.push(step);
    }

    /// The sum of all steps. A step that failed without a failed test counts as one failure.
    fn total(&self) -> TestCounts {
        let mut total = TestCounts::default();
        for step in &self.steps {
            total.passed += step.counts.passed;
            let at_least = usize::from(step.failure.is_some());
            total.failed += step.counts.failed.max(at_least);
        }
        total
    }

    /// Prints the table and, as the last line, the sum, which scripts read.
    pub(crate) fn finish(&self) -> ExitCode {
        println!("\n{self}");
        let TestCounts { passed, failed } = self.total();
        println!("{passed} passed, {failed} failed");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<32} {:>8} {:>8} {:>9}", "step", "passed", "failed", "time")?;
        for step in &self.steps {
            let TestStep { name, took, counts, failure } = step;
            let seconds = format!("{:.1} s", took.as_secs_f64());
            let (passed, failed) = if *counts == TestCounts::default() {
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

impl TestStep {
    fn verdict(&self) -> &'static str {
        if self.failure.is_some() { "FAILED" } else { "ok" }
    }
}

impl StepResult {
    /// A step without tests.
    pub(crate) fn plain(result: Result<(), String>) -> Self {
        Self::counted(TestCounts::default(), result)
    }

    /// A step with tests. Failed tests fail the step even if its command succeeded.
    pub(crate) fn counted(counts: TestCounts, result: Result<(), String>) -> Self {
        let failed_tests = (counts.failed > 0).then(|| format!("{} failed", counts.failed));
        let error = result.err();
        if let Some(why) = &error {
            println!("{why}");
        }
        Self { counts, failure: failed_tests.or(error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(steps: &[(usize, usize, Option<&str>)]) -> Report {
        let mut report = Report::default();
        for (passed, failed, failure) in steps {
            let counts = TestCounts { passed: *passed, failed: *failed };
            let result = failure.map_or(Ok(()), |why| Err(why.to_owned()));
            report.step("a step", || StepResult::counted(counts, result));
        }
        report
    }

    #[test]
    fn the_tests_of_all_steps_are_added_up() {
        let report = report(&[(3, 0, None), (4, 0, None)]);
        assert_eq!(report.total(), TestCounts { passed: 7, failed: 0 });
        assert_eq!(report.finish(), ExitCode::SUCCESS);
    }

    #[test]
    fn a_step_that_fails_without_tests_counts_as_one_failure() {
        let report = report(&[(3, 0, None), (0, 0, Some("clippy failed"))]);
        assert_eq!(report.total(), TestCounts { passed: 3, failed: 1 });
        assert!(report.to_string().contains("FAILED: clippy failed"));
        assert_eq!(report.finish(), ExitCode::FAILURE);
    }

    #[test]
    fn a_failed_test_fails_its_step_even_if_the_command_succeeded() {
        let report = report(&[(3, 2, None)]);
        assert_eq!(report.total(), TestCounts { passed: 3, failed: 2 });
        assert!(report.to_string().contains("FAILED: 2 failed"));
    }
}
