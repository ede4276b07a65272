//! A system call filter for the ways around Landlock's rules. Landlock restricts TCP and abstract Unix sockets, but it
//! does not see
//!
//! - sockets with a path: the session bus, a terminal multiplexer or a container engine would run any command outside;
//! - other protocols: UDP, and Multipath TCP, which also speaks with plain TCP hosts;
//! - connections that a `send` with TCP Fast Open establishes;
//! - what `io_uring` does for a process, which no filter sees.

use std::collections::BTreeMap;
use std::io;

use libc::{c_int, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use super::Connect;

/// The part of a socket's type that is not a flag.
const TYPE_MASK: u64 = 0xf;

/// Types of internet sockets other than streams and datagrams. `SOCK_PACKET` is obsolete and has no constant.
const OTHER_TYPES: [c_int; 5] = [libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET, libc::SOCK_DCCP, 10];

/// Marks the system calls of x86-64's second interface, whose numbers would pass the filter.
#[cfg(target_arch = "x86_64")]
const X32: c_long = 0x4000_0000;

/// Restricts the sockets of this process and all that it will start.
pub(super) fn restrict(connect: &Connect) -> io::Result<()> {
    let program = program(connect).map_err(io::Error::other)?;
    seccompiler::apply_filter(&program).map_err(io::Error::other)
}

fn program(connect: &Connect) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules = BTreeMap::new();
    for (call, denied) in rules_for(connect)? {
        #[cfg(target_arch = "x86_64")]
        rules.insert(call | X32, denied.clone());
        rules.insert(call, denied);
    }
    let denied = SeccompAction::Errno(libc::EACCES.unsigned_abs());
    let machine = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, denied, machine)?.try_into()
}

type Rules = Vec<(c_long, Vec<SeccompRule>)>;

/// The denied calls; an empty list denies all of them.
fn rules_for(connect: &Connect) -> Result<Rules, seccompiler::BackendError> {
    let mut sockets = vec![SeccompRule::new(other_families()?)?];
    // A pair is already connected, except that a datagram socket can be connected again.
    let pairs = vec![SeccompRule::new(vec![has_type(libc::SOCK_DGRAM)?])?];
    let mut rules = vec![(libc::SYS_io_uring_setup, Vec::new()), (libc::SYS_socketpair, pairs)];
    if let Connect::Ports(ports) = connect {
        // Names are resolved over UDP.
        let datagrams = ports.is_empty().then_some(libc::SOCK_DGRAM);
        for denied in OTHER_TYPES.into_iter().chain(datagrams) {
            sockets.push(SeccompRule::new(vec![is_not(0, libc::AF_NETLINK)?, has_type(denied)?])?);
        }
        sockets.push(SeccompRule::new(other_protocols()?)?);
        for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            rules.push((call, vec![SeccompRule::new(vec![has_flag(flags, libc::MSG_FASTOPEN)?])?]));
        }
    }
    rules.push((libc::SYS_socket, sockets));
    Ok(rules)
}

/// Everything but the internet, and the kernel's own information about the network.
fn other_families() -> Result<Vec<SeccompCondition>, seccompiler::BackendError> {
    [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].into_iter().map(|family| is_not(0, family)).collect()
}

fn other_protocols() -> Result<Vec<SeccompCondition>, seccompiler::BackendError> {
    let known =
        [libc::IPPROTO_IP, libc::IPPROTO_TCP, libc::IPPROTO_UDP].into_iter().map(|known| is_not(2, known));
    known.chain([is_not(0, libc::AF_NETLINK)]).collect()
}

fn is_not(argument: u8, value: c_int) -> Result<SeccompCondition, seccompiler::BackendError> {
    let value = u64::from(value.unsigned_abs());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn has_type(kind: c_int) -> Result<SeccompCondition, seccompiler::BackendError> {
    let kind = u64::from(kind.unsigned_abs());
    SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(TYPE_MASK), kind)
}

fn has_flag(argument: u8, flag: c_int) -> Result<SeccompCondition, seccompiler::BackendError> {
    let flag = u64::from(flag.unsigned_abs());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag)
}
