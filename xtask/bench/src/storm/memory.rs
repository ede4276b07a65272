//! The gateway's memory in the course of a storm.

use std::fmt;
use std::time::{Duration, Instant};

use crate::AnyError;
use crate::process::{memory_mib, peak_memory_mib};

/// The time between two samples.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// How much more the second half of a storm may use than the first. Allocators and caches settle slowly; a leak of a
/// kilobyte a connection is 25 MiB in half a storm.
const MAX_GROWTH_MIB: f64 = 6.0;

/// Resident memory in MiB.
pub(super) struct MemoryTrace {
    pid: u32,
    samples: Vec<f64>,
    peak: f64,
    last: Instant,
}

impl MemoryTrace {
    pub(super) fn start(pid: u32) -> Result<Self, AnyError> {
        let mut trace = Self { pid, samples: Vec::new(), peak: 0.0, last: Instant::now() };
        trace.sample_now()?;
        Ok(trace)
    }

    /// Takes a sample if the last one is old enough.
    pub(super) fn sample(&mut self) -> Result<(), AnyError> {
        if self.last.elapsed() >= SAMPLE_EVERY { self.sample_now() } else { Ok(()) }
    }

    pub(super) fn sample_now(&mut self) -> Result<(), AnyError> {
        self.samples.push(memory_mib(self.pid)?);
        self.peak = peak_memory_mib(self.pid)?;
        self.last = Instant::now();
        Ok(())
    }

    /// Fails when memory still grows after the first fifth of the storm, which fills caches and pools.
    pub(super) fn verdict(&self) -> Result<(), AnyError> {
        let growth = growth(&self.samples);
        if growth <= MAX_GROWTH_MIB {
            return Ok(());
        }
        Err(format!(
            "memory keeps growing: by {growth:.1} MiB from the first half of the storm to the second, and \
             {MAX_GROWTH_MIB} MiB are allowed"
        )
        .into())
    }
}

/// The difference between the means of the two halves, without the first fifth.
fn growth(samples: &[f64]) -> f64 {
    let settled = &samples[samples.len() / 5..];
    let (first, second) = settled.split_at(settled.len() / 2);
    if first.is_empty() {
        return 0.0;
    }
    mean(second) - mean(first)
}

fn mean(samples: &[f64]) -> f64 {
    let count = u32::try_from(samples.len()).map_or(f64::NAN, f64::from);
    samples.iter().sum::<f64>() / count
}

impl fmt::Display for MemoryTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |sample: Option<&f64>| sample.copied().unwrap_or(f64::NAN);
        let (start, end) = (at(self.samples.first()), at(self.samples.last()));
        write!(
            f,
            "resident memory: {start:.1} MiB at the start, {:.1} at the peak, {end:.1} at the end",
            self.peak
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(samples: Vec<f64>) -> MemoryTrace {
        MemoryTrace { pid: 0, samples, peak: 0.0, last: Instant::now() }
    }

    #[test]
    fn memory_that_settles_is_fine_and_a_leak_is_not() {
        let settled: Vec<f64> = (0..100).map(|number| f64::from(number.min(15))).collect();
        assert!(trace(settled).verdict().is_ok());
        let leak: Vec<f64> = (0..100).map(|number| 20.0 + f64::from(number) / 2.0).collect();
        assert!(trace(leak).verdict().is_err());
        assert!(trace(vec![1.0]).verdict().is_ok());
    }
}
