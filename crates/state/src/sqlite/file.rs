//! Making the database file and its folder, readable by their owner only.

use std::fs::{DirBuilder, OpenOptions};
use std::path::{Path, PathBuf};

use crate::StoreError;

/// Makes the folder and an empty file where they are missing; what exists keeps its permissions.
///
/// SQLite gives the files beside the database (`-wal`, `-shm`) the permissions of the database.
pub(super) fn create_if_missing(path: &Path) -> Result<(), StoreError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder).map_err(unreachable_at(folder))?;
    }
    if path.is_file() {
        // It may be read-only; SQLite will say so when something is written.
        return Ok(());
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(unreachable_at(path))?;
    Ok(())
}

fn unreachable_at(path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = PathBuf::from(path);
    |source| StoreError::Unreachable { path, source }
}
