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
        if supervision == Supervision::None && self.mode == SandboxMode::Required {
            let problem = format!("agent `{agent}`: `sandbox = \"required\"` needs Supervision::OwnProgram");
            return Err(io::Error::new(io::ErrorKind::Unsupported, problem));
        }
        match (self.mode, support.is_complete()) {
            (SandboxMode::Required, false) => {
                let problem = format!("agent `{agent}`: `sandbox = \"required\"`, but {support}");
                return Err(io::Error::new(io::ErrorKind::Unsupported, problem));
            }
            (SandboxMode::BestEffort, false) if supervision == Supervision::OwnProgram => {
                tracing::warn!(%agent, "the agent's sandbox is incomplete: {support}");
            }
            (SandboxMode::Off | SandboxMode::BestEffort | SandboxMode::Required, _) => {}
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
