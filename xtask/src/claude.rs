//! The real Claude Code program, in the two generations that tests run: installed from pinned packages, and found.
//!
//! Tests get their paths in the environment variables of [`PROGRAMS`]. The programs need no account: a private `HOME`
//! and `CLAUDE_CONFIG_DIR`, an `ANTHROPIC_BASE_URL` and any key are enough.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages::{Kind, Packages};

const PACKAGES: Packages =
    Packages { name: "claude", list: "tests/claude/package-lock.json", kind: Kind::JavaScript };

/// (the variable that holds a program's path, the package that brings it): 2.1.197 comes as itself, 2.1.325 inside the
/// agent SDK, and their protocols differ in places.
const PROGRAMS: [(&str, &str); 2] =
    [("CLAUDE_CODE_OLDER", "claude-code"), ("CLAUDE_CODE_CURRENT", "claude-agent-sdk")];

/// Makes sure that both programs are there.
pub(crate) fn install_if_missing(root: &Path) -> Result<(), String> {
    PACKAGES.install_if_missing(root)?;
    for (_, package) in PROGRAMS {
        let program = program(root, package);
        if !program.is_file() {
            let folder = PACKAGES.folder(root);
            return Err(format!(
                "{} is not there: is there such a program for this machine? Remove {} to install it again",
                program.display(),
                folder.display()
            ));
        }
    }
    Ok(())
}

/// Tells a test's command where the programs are.
pub(crate) fn tell<'c>(root: &Path, command: &'c mut Command) -> &'c mut Command {
    command.envs(PROGRAMS.map(|(variable, package)| (variable, program(root, package))))
}

/// The programs, by what suites call them.
pub(crate) fn programs(root: &Path) -> [(&'static str, PathBuf); 2] {
    let [(_, older), (_, current)] = PROGRAMS;
    [("older", program(root, older)), ("current", program(root, current))]
}

fn program(root: &Path, package: &str) -> PathBuf {
    // The machine as these packages name it.
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let processor = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let folder = format!("node_modules/@anthropic-ai/{package}-{system}-{processor}");
    PACKAGES.folder(root).join(folder).join("claude")
}
