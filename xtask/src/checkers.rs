//! External checkers with pinned versions, installed from source if they are missing.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{self, cargo};

/// A program from the Rust package index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checker {
    package: &'static str,
    program: &'static str,
    version: &'static str,
}

/// Spelling, configured in `typos.toml`.
pub(crate) const SPELLING: Checker = Checker { package: "typos-cli", program: "typos", version: "1.52.0" };

/// Dependencies, configured in `deny.toml`.
pub(crate) const DEPENDENCIES: Checker =
    Checker { package: "cargo-deny", program: "cargo-deny", version: "0.20.2" };

impl Checker {
    /// Installs the program if it is missing.
    pub(crate) fn install_if_missing(self, root: &Path) -> Result<(), String> {
        let Self { package, program: _, version } = self;
        if self.path(root).is_file() {
            println!("{package}: installed");
            return Ok(());
        }
        let folder = self.folder(root);
        println!("{package}: installing into {}", folder.display());
        let mut install = cargo(root, &["install", "--quiet", "--locked", package, "--version", version]);
        install.arg("--root").arg(&folder);
        // Unoptimized, because it runs for seconds and an optimized build takes minutes.
        let build = folder.join("build");
        install.env("CARGO_TARGET_DIR", &build).env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
        install.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
        cargo::run(&mut install).map_err(|why| format!("{why}: is the package index reachable?"))?;
        std::fs::remove_dir_all(&build).map_err(|cause| format!("removing {}: {cause}", build.display()))
    }

    /// A command that runs the program in the repository.
    pub(crate) fn command(self, root: &Path) -> Command {
        let mut command = Command::new(self.path(root));
        command.current_dir(root);
        command
    }

    fn path(self, root: &Path) -> PathBuf {
        self.folder(root).join("bin").join(self.program)
    }

    /// One folder per version.
    fn folder(self, root: &Path) -> PathBuf {
        root.join(".toolgate-test").join(format!("{}-{}", self.package, self.version))
    }
}
