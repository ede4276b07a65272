//! Restricts the current process: Landlock for files, TCP, signals and abstract sockets; a filter for other sockets; no
//! capabilities; no new privileges.

use std::io;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

use super::{Connect, Sandbox, SandboxMode, sockets};

/// The newest version of Landlock's interface that is used. Older kernels enforce what they know of it.
const VERSION: ABI = ABI::V6;

/// The number of bits in a set of capabilities.
const MAX_CAPABILITIES: u32 = u64::BITS;

pub(super) fn enforce(sandbox: &Sandbox) -> io::Result<()> {
    // The folders are opened while this process can still reach them.
    let ruleset = ruleset(sandbox)?;
    set_no_new_privs(true)?;
    drop_capabilities()?;
    ruleset.restrict_self().map_err(io::Error::other)?;
    sockets::restrict(&sandbox.connect)
}

fn ruleset(sandbox: &Sandbox) -> io::Result<RulesetCreated> {
    let Sandbox { mode, read, write, own, gateway_port, connect } = sandbox;
    let level = match mode {
        SandboxMode::Required => CompatLevel::HardRequirement,
        SandboxMode::Off | SandboxMode::BestEffort => CompatLevel::BestEffort,
    };
    let empty = empty_ruleset(level, connect).map_err(io::Error::other)?;
    let mut own_folders = Vec::with_capacity(own.len());
    for folder in own {
        own_folders.push(open(folder)?);
    }
    let all = AccessFs::from_all(VERSION);
    let with_rules = empty
        .add_rules(path_beneath_rules(read, AccessFs::from_read(VERSION)))
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(write, all)))
        .and_then(|ruleset| {
            ruleset.add_rules(
                own_folders.into_iter().map(|folder| Ok::<_, RulesetError>(PathBeneath::new(folder, all))),
            )
        })
        .and_then(|ruleset| match connect {
            Connect::Any => Ok(ruleset),
            Connect::Ports(ports) => ruleset.add_rules(
                ports
                    .iter()
                    .chain([gateway_port])
                    .map(|port| Ok::<_, RulesetError>(NetPort::new(*port, AccessNet::ConnectTcp))),
            ),
        });
    with_rules.map_err(io::Error::other)
}

/// A ruleset that allows nothing of what it covers.
fn empty_ruleset(level: CompatLevel, connect: &Connect) -> Result<RulesetCreated, RulesetError> {
    let files = Ruleset::default()
        .set_compatibility(level)
        .handle_access(AccessFs::from_all(VERSION))?
        .scope(Scope::from_all(VERSION))?;
    match connect {
        Connect::Any => files.create(),
        Connect::Ports(_) => files.handle_access(AccessNet::from_all(VERSION))?.create(),
    }
}

fn open(folder: &Path) -> io::Result<PathFd> {
    PathFd::new(folder).map_err(|error| io::Error::other(format!("opening {}: {error}", folder.display())))
}

/// Even without rights to files, root could read the memory of other processes with some capabilities.
fn drop_capabilities() -> io::Result<()> {
    for number in 0..MAX_CAPABILITIES {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            // The kernel knows no more of them, or this process had no right to have them anyway.
            Err(Errno::INVAL | Errno::PERM) => break,
            Err(error) => return Err(error.into()),
        }
    }
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}
