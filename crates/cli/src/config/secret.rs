//! Secrets of the config: a literal, `env:NAME` or `file:PATH`, fetched here and never printed.

use std::path::Path;

use secrecy::SecretString;

use super::problem::{Placed, Reading};
use crate::environment::Environment;

/// No key is longer; a larger file is the wrong file.
const LONGEST_SECRET_BYTES: u64 = 16 * 1024;

/// Fetches the secret a value names. Reports why it cannot, without repeating what may be the secret.
pub(crate) fn fetch(key: &str, value: &Placed<String>, reading: &mut Reading<'_>) -> Option<SecretString> {
    let fetched = if let Some(name) = value.value.strip_prefix("env:") {
        from_variable(name, reading.environment())
    } else if let Some(path) = value.value.strip_prefix("file:") {
        let path = reading.beside_the_file(path);
        warn_when_everybody_reads(&path, value, reading);
        from_file(&path)
    } else {
        Ok(value.value.clone())
    };
    let checked = fetched.and_then(|secret| fits_a_header(secret, &value.value));
    match checked {
        Ok(secret) => Some(SecretString::from(secret)),
        Err(why) => {
            reading.error(value.place, format!("`{key}`: {why}"));
            None
        }
    }
}

fn from_variable(name: &str, environment: &Environment) -> Result<String, String> {
    let is_name =
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if !is_name {
        return Err("`env:` must be followed by a variable's name, as in \"env:OPENAI_API_KEY\"".to_owned());
    }
    environment.variable(name).ok_or_else(|| {
        format!("the environment variable {name} is not set or empty: export it before starting, or use \"file:PATH\"")
    })
}

fn from_file(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let size = path.metadata().map_err(|cause| {
        format!("cannot read the file {shown} ({cause}): check the path and its permissions")
    })?;
    if size.is_dir() || size.len() > LONGEST_SECRET_BYTES {
        return Err(format!("{shown} is not a key file: name a file that holds the key and nothing else"));
    }
    let text = std::fs::read_to_string(path).map_err(|cause| {
        format!("cannot read the file {shown} ({cause}): check the path and its permissions")
    })?;
    Ok(text.trim().to_owned())
}

fn fits_a_header(secret: String, written: &str) -> Result<String, String> {
    if secret.is_empty() {
        return Err(match written {
            "" => {
                "it is empty: write the key, \"env:NAME\" or \"file:PATH\", or leave the line out".to_owned()
            }
            source => format!("{source} is empty: put the key there"),
        });
    }
    if secret.chars().all(|letter| letter.is_ascii_graphic() || letter == ' ') {
        return Ok(secret);
    }
    Err("the value has a line break or a letter that HTTP headers cannot carry: check that it was copied whole".to_owned())
}

/// Warns about a file that any user of the machine may read.
#[cfg(unix)]
fn warn_when_everybody_reads(path: &Path, value: &Placed<String>, reading: &mut Reading<'_>) {
    if everybody_reads(path) {
        let shown = path.display();
        reading.warning(
            value.place,
            format!("every user of this machine can read {shown}: run `chmod 600 {shown}`"),
        );
    }
}

/// Whether any user of the machine may read a file.
#[cfg(unix)]
pub(crate) fn everybody_reads(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.permissions().mode() & 0o004 != 0)
}

#[cfg(not(unix))]
fn warn_when_everybody_reads(_: &Path, _: &Placed<String>, _: &mut Reading<'_>) {}

/// Other systems have no such permission bits.
#[cfg(not(unix))]
pub(crate) fn everybody_reads(_: &Path) -> bool {
    false
}
