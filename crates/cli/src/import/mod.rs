//! `toolgate import toolify FILE`: converts the config of another gateway.
//!
//! ```text
//!  config.yaml ─ yaml ─▶ toolify ─▶ write ─▶ toolgate.toml, with comments on what has no equivalent
//!                 └── every problem, with its line ──▶ ImportErrors
//! ```

mod toolify;
mod write;
mod yaml;

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::Context;

use crate::config;
use crate::config::problem::{Problem, ReadContext};
use crate::environment::Environment;

/// The largest file that is read; a larger one is not a config.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// All errors of a file that cannot be imported, one per line.
#[derive(Debug)]
pub(crate) struct ImportErrors(Vec<Problem>);

impl fmt::Display for ImportErrors {
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

impl std::error::Error for ImportErrors {}

/// Converts Toolify's config and writes the result to a new file or to `out`.
pub(crate) fn toolify(
    file: &Path,
    output: Option<&Path>,
    environment: &Environment,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let text = read(file)?;
    let config = convert(file, &text, environment)?;
    // The result must be a valid config.
    config::from_text(output.unwrap_or(Path::new(config::FILE_NAME)), &config, environment)
        .context("checking the imported config")?;
    match output {
        None => out.write_all(config.as_bytes()).context("writing the config"),
        Some(path) => {
            write_new(path, &config)?;
            writeln!(
                out,
                "{}: written; read its comments, then run: toolgate --config {}",
                path.display(),
                path.display()
            )
            .context("writing to stdout")
        }
    }
}

fn convert(file: &Path, text: &str, environment: &Environment) -> Result<String, ImportErrors> {
    let mut context = ReadContext::new(file, text, environment);
    let read = toolify::read(text, &mut context);
    match read {
        Some(read) if !context.has_errors() => Ok(write::config(&read, &file.display().to_string())),
        _ => Err(ImportErrors(context.into_problems())),
    }
}

fn read(file: &Path) -> anyhow::Result<String> {
    let shown = file.display();
    let size =
        file.metadata().with_context(|| format!("reading {shown}: check the path and its permissions"))?;
    anyhow::ensure!(
        size.is_file() && size.len() <= MAX_FILE_BYTES,
        "{shown} is not a config: use Toolify's config.yaml"
    );
    std::fs::read_to_string(file).with_context(|| format!("reading {shown}: it must be a text file in UTF-8"))
}

/// Never overwrites a file. The new file is readable by its owner only, because it contains keys.
fn write_new(path: &Path, config: &str) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options
        .open(path)
        .with_context(|| format!("creating {}: choose a file that does not exist yet", path.display()))?;
    file.write_all(config.as_bytes()).with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests;
