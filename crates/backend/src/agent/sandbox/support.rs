//! What the kernel of this machine can enforce.

use std::fmt;

/// The version of Landlock's interface with rules for files (Linux 5.13).
const WITH_FILES: i32 = 1;

/// The version with rules for TCP ports (Linux 6.7).
const WITH_NETWORK: i32 = 4;

/// The version that restricts signals and abstract Unix sockets (Linux 6.12).
const WITH_SCOPES: i32 = 6;

/// What the kernel of this machine can enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxSupport {
    /// The kernel has no Landlock, or this is not Linux.
    Missing,
    /// The kernel has Landlock, but it is not enabled.
    Disabled,
    /// This version of Landlock's interface.
    Landlock(i32),
}

impl SandboxSupport {
    /// Asks the kernel.
    pub fn of_this_machine() -> Self {
        probe()
    }

    /// Whether file access can be restricted.
    pub fn files(self) -> bool {
        self.has(WITH_FILES)
    }

    /// Whether TCP connections can be restricted.
    pub fn network(self) -> bool {
        self.has(WITH_NETWORK)
    }

    /// Whether everything that a sandbox consists of can be enforced.
    pub fn is_complete(self) -> bool {
        self.has(WITH_SCOPES)
    }

    fn has(self, version: i32) -> bool {
        match self {
            Self::Missing | Self::Disabled => false,
            Self::Landlock(supported) => supported >= version,
        }
    }
}

impl fmt::Display for SandboxSupport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = match self {
            Self::Missing => return f.write_str("this system has no Landlock (Linux 5.13 or newer has it)"),
            Self::Disabled => {
                return f.write_str("Landlock is not enabled: add `landlock` to the kernel parameter `lsm=`");
            }
            Self::Landlock(version) => version,
        };
        write!(f, "Landlock version {version}: the kernel restricts ")?;
        match (self.network(), self.is_complete()) {
            (_, true) => f.write_str("files, TCP connections, signals and abstract sockets"),
            (true, false) => {
                f.write_str("files and TCP connections, but not signals and abstract sockets (Linux 6.12)")
            }
            (false, false) => f.write_str(
                "files, but neither TCP connections (Linux 6.7) nor signals and abstract sockets (Linux 6.12)",
            ),
        }
    }
}

/// Only a thread that restricts itself learns the version. Nothing else runs on it, and it ends at once.
#[cfg(target_os = "linux")]
fn probe() -> SandboxSupport {
    use landlock::{AccessFs, LandlockStatus, Ruleset, RulesetAttr};

    let restrict = || Ruleset::default().handle_access(AccessFs::MakeBlock)?.create()?.restrict_self();
    let outcome = std::thread::spawn(restrict).join();
    let status = outcome.ok().and_then(|restricted| match restricted {
        Ok(status) => Some(status.landlock),
        Err(error) => {
            tracing::debug!(%error, "asking for Landlock's version failed");
            None
        }
    });
    match status {
        Some(LandlockStatus::Available { effective_abi, kernel_abi }) => {
            SandboxSupport::Landlock(kernel_abi.unwrap_or(effective_abi as i32))
        }
        Some(LandlockStatus::NotEnabled) => SandboxSupport::Disabled,
        Some(LandlockStatus::NotImplemented) | None => SandboxSupport::Missing,
    }
}

#[cfg(not(target_os = "linux"))]
fn probe() -> SandboxSupport {
    SandboxSupport::Missing
}
