//! The private folders of one process: its home directory and its folder for temporary files. They are created when
//! the process starts and deleted when it has ended, so nothing is left for the next conversation.
//!
//! ```text
//!  agents/NAME/run/ID/home
//!                    /tmp
//! ```
//!
//! The gateway holds a lock on `run/ID` while the process lives. Folders without a lock are leftovers of a gateway that
//! was killed, and the next one deletes them.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// The subfolder of an agent's folder that has the folders of its processes.
const RUN_FOLDER: &str = "run";
const HOME_FOLDER: &str = "home";
const TEMP_FOLDER: &str = "tmp";

/// The subfolder of the home directory with the program's own files.
const CONFIG_FOLDER: &str = ".claude";

/// How often a new folder may be lost to another gateway that takes it for a leftover.
const MAX_ATTEMPTS: usize = 8;

/// The private folders of one process. Dropping it deletes them, which may take long.
pub(super) struct ProcessFolders {
    folder: PathBuf,
    /// Locked until it is dropped.
    _lock: File,
}

impl ProcessFolders {
    /// Creates the folders below the agent's folder. Only the gateway's user has access to them.
    pub(super) fn create(agent_folder: &Path) -> io::Result<Self> {
        Self::try_create(agent_folder).map_err(|error| {
            let shown = agent_folder.display();
            io::Error::other(format!("creating private folders in {shown} failed: {error}"))
        })
    }

    fn try_create(agent_folder: &Path) -> io::Result<Self> {
        let run = agent_folder.join(RUN_FOLDER);
        fs::create_dir_all(agent_folder)?;
        create_private(&run)?;
        for _ in 0..MAX_ATTEMPTS {
            let folder = run.join(Uuid::now_v7().simple().to_string());
            create_private(&folder)?;
            let Some(lock) = lock(&folder)? else { continue };
            for below in [HOME_FOLDER, TEMP_FOLDER] {
                create_private(&folder.join(below))?;
            }
            return Ok(Self { folder, _lock: lock });
        }
        Err(io::Error::other("another gateway keeps deleting them"))
    }

    /// The home directory.
    pub(super) fn home(&self) -> PathBuf {
        self.folder.join(HOME_FOLDER)
    }

    /// The folder for temporary files.
    pub(super) fn temp(&self) -> PathBuf {
        self.folder.join(TEMP_FOLDER)
    }

    /// The variables that name the folders for the program.
    pub(super) fn environment(&self) -> [(&'static str, PathBuf); 4] {
        let (home, temp) = (self.home(), self.temp());
        [
            ("CLAUDE_CONFIG_DIR", home.join(CONFIG_FOLDER)),
            ("HOME", home),
            ("TMPDIR", temp.clone()),
            ("CLAUDE_CODE_TMPDIR", temp),
        ]
    }

    /// Deletes the folders without blocking the other agents' processes.
    pub(super) async fn delete(self) {
        if tokio::task::spawn_blocking(|| drop(self)).await.is_err() {
            tracing::warn!("deleting an agent's folders was interrupted; the next start deletes the rest");
        }
    }
}

impl Drop for ProcessFolders {
    fn drop(&mut self) {
        if let Err(error) = delete_folder(&self.folder) {
            let folder = self.folder.display();
            tracing::warn!(%error, %folder, "deleting an agent's folder failed; the next start tries again");
        }
    }
}

/// Deletes the folders of processes whose gateway was killed.
pub(super) fn delete_leftovers(agent_folder: &Path) {
    let entries = match fs::read_dir(agent_folder.join(RUN_FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => {
            tracing::warn!(%error, folder = %agent_folder.display(), "reading an agent's folder failed");
            return;
        }
    };
    for entry in entries.flatten() {
        let folder = entry.path();
        let deleted = lock(&folder).and_then(|lock| match lock {
            Some(_lock) => delete_folder(&folder),
            None => Ok(()),
        });
        if let Err(error) = deleted {
            tracing::warn!(%error, folder = %folder.display(), "deleting an agent's old folder failed");
        }
    }
}

/// Creates a folder that only this user can access.
fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created,
    }
}

