//! The one place that reads the process's environment: variables, the PATH, and the platform's folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where variables come from.
#[derive(Clone)]
pub(crate) enum Environment {
    /// This process's own.
    Process,
    /// These alone; for tests.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests must not depend on the machine's variables"))]
    Fixed(BTreeMap<String, String>),
}

impl Environment {
    /// A variable's value; one that is empty or not Unicode counts as not set.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let value = match self {
            Self::Process => process_variable(name),
            Self::Fixed(variables) => variables.get(name).cloned(),
        };
        value.filter(|value| !value.is_empty())
    }

    /// The first program of this name on the PATH.
    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        let path = self.variable("PATH")?;
        let file_names = if cfg!(windows) {
            vec![format!("{name}.exe"), format!("{name}.cmd")]
        } else {
            vec![name.to_owned()]
        };
        std::env::split_paths(&path)
            .flat_map(|folder| file_names.iter().map(move |file| folder.join(file)).collect::<Vec<_>>())
            .find(|candidate| is_program(candidate))
    }

    /// Where the platform keeps a program's data, such as `~/.local/share/toolgate`.
    pub(crate) fn data_folder(&self) -> Option<PathBuf> {
        self.platform_folder("XDG_DATA_HOME", ".local/share")
    }

    /// Where the platform keeps a program's settings, such as `~/.config/toolgate`.
    pub(crate) fn config_folder(&self) -> Option<PathBuf> {
        self.platform_folder("XDG_CONFIG_HOME", ".config")
    }

    fn platform_folder(&self, xdg_variable: &str, below_home: &str) -> Option<PathBuf> {
        let base = if cfg!(windows) {
            self.variable("LOCALAPPDATA").map(PathBuf::from)
        } else if cfg!(target_os = "macos") {
            self.variable("HOME").map(|home| Path::new(&home).join("Library/Application Support"))
        } else {
            let named = self.variable(xdg_variable).map(PathBuf::from);
            // The XDG specification has relative paths ignored.
            named
                .filter(|folder| folder.is_absolute())
                .or_else(|| self.variable("HOME").map(|home| Path::new(&home).join(below_home)))
        };
        base.map(|folder| folder.join("toolgate"))
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
fn process_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}
