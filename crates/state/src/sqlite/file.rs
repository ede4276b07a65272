//! Creates the database file and its folder, accessible by their owner only.

use std::fs::{DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::StoreError;

/// Creates the folder and an empty file if they are missing. Existing ones keep their permissions.
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
    // Only a new file is opened: closing a file that SQLite has open in this process would drop SQLite's locks.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_new_file) => Ok(()),
        // A read-only file is detected by the first write.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_file() => Ok(()),
        Err(error) => Err(unreachable_at(path)(error)),
    }
}

fn unreachable_at(path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = PathBuf::from(path);
    |source| StoreError::Unreachable { path, source }
}
