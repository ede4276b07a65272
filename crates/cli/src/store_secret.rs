//! The secret of a store: a file beside the database. From it come the trigger lines of prompted tool calls and the
//! console's tokens, so that both survive a restart.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use toolgate_state::StoreUrl;

/// The file in the folder of the database.
const FILE_NAME: &str = "secret";

const SECRET_BYTES: usize = 32;

/// The secret of a store.
pub(crate) type StoreSecret = [u8; SECRET_BYTES];

/// Reads the secret of this store, or creates it. A store in memory gets a new one at each start.
pub(crate) fn load(store: &StoreUrl) -> anyhow::Result<StoreSecret> {
    match store {
        StoreUrl::Memory | StoreUrl::SqliteMemory => random_bytes(),
        StoreUrl::SqliteFile(database) => read_or_create(&database.with_file_name(FILE_NAME)),
    }
}

/// Reads the secret of a gateway that has been started before. `None` for a store in memory, whose secret only the gateway
/// knows.
pub(crate) fn of_running_gateway(store: &StoreUrl) -> anyhow::Result<Option<StoreSecret>> {
    match store {
        StoreUrl::Memory | StoreUrl::SqliteMemory => Ok(None),
        StoreUrl::SqliteFile(database) => {
            let path = database.with_file_name(FILE_NAME);
            let shown = path.display();
            anyhow::ensure!(
                path.exists(),
                "there is no gateway yet: {shown} is missing. Start it with `toolgate`"
            );
            read(&path).map(Some)
        }
    }
}

fn random_bytes() -> anyhow::Result<StoreSecret> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).context("creating a secret: the system's random number generator failed")?;
    Ok(bytes)
}

fn read_or_create(path: &Path) -> anyhow::Result<StoreSecret> {
    let shown = path.display();
    let bytes = random_bytes()?;
    match write_new(path, &bytes) {
        Ok(()) => return Ok(bytes),
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
        Err(cause) => {
            let advice = format!("cannot write the secret {shown}: check the permissions of its folder");
            return Err(anyhow::Error::new(cause).context(advice));
        }
    }
    read(path)
}

fn read(path: &Path) -> anyhow::Result<StoreSecret> {
    let shown = path.display();
    let stored = std::fs::read(path)
        .with_context(|| format!("cannot read the secret {shown}: check its permissions, or delete it"))?;
    StoreSecret::try_from(stored).map_err(|stored| {
        let found = stored.len();
        anyhow::anyhow!(
            "the secret {shown} has {found} bytes instead of {SECRET_BYTES}: delete it to create a new one"
        )
    })
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_created_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let created = read_or_create(&path).unwrap();
        assert_ne!(created, [0; SECRET_BYTES]);
        assert_eq!(read_or_create(&path).unwrap(), created);
        let store = StoreUrl::SqliteFile(folder.path().join("toolgate.db"));
        assert_eq!(load(&store).unwrap(), created);
        assert_eq!(std::fs::read(&path).unwrap(), created, "the store's secret is the file beside it");
    }

    #[cfg(unix)]
    #[test]
    fn the_secret_is_readable_by_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        read_or_create(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_secret_of_the_wrong_length_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        std::fs::write(&path, b"short").unwrap();
        let error = read_or_create(&path).unwrap_err().to_string();
        assert!(error.contains("5 bytes instead of 32: delete it"), "{error}");
    }
}
