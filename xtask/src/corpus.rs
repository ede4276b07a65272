//! `cargo xtask corpus PATH`: recorded exchanges, read and written in every dialect.
//!
//! The battery itself lives beside the dialects; here it is only started, so that people need one command.

use std::ffi::OsStr;
use std::path::Path;

use crate::cargo;

pub(crate) fn run(root: &Path, folder: &Path) -> Result<(), String> {
    // The path is meant from where the person stands, and cargo runs in the repository.
    let folder =
        folder.canonicalize().map_err(|cause| format!("looking for {}: {cause}", folder.display()))?;
    let battery =
        ["run", "--quiet", "--package", "toolgate-dialect", "--example", "corpus", "--"].map(OsStr::new);
    let mut arguments = battery.to_vec();
    arguments.push(folder.as_os_str());
    cargo::run(&mut cargo::cargo(root, &arguments))
}
