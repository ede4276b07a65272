//! Processor time and memory of a process, as the kernel reports them.

use std::fs;
use std::io::Error;
use std::time::Duration;

/// Processor time of all threads so far, in nanoseconds from the scheduler rather than in ticks of 10 ms.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration, Error> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let path = thread?.path().join("schedstat");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            // The thread has ended since the folder was read.
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => continue,
            Err(cause) => return Err(cause),
        };
        nanoseconds +=
            first_number(&text).ok_or_else(|| Error::other(format!("reading {}", path.display())))?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Peak resident memory, in MiB.
pub(crate) fn peak_memory_mib(pid: u32) -> Result<f64, Error> {
    status_mib(pid, "VmHWM:")
}

/// Resident memory now, in MiB.
pub(crate) fn memory_mib(pid: u32) -> Result<f64, Error> {
    status_mib(pid, "VmRSS:")
}

fn status_mib(pid: u32, field: &str) -> Result<f64, Error> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib =
        line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse::<f64>().ok());
    kib.map(|kib| kib / 1024.0).ok_or_else(|| Error::other(format!("no {field} in /proc/{pid}/status")))
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows_in_processor_time_and_memory() {
        let me = std::process::id();
        let before = cpu_time(me).unwrap();
        let sum: u64 = (0..5_000_000_u64).fold(0, |sum, number| sum ^ std::hint::black_box(number));
        std::hint::black_box(sum);
        assert!(cpu_time(me).unwrap() > before);
        assert!(peak_memory_mib(me).unwrap() > 0.1);
        assert!(memory_mib(me).unwrap() > 0.1);
    }
}
