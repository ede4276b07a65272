//! The line of the system prompt that tells an agent its limits, so that it does not try to get around them.

use std::fmt::Display;
use std::path::PathBuf;

use super::{Connect, SandboxConfig, SandboxMode};
use crate::agent::config::AgentConfig;

/// The line for the system prompt; `None` for an agent without a sandbox.
pub(in super::super) fn notice(config: &AgentConfig) -> Option<String> {
    let SandboxConfig { mode, read, write, connect } = &config.sandbox;
    if *mode == SandboxMode::Off {
        return None;
    }
    let workdir = config.working_directory();
    let writable = list(&[std::slice::from_ref(&workdir), write].concat());
    let readable = if read.is_empty() { String::new() } else { format!(", in {}", list(read)) };
    let network = match connect {
        Connect::Any => String::new(),
        Connect::Ports(ports) if ports.is_empty() => " Network connections are blocked.".to_owned(),
        Connect::Ports(ports) => {
            format!(" Network connections are possible only to TCP port {}.", enumerate(ports.iter()))
        }
    };
    Some(format!(
        "You run in a sandbox. You can write only below {writable}; temporary files belong in $TMPDIR, not in /tmp. \
         You can read only there{readable} and in system folders such as /usr and /etc.{network} If a task needs more, \
         say so instead of trying to get around these limits."
    ))
}

fn list(paths: &[PathBuf]) -> String {
    enumerate(paths.iter().map(|path| path.display()))
}

/// `a`, `a and b`, `a, b and c`.
fn enumerate(items: impl Iterator<Item = impl Display>) -> String {
    let mut items: Vec<String> = items.map(|item| item.to_string()).collect();
    match items.pop() {
        Some(last) if !items.is_empty() => format!("{} and {last}", items.join(", ")),
        Some(only) => only,
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sandbox: SandboxConfig, expected: Option<&str>) {
        let mut config = AgentConfig::new("claude", "/usr/bin/claude".into(), "/data/claude".into());
        config.workdir = Some("/srv/project".into());
        config.sandbox = sandbox;
        assert_eq!(notice(&config).as_deref(), expected);
    }

    #[test]
    fn the_limits_are_those_of_the_settings() {
        check(
            SandboxConfig::default(),
            Some(
                "You run in a sandbox. You can write only below /srv/project; temporary files belong in $TMPDIR, \
                 not in /tmp. You can read only there and in system folders such as /usr and /etc. Network connections \
                 are blocked. If a task needs more, say so instead of trying to get around these limits.",
            ),
        );
        check(
            SandboxConfig {
                mode: SandboxMode::Required,
                read: vec!["/home/me/.cargo".into()],
                write: vec!["/srv/cache".into()],
                connect: Connect::Ports(vec![443, 80]),
            },
            Some(
                "You run in a sandbox. You can write only below /srv/project and /srv/cache; temporary files belong in \
                 $TMPDIR, not in /tmp. You can read only there, in /home/me/.cargo and in system folders such as /usr \
                 and /etc. Network connections are possible only to TCP port 443 and 80. If a task needs more, say so \
                 instead of trying to get around these limits.",
            ),
        );
    }

    #[test]
    fn an_open_network_is_not_mentioned_and_an_agent_without_a_sandbox_has_no_notice() {
        let open = SandboxConfig { connect: Connect::Any, ..SandboxConfig::default() };
        check(
            open,
            Some(
                "You run in a sandbox. You can write only below /srv/project; temporary files belong in $TMPDIR, \
                 not in /tmp. You can read only there and in system folders such as /usr and /etc. If a task needs more, \
                 say so instead of trying to get around these limits.",
            ),
        );
        check(SandboxConfig { mode: SandboxMode::Off, ..SandboxConfig::default() }, None);
    }
}
