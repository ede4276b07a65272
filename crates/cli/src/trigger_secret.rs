//! The secret that makes the marks of prompted calls unguessable: made once, kept beside the database, so that
//! conversations keep their marks over restarts.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use toolgate_backend::config::TriggerSecret;
use toolgate_state::StoreUrl;

/// What the file is called, in the folder of the database.
const FILE_NAME: &str = "secret";

const SECRET_BYTES: usize = 32;

/// The secret of this store: read, or made where there is none. A store in memory has one that is gone with it.
pub(crate) fn load(store: &StoreUrl) -> anyhow::Result<TriggerSecret> {
    let bytes = match store {
        StoreUrl::Memory | StoreUrl::SqliteMemory => fresh()?,
        StoreUrl::SqliteFile(database) => kept_at(&database.with_file_name(FILE_NAME))?,
    };
    Ok(TriggerSecret::new(bytes))
}

fn fresh() -> anyhow::Result<[u8; SECRET_BYTES]> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).context("making a secret: the system gave no random numbers; try again")?;
    Ok(bytes)
}

fn kept_at(path: &Path) -> anyhow::Result<[u8; SECRET_BYTES]> {
    let shown = path.display();
    let bytes = fresh()?;
    match write_new(path, &bytes) {
        Ok(()) => return Ok(bytes),
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
        Err(cause) => {
            let advice = format!("cannot write the secret {shown}: make its folder yours to write");
            return Err(anyhow::Error::new(cause).context(advice));
        }
    }
    let kept = std::fs::read(path)
        .with_context(|| format!("cannot read the secret {shown}: make it yours to read, or delete it"))?;
    <[u8; SECRET_BYTES]>::try_from(kept).map_err(|kept| {
        let found = kept.len();
        anyhow::anyhow!(
            "the secret {shown} has {found} bytes instead of {SECRET_BYTES}: delete it, and a new one is made"
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
    fn a_secret_is_made_once_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let made = kept_at(&path).unwrap();
        assert_ne!(made, [0; SECRET_BYTES]);
        assert_eq!(kept_at(&path).unwrap(), made);
        let store = StoreUrl::SqliteFile(folder.path().join("toolgate.db"));
        assert!(load(&store).is_ok());
        assert_eq!(std::fs::read(&path).unwrap(), made, "the store's secret is the file beside it");
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        kept_at(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn half_a_secret_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        std::fs::write(&path, b"short").unwrap();
        let said = kept_at(&path).unwrap_err().to_string();
        assert!(said.contains("5 bytes instead of 32: delete it"), "{said}");
    }
}
