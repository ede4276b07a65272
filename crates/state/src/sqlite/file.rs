//! Making the database file and its folder, readable by their owner only.

use std::fs::{DirBuilder, OpenOptions};
use std::io::ErrorKind;
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
    let mut options = OpenOptions::new();
    // Only ever a new file: closing one that SQLite has open in this process would drop its locks.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_new_file) => Ok(()),
        // A file that may only be read is found out when something is written.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_file() => Ok(()),
        Err(error) => Err(unreachable_at(path)(error)),
    }
}

fn unreachable_at(path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = PathBuf::from(path);
    |source| StoreError::Unreachable { path, source }
}
