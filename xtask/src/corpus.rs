//! `cargo xtask corpus PATH`: reads and writes recorded exchanges in every dialect.
//!
//! Starts the conformance suite of `crates/conformance`.

use std::ffi::OsStr;
use std::path::Path;

use crate::cargo;

pub(crate) fn run(root: &Path, folder: &Path) -> Result<(), String> {
    // The path is relative to the current directory, but cargo runs in the repository root.
    let folder =
        folder.canonicalize().map_err(|cause| format!("looking for {}: {cause}", folder.display()))?;
    let suite =
        ["run", "--quiet", "--package", "toolgate-conformance", "--example", "corpus", "--"].map(OsStr::new);
    let mut arguments = suite.to_vec();
    arguments.push(folder.as_os_str());
    cargo::run(&mut cargo::cargo(root, &arguments))
}
