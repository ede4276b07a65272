//! The two versions of Claude Code that tests run, installed from pinned packages.
//!
//! Tests get their paths in the environment variables of [`PROGRAMS`]. The programs need no account: a private `HOME`
//! and `CLAUDE_CONFIG_DIR`, an `ANTHROPIC_BASE_URL` and any key are enough.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages::{PackageKind, Packages};

const PACKAGES: Packages =
    Packages { name: "claude", list: "tests/claude/package-lock.json", kind: PackageKind::JavaScript };

/// (the variable with the program's path, its package): 2.1.197 has its own package, 2.1.325 is part of the agent SDK.
/// Their protocols differ in details.
const PROGRAMS: [(&str, &str); 2] =
    [("CLAUDE_CODE_OLDER", "claude-code"), ("CLAUDE_CODE_CURRENT", "claude-agent-sdk")];

/// Installs both programs if they are missing.
pub(crate) fn install_if_missing(root: &Path) -> Result<(), String> {
    PACKAGES.install_if_missing(root)?;
    for (_, package) in PROGRAMS {
        let program = program(root, package);
        if !program.is_file() {
            let folder = PACKAGES.folder(root);
            return Err(format!(
                "{} is missing: is this platform supported? Remove {} to install it again",
                program.display(),
                folder.display()
            ));
        }
    }
    Ok(())
}

/// Sets the variables with the paths of the programs.
pub(crate) fn set_program_paths<'c>(root: &Path, command: &'c mut Command) -> &'c mut Command {
    command.envs(PROGRAMS.map(|(variable, package)| (variable, program(root, package))))
}

/// The programs with their names in suites.
pub(crate) fn programs(root: &Path) -> [(&'static str, PathBuf); 2] {
    let [(_, older), (_, current)] = PROGRAMS;
    [("older", program(root, older)), ("current", program(root, current))]
}

fn program(root: &Path, package: &str) -> PathBuf {
    // The platform names of these packages.
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let processor = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let folder = format!("node_modules/@anthropic-ai/{package}-{system}-{processor}");
    PACKAGES.folder(root).join(folder).join("claude")
}
