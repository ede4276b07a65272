//! Where a path leads: as it is written, and on disk with every symbolic link followed. Looks at the disk.

use std::ffi::OsString;
use std::fs::{self, FileType};
use std::path::{Component, Path, PathBuf};

use super::command_line::is_glob_letter;
use super::glob::may_be_same;

/// As many links as Linux follows in one path.
const MAX_LINKS: usize = 40;

/// A folder with more entries is not searched for what a glob may match.
const MAX_ENTRIES: usize = 1_000;

/// The longest path that Linux accepts.
pub(super) const MAX_PATH_BYTES: usize = 4096;

/// What a path refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The names from the root on, as written, without `.` and `..`.
    pub(super) written: Vec<String>,
    /// The same with every link followed.
    pub(super) real: Vec<String>,
    /// False if it may lead somewhere else when it is used.
    pub(super) is_certain: bool,
    /// True if it may be a folder.
    pub(super) is_folder: bool,
}

impl Place {
    /// The place of a path that starts in this folder, unless it is absolute.
    pub(super) fn new(folder: &Path, text: &str) -> Self {
        let path = folder.join(text);
        let written = names(&path);
        if text.len() > MAX_PATH_BYTES {
            return Self { real: written.clone(), written, is_certain: false, is_folder: true };
        }
        let (real, is_certain) = follow(&path);
        Self { written, real: names(&real), is_certain, is_folder: real.is_dir() }
    }

    /// The place of a command's argument. In its names, `*` stands for whatever a shell or program may expand a glob
    /// to.
    pub(super) fn of_argument(folder: &Path, text: &str) -> Self {
        let mut place = Self::new(folder, text);
        if text.contains(is_glob_letter) {
            let path = folder.join(text);
            // A link can lead anywhere.
            place.is_certain &= !may_expand_to(&path, FileType::is_symlink);
            place.is_folder = may_expand_to(&path, FileType::is_dir);
            for name in place.written.iter_mut().chain(&mut place.real) {
                *name = widen(name);
            }
        }
        place
    }

    /// True if it stands for any of several files.
    pub(super) fn is_glob(&self) -> bool {
        self.written.iter().any(|name| name.contains('*'))
    }
}

/// Follows every link as the kernel does. A name that does not exist is kept, so that a new file has a place too. Also
/// says whether this is certain.
fn follow(path: &Path) -> (PathBuf, bool) {
    let mut real = PathBuf::from("/");
    let mut rest: Vec<OsString> = parts(path).rev().collect();
    let (mut links, mut is_certain) = (0, true);
    while let Some(part) = rest.pop() {
        if part == ".." {
            real.pop();
            continue;
        }
        real.push(part);
        // Every process has its own `/proc/self`, `cwd`, `root` and `fd`.
        let is_of_process = real.starts_with("/proc") && real.components().count() > 3;
        is_certain &= !is_of_process;
        // The error of anything but a link.
        let Ok(target) = fs::read_link(&real) else { continue };
        links += 1;
        if links > MAX_LINKS {
            return (real, false);
        }
        real.pop();
        is_certain &= real != Path::new("/proc");
        if target.is_absolute() {
            real = PathBuf::from("/");
        }
        rest.extend(parts(&target).rev());
    }
    (real, is_certain)
}

fn parts(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + '_ {
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    parts.map(|part| part.as_os_str().to_owned())
}

/// The names of a path, with `..` resolved as text.
fn names(path: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for part in parts(path) {
        if part == ".." {
            names.pop();
        } else {
            names.push(part.to_string_lossy().into_owned());
        }
    }
    names
}

/// True if the glob may match something of this type. A glob in the name of a folder may.
fn may_expand_to(path: &Path, is_type: fn(&FileType) -> bool) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
    if folder.iter().any(|part| part.to_string_lossy().contains(is_glob_letter)) {
        return true;
    }
    let name = widen(&name.to_string_lossy());
    // A folder that cannot be listed has nothing to expand to.
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let is_match = |entry: fs::DirEntry| {
        entry.file_type().is_ok_and(|found| is_type(&found))
            && may_be_same(&name, &entry.file_name().to_string_lossy())
    };
    entries.enumerate().any(|(number, entry)| number >= MAX_ENTRIES || entry.is_ok_and(is_match))
}

/// Replaces `?` and sets of letters by `*`, which matches more.
fn widen(name: &str) -> String {
    match name.split_once('[') {
        Some((before, _)) => format!("{}*", before.replace('?', "*")),
        None => name.replace('?', "*"),
    }
}
