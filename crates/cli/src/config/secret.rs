//! Reads secrets of the config: a literal, `env:NAME` or `file:PATH`. They are never printed.

use std::path::Path;

use secrecy::SecretString;

use super::problem::{Located, ReadContext};
use crate::environment::Environment;

/// No key is longer; a larger file is not a key file.
const MAX_SECRET_BYTES: u64 = 16 * 1024;

/// Reads the secret that a value refers to. Errors never contain the value, which may be the secret.
pub(crate) fn fetch(
    key: &str,
    value: &Located<String>,
    context: &mut ReadContext<'_>,
) -> Option<SecretString> {
    let fetched = if let Some(name) = value.value.strip_prefix("env:") {
        from_variable(name, context.environment())
    } else if let Some(path) = value.value.strip_prefix("file:") {
        let path = context.relative_to_file(path);
        warn_if_world_readable(&path, value, context);
        from_file(&path)
    } else {
        Ok(value.value.clone())
    };
    let checked = fetched.and_then(|secret| fits_a_header(secret, &value.value));
    match checked {
        Ok(secret) => Some(SecretString::from(secret)),
        Err(why) => {
            context.error(value.position, format!("`{key}`: {why}"));
            None
        }
    }
}

fn from_variable(name: &str, environment: &Environment) -> Result<String, String> {
    let is_name =
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if !is_name {
        return Err(
            "`env:` must be followed by the name of a variable, as in \"env:OPENAI_API_KEY\"".to_owned()
        );
    }
    environment.variable(name).ok_or_else(|| {
        format!("the environment variable {name} is not set: export it before starting, or use \"file:PATH\"")
    })
}

fn from_file(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let size = path.metadata().map_err(|cause| {
        format!("cannot read the file {shown} ({cause}): check the path and its permissions")
    })?;
    if size.is_dir() || size.len() > MAX_SECRET_BYTES {
        return Err(format!("{shown} is not a key file: it must contain only the key"));
    }
    let text = std::fs::read_to_string(path).map_err(|cause| {
        format!("cannot read the file {shown} ({cause}): check the path and its permissions")
    })?;
    Ok(text.trim().to_owned())
}

fn fits_a_header(secret: String, written: &str) -> Result<String, String> {
    if secret.is_empty() {
        return Err(match written {
            "" => "it is empty: write the key, \"env:NAME\" or \"file:PATH\", or remove the line".to_owned(),
            source => format!("{source} is empty: write the key to it"),
        });
    }
    if secret.chars().all(|letter| letter.is_ascii_graphic() || letter == ' ') {
        return Ok(secret);
    }
    Err("the value contains a character that HTTP headers cannot carry, such as a line break: check that it was copied correctly".to_owned())
}

/// Warns about a file that every user of the machine can read.
#[cfg(unix)]
fn warn_if_world_readable(path: &Path, value: &Located<String>, context: &mut ReadContext<'_>) {
    if is_world_readable(path) {
        let shown = path.display();
        context.warning(
            value.position,
            format!("every user of this machine can read {shown}: run `chmod 600 {shown}`"),
        );
    }
}

/// Whether every user of the machine can read a file.
#[cfg(unix)]
pub(crate) fn is_world_readable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.permissions().mode() & 0o004 != 0)
}

#[cfg(not(unix))]
fn warn_if_world_readable(_: &Path, _: &Located<String>, _: &mut ReadContext<'_>) {}

/// Other systems have no permission bits.
#[cfg(not(unix))]
pub(crate) fn is_world_readable(_: &Path) -> bool {
    false
}
