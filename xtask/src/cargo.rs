//! Runs cargo from inside a cargo command and finds the executables that it built.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// A `cargo` command in the repository, as if typed in a shell.
pub(crate) fn cargo<S: AsRef<OsStr>>(root: &Path, arguments: &[S]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root).stdin(Stdio::null());
    // `cargo run` sets variables about the package it runs. Build scripts that depend on them would run again each time
    // and cause a rebuild.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_")
            || text.starts_with("CARGO_MANIFEST_")
            || text.starts_with("CARGO_BIN_")
        {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a command with its output on the terminal.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|cause| not_started(command, &cause))?;
    if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", command_line(command))) }
}

/// Builds and returns the paths of the executables in `names`.
pub(crate) fn build<const N: usize>(
    root: &Path,
    arguments: &[&str],
    names: [&str; N],
) -> Result<[PathBuf; N], String> {
    let mut all = vec!["build", "--message-format=json-render-diagnostics"];
    all.extend_from_slice(arguments);
    let mut command = cargo(root, &all);
    let output = command.stderr(Stdio::inherit()).output().map_err(|cause| not_started(&command, &cause))?;
    if !output.status.success() {
        return Err(format!("{} ended with {}", command_line(&command), output.status));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut paths = Vec::new();
    for name in names {
        let path = messages.lines().find_map(|line| executable(line, name));
        paths.push(path.ok_or_else(|| format!("{} built no executable `{name}`", command_line(&command)))?);
    }
    paths.try_into().map_err(|_| "a path is missing".to_owned())
}

/// The target folder, as set by the environment or a config file.
pub(crate) fn target_folder(root: &Path) -> Result<PathBuf, String> {
    let mut command = cargo(root, &["metadata", "--no-deps", "--format-version=1"]);
    let output = command.output().map_err(|cause| not_started(&command, &cause))?;
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|cause| format!("reading cargo's metadata: {cause}"))?;
    let folder = metadata["target_directory"].as_str().ok_or("cargo's metadata names no target folder")?;
    Ok(PathBuf::from(folder))
}

/// The command as typed in a shell.
pub(crate) fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    format!("`{}`", words.join(" "))
}

pub(crate) fn not_started(command: &Command, cause: &std::io::Error) -> String {
    format!("{} could not be started: {cause}", command_line(command))
}

fn executable(message: &str, name: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_wanted = message["target"]["name"] == name && message["reason"] == "compiler-artifact";
    message["executable"].as_str().filter(|_| is_wanted).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_of_a_build_is_found_by_name() {
        let message =
            r#"{"reason":"compiler-artifact","target":{"name":"toolgate"},"executable":"/t/debug/toolgate"}"#;
        assert_eq!(executable(message, "toolgate"), Some(PathBuf::from("/t/debug/toolgate")));
        assert_eq!(executable(message, "other"), None);
        assert_eq!(executable("warning: not JSON", "toolgate"), None);
    }
}
