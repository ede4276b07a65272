//! What an agent process may reach, enforced by the kernel whatever the process runs.
//!
//! ```text
//!  SandboxConfig ─▶ Sandbox (folders and port of one process) ─ JSON argument ─▶ become-agent ─▶ enforce, then exec
//! ```
//!
//! The supervisor's child restricts itself just before it executes the program, so every process that the program starts
//! is restricted too and nothing can undo it.

#[cfg(target_os = "linux")]
mod enforce;
mod notice;
#[cfg(target_os = "linux")]
mod sockets;
mod support;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::config::{AgentConfig, AgentName, Supervision};
use super::folders::ProcessFolders;

pub(super) use self::notice::notice;
pub use self::support::SandboxSupport;

/// The operator's settings for the sandbox of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Whether there is one.
    pub mode: SandboxMode,
    /// Files and folders that the agent may read, in addition to the system's.
    pub read: Vec<PathBuf>,
    /// Files and folders that the agent may change, in addition to its own.
    pub write: Vec<PathBuf>,
    /// Where it may connect to, in addition to the gateway.
    pub connect: Connect,
}

/// Whether an agent runs in a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// No sandbox.
    Off,
    /// As much of it as the kernel supports.
    #[default]
    BestEffort,
    /// All of it; an agent that would get less is not started.
    Required,
}

/// The TCP ports that an agent may connect to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connect {
    /// Only these.
    Ports(Vec<u16>),
    /// The network is not restricted.
    Any,
}

impl Default for Connect {
    fn default() -> Self {
        Self::Ports(Vec::new())
    }
}

/// What one process may reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sandbox {
    mode: SandboxMode,
    /// May be read and executed. What does not exist is skipped.
    read: Vec<PathBuf>,
    /// May be changed too. What does not exist is skipped.
    write: Vec<PathBuf>,
    /// May be changed too, and must exist: without them the program cannot work.
    own: Vec<PathBuf>,
    /// Where the program sends its model requests.
    gateway_port: u16,
    connect: Connect,
}

/// System folders: programs, libraries and settings that programs need. Some exist only on some distributions.
const SYSTEM: [&str; 14] = [
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/bin",
    "/sbin",
    "/etc",
    "/proc",
    "/sys",
    "/opt",
    "/nix",
    "/gnu",
    "/run/current-system",
    // `/etc/resolv.conf` may be a link into this folder.
    "/run/systemd/resolve",
];

/// Devices without any effect on others.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

impl Sandbox {
    /// The sandbox of a process with these folders; `None` if the agent runs without one.
    pub(super) fn of(config: &AgentConfig, folders: &ProcessFolders, gateway_port: u16) -> Option<Self> {
        let SandboxConfig { mode, read, write, connect } = &config.sandbox;
        if *mode == SandboxMode::Off {
            return None;
        }
        let system = SYSTEM.iter().map(PathBuf::from);
        let devices = DEVICES.iter().map(PathBuf::from);
        Some(Self {
            mode: *mode,
            read: system.chain(installation(&config.program)).chain(read.iter().cloned()).collect(),
            write: devices.chain(write.iter().cloned()).collect(),
            own: vec![config.working_directory(), folders.home(), folders.temp()],
            gateway_port,
            connect: connect.clone(),
        })
    }

    /// As an argument for the supervisor. Fails for paths that are not Unicode.
    pub(super) fn to_json(&self) -> io::Result<String> {
        Ok(serde_json::to_string(self)?)
    }

    /// Restricts this process and all that it will start.
    #[cfg(target_os = "linux")]
    pub(super) fn enforce(&self) -> io::Result<()> {
        enforce::enforce(self)
    }
}

impl SandboxConfig {
    /// The settings as far as this machine can enforce them for an agent that is started this way. Reports what it cannot;
    /// an error if the sandbox is required.
    pub(super) fn enforceable(
        &self,
        agent: &AgentName,
        support: SandboxSupport,
        supervision: Supervision,
    ) -> io::Result<Self> {
        let refused = |why: &str| {
            let problem = format!("agent `{agent}`: `sandbox = \"required\"`, but {why}");
            Err(io::Error::new(io::ErrorKind::Unsupported, problem))
        };
        match self.mode {
            SandboxMode::Required if !support.is_complete() => return refused(&support.to_string()),
            SandboxMode::Required if supervision == Supervision::None => {
                return refused("its processes have no supervisor to enter it");
            }
            SandboxMode::BestEffort if !support.is_complete() => {
                tracing::warn!(%agent, "the agent's sandbox is incomplete: {support}");
            }
            SandboxMode::Off | SandboxMode::BestEffort | SandboxMode::Required => {}
        }
        Ok(self.supported(support, supervision))
    }

