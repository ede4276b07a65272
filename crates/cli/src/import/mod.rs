//! `toolgate import toolify FILE`: the config of another gateway, said in ours.
//!
//! ```text
//!  config.yaml ─ yaml ─▶ toolify ─▶ write ─▶ toolgate.toml, with a comment on whatever has no equivalent
//!                 └── every problem, with its line ──▶ NotImported
//! ```

mod toolify;
mod write;
mod yaml;

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::Context;

use crate::config::problem::{Problem, Reading};
use crate::config::{self};
use crate::environment::Environment;

/// The largest file that is read; a larger one is the wrong file.
const LARGEST_BYTES: u64 = 1024 * 1024;

/// Every problem of a file that cannot be imported, one a line.
#[derive(Debug)]
pub(crate) struct NotImported(Vec<Problem>);

impl fmt::Display for NotImported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.0 {
            writeln!(f, "{problem}")?;
        }
        match self.0.len() {
            1 => write!(f, "1 error: nothing was imported"),
            many => write!(f, "{many} errors: nothing was imported"),
        }
    }
}

impl std::error::Error for NotImported {}

/// Reads Toolify's config and writes ours, to a new file or to `out`.
pub(crate) fn toolify(
    file: &Path,
    output: Option<&Path>,
    environment: &Environment,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let text = read(file)?;
    let config = convert(file, &text, environment)?;
    // Whatever we write we must be able to read.
    config::from_text(output.unwrap_or(Path::new(config::FILE_NAME)), &config, environment)
        .context("checking what was imported")?;
    match output {
        None => out.write_all(config.as_bytes()).context("writing the config"),
        Some(path) => {
            write_new(path, &config)?;
            writeln!(
                out,
                "{}: written; look through its comments, then: toolgate --config {}",
                path.display(),
                path.display()
            )
            .context("saying where the config is")
        }
    }
}

fn convert(file: &Path, text: &str, environment: &Environment) -> Result<String, NotImported> {
    let mut reading = Reading::new(file, text, environment);
    let read = toolify::read(text, &mut reading);
    match read {
        Some(read) if !reading.has_errors() => Ok(write::config(&read, &file.display().to_string())),
        _ => Err(NotImported(reading.into_problems())),
    }
}

fn read(file: &Path) -> anyhow::Result<String> {
    let shown = file.display();
    let size =
        file.metadata().with_context(|| format!("reading {shown}: check the path and its permissions"))?;
    anyhow::ensure!(
        size.is_file() && size.len() <= LARGEST_BYTES,
        "{shown} is no config: name Toolify's config.yaml"
    );
    std::fs::read_to_string(file).with_context(|| format!("reading {shown}: it must be a text file in UTF-8"))
}

/// Never over a file that is there; and, as it holds keys, for its owner only.
fn write_new(path: &Path, config: &str) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options
        .open(path)
        .with_context(|| format!("making {}: name a file that does not exist yet", path.display()))?;
    file.write_all(config.as_bytes()).with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests;
