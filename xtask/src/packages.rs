//! The SDK packages of the suites: which there are, where they are installed, and installing them.
//!
//! Everything goes into `.toolgate-test/` (ignored by git). A stamp holds the list of versions that was installed;
//! as long as it equals the committed list, nothing is fetched.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cargo;

#[derive(Debug, Clone, Copy)]
pub(super) enum Language {
    Python,
    JavaScript,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Vintage {
    Current,
    Older,
}

/// The SDKs of one language and one age.
#[derive(Debug, Clone, Copy)]
pub(super) struct Package {
    pub(super) language: Language,
    pub(super) vintage: Vintage,
}

impl Package {
    /// Makes sure that the committed versions are installed.
    pub(super) fn install_if_missing(self, root: &Path) -> Result<(), String> {
        let folder = self.folder(root);
        let stamp = folder.join("installed-versions");
        let wanted = read(&self.version_list(root))?;
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            println!("{self}: installed");
            return Ok(());
        }
        println!("{self}: installing into {}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|cause| format!("removing {}: {cause}", folder.display()))?;
        }
        fs::create_dir_all(&folder).map_err(|cause| format!("creating {}: {cause}", folder.display()))?;
        match self.language {
            Language::Python => self.install_python(root)?,
            Language::JavaScript => self.install_javascript(root)?,
        }
        fs::write(&stamp, wanted).map_err(|cause| format!("writing {}: {cause}", stamp.display()))
    }

    /// Where the packages are: a Python environment, or a folder with `node_modules`.
    pub(super) fn folder(self, root: &Path) -> PathBuf {
        let language = match self.language {
            Language::Python => "python",
            Language::JavaScript => "node",
        };
        root.join(".toolgate-test").join(format!("{language}-{}", self.vintage.name()))
    }

    pub(super) fn interpreter(self, root: &Path) -> PathBuf {
        match self.language {
            Language::Python => self.folder(root).join("bin/python"),
            Language::JavaScript => PathBuf::from("node"),
        }
    }

    pub(super) fn script(self) -> &'static str {
        match self.language {
            Language::Python => "suite.py",
            Language::JavaScript => "suite.mjs",
        }
    }

    fn version_list(self, root: &Path) -> PathBuf {
        let lists = root.join("tests/sdk");
        match self.language {
            Language::Python => lists.join(format!("requirements-{}.txt", self.vintage.name())),
            Language::JavaScript => lists.join(format!("node-{}/package-lock.json", self.vintage.name())),
        }
    }

    fn install_python(self, root: &Path) -> Result<(), String> {
        let hint =
            "Python 3.10 or newer with its `venv` module is needed (on Debian: python3 and python3-venv)";
        let folder = self.folder(root);
        install(Command::new("python3").args(["-m", "venv"]).arg(&folder), hint)?;
        let mut pip = Command::new(self.interpreter(root));
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-input",
            "--disable-pip-version-check",
            "--requirement",
        ]);
        install(pip.arg(self.version_list(root)), "is the package index reachable?")
    }

    fn install_javascript(self, root: &Path) -> Result<(), String> {
        let list = self.version_list(root);
        let folder = self.folder(root);
        for name in ["package.json", "package-lock.json"] {
            let from = list.with_file_name(name);
            fs::copy(&from, folder.join(name))
                .map_err(|cause| format!("copying {}: {cause}", from.display()))?;
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
            .current_dir(&folder);
        install(&mut npm, "Node.js 20 or newer with npm is needed, and its package index must be reachable")
    }
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let language = match self.language {
            Language::Python => "Python",
            Language::JavaScript => "JavaScript",
        };
        write!(f, "{language}, {}", self.vintage.name())
    }
}

impl Vintage {
    fn name(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Older => "older",
        }
    }
}

fn install(command: &mut Command, hint: &str) -> Result<(), String> {
    cargo::run(command.stdin(Stdio::null())).map_err(|why| format!("{why}: {hint}"))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|cause| format!("reading {}: {cause}", path.display()))
}
