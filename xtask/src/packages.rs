//! Packages of other languages that tests need, with pinned versions.
//!
//! They are installed into `.toolgate-test/` (ignored by git). A stamp file contains the installed versions; packages are
//! installed again when it differs from the committed list.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cargo;

/// A committed list of versions and its folder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packages {
    /// The folder below `.toolgate-test/`.
    pub(crate) name: &'static str,
    /// The list: a `requirements` file, or a `package-lock.json` with its `package.json` beside it.
    pub(crate) list: &'static str,
    pub(crate) kind: PackageKind,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum PackageKind {
    /// A virtual environment with an interpreter.
    PythonEnvironment,
    /// Only the listed packages, for the `PYTHONPATH` of another environment.
    PythonFolder,
    /// A folder with `node_modules`.
    JavaScript,
}

impl Packages {
    /// Installs the committed versions if they are missing.
    pub(crate) fn install_if_missing(self, root: &Path) -> Result<(), String> {
        let Self { name, list, kind } = self;
        let folder = self.folder(root);
        let stamp = folder.join("installed-versions");
        let list = root.join(list);
        let wanted =
            fs::read_to_string(&list).map_err(|cause| format!("reading {}: {cause}", list.display()))?;
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            println!("{name}: installed");
            return Ok(());
        }
        println!("{name}: installing into {}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|cause| format!("removing {}: {cause}", folder.display()))?;
        }
        fs::create_dir_all(&folder).map_err(|cause| format!("creating {}: {cause}", folder.display()))?;
        match kind {
            PackageKind::PythonEnvironment => {
                install(Command::new("python3").args(["-m", "venv"]).arg(&folder), PYTHON_HINT)?;
                install(pip(&self.python(root)).arg("--requirement").arg(&list), INDEX_HINT)?;
            }
            PackageKind::PythonFolder => {
                let mut pip = pip(Path::new("python3"));
                pip.args(["--no-deps", "--target"]).arg(&folder).arg("--requirement").arg(&list);
                install(&mut pip, INDEX_HINT)?;
            }
            PackageKind::JavaScript => install_javascript(&list, &folder)?,
        }
        fs::write(&stamp, wanted).map_err(|cause| format!("writing {}: {cause}", stamp.display()))
    }

    pub(crate) fn folder(self, root: &Path) -> PathBuf {
        root.join(".toolgate-test").join(self.name)
    }

    /// The interpreter of an environment.
    pub(crate) fn python(self, root: &Path) -> PathBuf {
        self.folder(root).join("bin/python")
    }

    /// The command that runs the suite in a folder below `tests` with these packages.
    pub(crate) fn suite(self, root: &Path, folder: &str) -> Command {
        let scripts = root.join("tests").join(folder);
        match self.kind {
            PackageKind::PythonEnvironment | PackageKind::PythonFolder => {
                let mut command = Command::new(self.python(root));
                command.arg(scripts.join("suite.py"));
                command
            }
            PackageKind::JavaScript => {
                let mut command = Command::new("node");
                command.arg(scripts.join("suite.mjs")).env("SDK_PACKAGES", self.folder(root));
                command
            }
        }
    }
}

const PYTHON_HINT: &str =
    "Python 3.10 or newer with its `venv` module is needed (on Debian: python3 and python3-venv)";
const INDEX_HINT: &str = "is the package index reachable?";
const NODE_HINT: &str = "Node.js 20 or newer with npm is needed, and its package index must be reachable";

fn pip(python: &Path) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
    pip
}

fn install_javascript(list: &Path, folder: &Path) -> Result<(), String> {
    for name in ["package.json", "package-lock.json"] {
        let from = list.with_file_name(name);
        fs::copy(&from, folder.join(name)).map_err(|cause| format!("copying {}: {cause}", from.display()))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(folder);
    install(&mut npm, NODE_HINT)
}

fn install(command: &mut Command, hint: &str) -> Result<(), String> {
    cargo::run(command.stdin(Stdio::null())).map_err(|why| format!("{why}: {hint}"))
}
