//! Log lines written together: a line costs a request no system call of its own.
//!
//! Lines gather for a moment and go out in one write. Warnings and errors go out at once, with all that came before
//! them, and so does everything when the program ends.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// How long a line may wait for company: too short for a person to notice.
const GATHERING: Duration = Duration::from_millis(40);

/// Past this many bytes lines go out without waiting.
const MAX_GATHERED_BYTES: usize = 64 * 1024;

/// Makes writers that share what is gathered.
#[derive(Clone)]
pub(crate) struct LogWriter(Arc<Gathered>);

#[derive(Default)]
struct Gathered {
    lines: Mutex<Vec<u8>>,
    some: Condvar,
}

impl LogWriter {
    /// Starts the thread that writes what has gathered.
    pub(crate) fn start() -> io::Result<Self> {
        let gathered = Arc::new(Gathered::default());
        let writer = Self(Arc::clone(&gathered));
        thread::Builder::new().name("log".to_owned()).spawn(move || {
            loop {
                gathered.wait_for_lines();
                thread::sleep(GATHERING);
                write_out(&mut gathered.locked());
            }
        })?;
        Ok(writer)
    }

    /// Writes all that has gathered.
    pub(crate) fn flush(&self) {
        write_out(&mut self.0.locked());
    }
}

impl Gathered {
    fn locked(&self) -> MutexGuard<'_, Vec<u8>> {
        // Bytes are whole lines at every moment, whatever happened to the thread that added them.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_lines(&self) {
        let mut lines = self.locked();
        while lines.is_empty() {
            lines = self.some.wait(lines).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn add(&self, line: &[u8], urgency: Urgency) {
        let mut lines = self.locked();
        let was_empty = lines.is_empty();
        lines.extend_from_slice(line);
        if urgency == Urgency::Now || lines.len() > MAX_GATHERED_BYTES {
            write_out(&mut lines);
        } else if was_empty {
            self.some.notify_one();
        }
    }
}

fn write_out(lines: &mut Vec<u8>) {
    // A closed stderr leaves nobody to tell.
    io::stderr().write_all(lines).ok();
    lines.clear();
}

/// Whether a line may wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Urgency {
    Soon,
    Now,
}

/// Takes the text of one event, which comes in one piece.
pub(crate) struct LineWriter<'a> {
    gathered: &'a Gathered,
    urgency: Urgency,
}

impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.gathered.add(line, self.urgency);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter { gathered: &self.0, urgency: Urgency::Now }
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> LineWriter<'a> {
        let urgency = if *meta.level() <= Level::WARN { Urgency::Now } else { Urgency::Soon };
        LineWriter { gathered: &self.0, urgency }
    }
}
