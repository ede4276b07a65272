//! The schemas in `crates/testkit/schemas`, generated from the pinned SDKs of the vendors.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::cargo;
use crate::packages::{PackageKind, Packages};

const FOLDER: &str = "crates/testkit/schemas";

const SDKS: Packages = Packages {
    name: "schemas",
    list: "crates/testkit/schemas/requirements.txt",
    kind: PackageKind::PythonEnvironment,
};

/// Writes the committed files.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    generate(root, &root.join(FOLDER))
}

/// Checks that the committed files are what the pinned SDKs generate.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let fresh = root.join("target/schemas");
    fs::create_dir_all(&fresh).map_err(|cause| format!("creating {}: {cause}", fresh.display()))?;
    generate(root, &fresh)?;
    for file in file_names(&fresh)? {
        let committed = root.join(FOLDER).join(&file);
        if fs::read(&committed).ok() != fs::read(fresh.join(&file)).ok() {
            return Err(format!("{} is not current: run `cargo xtask schemas`", committed.display()));
        }
    }
    Ok(())
}

fn generate(root: &Path, folder: &Path) -> Result<(), String> {
    SDKS.install_if_missing(root)?;
    cargo::run(Command::new(SDKS.python(root)).arg(root.join(FOLDER).join("generate.py")).arg(folder))
}

/// The names of the files in a folder.
fn file_names(folder: &Path) -> Result<Vec<OsString>, String> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(|cause| format!("reading {}: {cause}", folder.display()))?;
    Ok(entries.iter().map(fs::DirEntry::file_name).collect())
}