/// Locks a folder; `None` if it belongs to a live process or was deleted meanwhile.
#[cfg(unix)]
fn lock(folder: &Path) -> io::Result<Option<File>> {
    use rustix::fs::{Mode, OFlags, open};
    use std::os::unix::fs::MetadataExt;

    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match open(folder, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // Another gateway may have deleted the folder before it was locked.
    let is_current = fs::symlink_metadata(folder)
        .and_then(|current| Ok(current.ino() == file.metadata()?.ino()))
        .unwrap_or(false);
    Ok(is_current.then_some(file))
}

/// Folders cannot be locked here: a file beside the private folders stands for them.
#[cfg(not(unix))]
fn lock(folder: &Path) -> io::Result<Option<File>> {
    let file = File::create(folder.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Deletes a folder and everything in it, however deep it is and whatever its permissions are. Symbolic links are not
/// followed. Subfolders are moved to the top before they are emptied: an agent can nest folders deeper than a recursive
/// function can go.
#[cfg(target_os = "linux")]
fn delete_folder(top: &Path) -> io::Result<()> {
    make_accessible(top)?;
    let mut pending = vec![top.to_owned()];
    let mut moved: u64 = 0;
    while let Some(folder) = pending.pop() {
        let mut subfolders = Vec::new();
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                fs::remove_file(entry.path())?;
                continue;
            }
            make_accessible(&entry.path())?;
            if folder == top {
                subfolders.push(entry.path());
                continue;
            }
            let destination = top.join(format!("deleted-{moved}"));
            moved += 1;
            fs::rename(entry.path(), &destination)?;
            subfolders.push(destination);
        }
        if folder != top {
            fs::remove_dir(&folder)?;
        }
        pending.append(&mut subfolders);
    }
    fs::remove_dir(top)
}

#[cfg(not(target_os = "linux"))]
fn delete_folder(top: &Path) -> io::Result<()> {
    fs::remove_dir_all(top)
}

/// Gives the owner all rights to a folder. Some package managers write-protect their caches. The folder is opened
/// first, so that a link that replaces it is not followed.
#[cfg(target_os = "linux")]
fn make_accessible(folder: &Path) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags, open};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;

    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = open(folder, flags, Mode::empty())?;
    let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn entries(folder: &Path) -> Vec<PathBuf> {
        fs::read_dir(folder.join(RUN_FOLDER)).expect("a folder").flatten().map(|entry| entry.path()).collect()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it exists").permissions().mode() & 0o777
    }

    #[test]
    fn only_the_owner_can_access_the_folders_and_they_are_deleted_at_the_end() {
        let agent = tempfile::tempdir().expect("a folder");
        let folders = ProcessFolders::create(agent.path()).expect("folders");
        for folder in [folders.home(), folders.temp()] {
            assert!(folder.starts_with(agent.path()));
            assert_eq!((mode(&folder), mode(folder.parent().expect("a parent"))), (0o700, 0o700));
        }
        assert_ne!(folders.home(), folders.temp());
        drop(folders);
        assert_eq!(entries(agent.path()), Vec::<PathBuf>::new());
    }

    #[test]
    fn leftovers_are_deleted_but_not_the_folders_of_a_live_process() {
        let agent = tempfile::tempdir().expect("a folder");
        let live = ProcessFolders::create(agent.path()).expect("folders");
        let leftover = agent.path().join("run/leftover");
        fs::create_dir_all(leftover.join("home/cache")).expect("folders");
        fs::write(leftover.join("home/cache/file"), "x").expect("a file");
        delete_leftovers(agent.path());
        assert_eq!(entries(agent.path()), std::slice::from_ref(&live.folder));
        assert!(live.home().is_dir());
    }

    #[test]
    fn a_link_is_deleted_and_not_followed() {
        let (agent, outside) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        fs::write(outside.path().join("kept"), "x").expect("a file");
        fs::set_permissions(outside.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
        let folders = ProcessFolders::create(agent.path()).expect("folders");
        symlink(outside.path(), folders.home().join("link")).expect("a link");
        drop(folders);
        symlink(outside.path(), agent.path().join("run/link")).expect("a link");
        delete_leftovers(agent.path());
        assert!(outside.path().join("kept").exists());
        assert_eq!(mode(outside.path()), 0o755);
    }

    #[test]
    fn write_protected_and_deeply_nested_folders_are_deleted() {
        // The innermost folder has a longer path than the kernel accepts.
        const DEPTH: usize = 1_000;
        let agent = tempfile::tempdir().expect("a folder");
        let folders = ProcessFolders::create(agent.path()).expect("folders");
        let mut made = folders.temp().join("deep");
        fs::create_dir(&made).expect("a folder");
        for level in 0..DEPTH {
            let outer = folders.temp().join(format!("outer-{level}"));
            fs::create_dir(&outer).expect("a folder");
            fs::rename(&made, outer.join("deep")).expect("a move");
            made = outer;
        }
        let protected = folders.home().join("protected/below");
        fs::create_dir_all(&protected).expect("folders");
        fs::write(protected.join("file"), "x").expect("a file");
        for folder in [protected.as_path(), protected.parent().expect("a parent")] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o500)).expect("permissions");
        }
        drop(folders);
        assert_eq!(entries(agent.path()), Vec::<PathBuf>::new());
    }

    #[test]
    fn two_gateways_that_create_and_clean_at_once_never_lose_a_live_folder() {
        const ROUNDS: usize = 200;
        let agent = tempfile::tempdir().expect("a folder");
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let folders = ProcessFolders::create(agent.path()).expect("folders");
                        delete_leftovers(agent.path());
                        fs::write(folders.home().join("file"), "x").expect("the folder is still there");
                    }
                });
            }
        });
        assert_eq!(entries(agent.path()), Vec::<PathBuf>::new());
    }
}