    /// What is left of the settings on a machine with this support, for an agent that is started this way.
    fn supported(&self, support: SandboxSupport, supervision: Supervision) -> Self {
        let is_possible = support.files() && supervision == Supervision::OwnProgram;
        Self {
            mode: if is_possible { self.mode } else { SandboxMode::Off },
            connect: if support.network() { self.connect.clone() } else { Connect::Any },
            ..self.clone()
        }
    }
}

/// The files of the program: the program itself, and the folder with its packages if it was installed by a package
/// manager of Node.js. Never the folder it lies in, which may be the operator's home directory.
fn installation(program: &Path) -> Vec<PathBuf> {
    let resolved = program.canonicalize().ok();
    let mut files = Vec::new();
    for path in [Some(program), resolved.as_deref()].into_iter().flatten() {
        let packages =
            path.ancestors().filter(|folder| folder.file_name() == Some(OsStr::new("node_modules")));
        files.extend(packages.last().map(Path::to_owned));
        files.push(path.to_owned());
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn only_the_files_of_the_program_are_readable_and_not_the_folder_around_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let (packages, bin) = (root.join("lib/node_modules"), root.join("bin"));
        let package = packages.join("@vendor/claude/node_modules/inner");
        std::fs::create_dir_all(&package).expect("folders");
        std::fs::create_dir(&bin).expect("a folder");
        let (program, link) = (package.join("claude"), bin.join("claude"));
        std::fs::write(&program, "").expect("a file");
        std::os::unix::fs::symlink(&program, &link).expect("a link");
        assert_eq!(installation(&link), [link.clone(), packages.clone(), program.clone()]);
        assert_eq!(installation(&program), [packages.clone(), program.clone(), packages, program]);
        let alone = root.join("claude");
        std::fs::write(&alone, "").expect("a file");
        assert_eq!(installation(&alone), [alone.clone(), alone]);
        let missing = root.join("missing");
        assert_eq!(installation(&missing), [missing]);
    }

    fn enforceable(
        mode: SandboxMode,
        support: SandboxSupport,
        supervision: Supervision,
    ) -> Option<(SandboxMode, Connect)> {
        let config = SandboxConfig { mode, connect: Connect::Ports(vec![443]), ..SandboxConfig::default() };
        let name = AgentName::new("claude");
        config.enforceable(&name, support, supervision).ok().map(|config| (config.mode, config.connect))
    }

    #[test]
    fn a_sandbox_is_reduced_to_what_the_kernel_supports_unless_it_is_required() {
        use SandboxMode::{BestEffort, Off, Required};
        use SandboxSupport::{Disabled, Landlock, Missing};
        use Supervision::{None as Unsupervised, OwnProgram};
        let ports = Connect::Ports(vec![443]);
        for (mode, support, supervision, expected) in [
            (BestEffort, Landlock(7), OwnProgram, Some((BestEffort, ports.clone()))),
            (BestEffort, Landlock(4), OwnProgram, Some((BestEffort, ports.clone()))),
            (BestEffort, Landlock(3), OwnProgram, Some((BestEffort, Connect::Any))),
            (BestEffort, Disabled, OwnProgram, Some((Off, Connect::Any))),
            (BestEffort, Missing, OwnProgram, Some((Off, Connect::Any))),
            (BestEffort, Landlock(7), Unsupervised, Some((Off, ports.clone()))),
            (Off, Landlock(7), OwnProgram, Some((Off, ports.clone()))),
            (Required, Landlock(6), OwnProgram, Some((Required, ports))),
            (Required, Landlock(5), OwnProgram, None),
            (Required, Missing, OwnProgram, None),
            (Required, Landlock(7), Unsupervised, None),
        ] {
            assert_eq!(enforceable(mode, support, supervision), expected, "{mode:?} with {support:?}");
        }
    }
}
