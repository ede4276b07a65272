//! What the kernel keeps each agent from, for `toolgate check` and `toolgate doctor`.

use std::fmt::Display;
use std::io::Write;
use std::path::Path;

use toolgate_backend::SandboxSupport;
use toolgate_backend::config::{AgentConfig, Connect, SandboxConfig, SandboxMode};

/// Prints one line per agent, and what this machine can enforce.
pub(crate) fn print(
    agents: &[AgentConfig],
    support: SandboxSupport,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    if agents.is_empty() {
        return Ok(());
    }
    writeln!(out, "sandbox: {support}")?;
    for agent in agents {
        writeln!(out, "agent {}: {}", agent.name, reach(agent, support))?;
        for warning in warnings(agent) {
            writeln!(out, "  warning: {warning}")?;
        }
        if let Some(problem) = unmet_requirement(agent, support) {
            anyhow::bail!("agent {}: {problem}", agent.name);
        }
    }
    Ok(())
}

/// Why the gateway will not start with this agent.
pub(crate) fn unmet_requirement(agent: &AgentConfig, support: SandboxSupport) -> Option<String> {
    let is_unmet = agent.sandbox.mode == SandboxMode::Required && !support.is_complete();
    is_unmet.then(|| format!("`sandbox = \"required\"`, but {support}"))
}

/// What an agent may reach on this machine.
pub(crate) fn reach(agent: &AgentConfig, support: SandboxSupport) -> String {
    let SandboxConfig { mode, read, write, connect } = &agent.sandbox;
    if *mode == SandboxMode::Off {
        return "no sandbox (`sandbox = false`): it can do what your user can do".to_owned();
    }
    if !support.files() {
        return "no sandbox on this machine: it can do what your user can do".to_owned();
    }
    let shown = |paths: &[std::path::PathBuf]| join(paths.iter().map(|path| path.display()));
    let workdir = agent.working_directory();
    let writable = shown(&[std::slice::from_ref(&workdir), write].concat());
    let readable = if read.is_empty() { String::new() } else { format!(", {}", shown(read)) };
    let network = match connect {
        Connect::Ports(_) if !support.network() => {
            "anywhere, because this kernel cannot restrict it".to_owned()
        }
        Connect::Any => "anywhere".to_owned(),
        Connect::Ports(ports) if ports.is_empty() => "this gateway".to_owned(),
        Connect::Ports(ports) => format!("this gateway and port {}", join(ports.iter())),
    };
    format!(
        "in a sandbox: writes {writable}; reads these{readable} and system folders; connects to {network}"
    )
}

/// What the operator probably did not intend.
pub(crate) fn warnings(agent: &AgentConfig) -> Vec<String> {
    let workdir = agent.working_directory();
    if agent.sandbox.mode == SandboxMode::Off || !workdir.exists() {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    let resolved = workdir.canonicalize().unwrap_or_else(|_| workdir.clone());
    let folder = agent.folder.canonicalize().unwrap_or_else(|_| agent.folder.clone());
    if folder.starts_with(&resolved) {
        warnings.push(format!(
            "{} contains toolgate's own files ({}): the agent can read and change them",
            workdir.display(),
            folder.display()
        ));
    }
    let folders = agent.sandbox.write.iter().map(AsRef::as_ref).chain([workdir.as_path()]);
    for folder in folders.filter(|folder| belongs_to_another_user(folder)) {
        warnings.push(format!(
            "{} belongs to another user: without capabilities, the agent may have no rights there, even as root",
            folder.display()
        ));
    }
    warnings
}

fn join(items: impl Iterator<Item = impl Display>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(unix)]
fn belongs_to_another_user(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    const WRITABLE_FOR_ALL: u32 = 0o002;
    let own = std::fs::metadata("/proc/self").map(|process| process.uid());
    let metadata = std::fs::metadata(folder);
    own.is_ok_and(|own| {
        metadata.is_ok_and(|folder| folder.uid() != own && folder.mode() & WRITABLE_FOR_ALL == 0)
    })
}

#[cfg(not(unix))]
fn belongs_to_another_user(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPLETE: SandboxSupport = SandboxSupport::Landlock(6);

    fn agent(sandbox: SandboxConfig) -> AgentConfig {
        let agent = AgentConfig::new("claude", "/bin/claude".into(), "/data/agents/claude".into());
        AgentConfig { sandbox, workdir: Some("/srv/project".into()), ..agent }
    }

    fn check(sandbox: SandboxConfig, support: SandboxSupport, expected: &str) {
        assert_eq!(reach(&agent(sandbox), support), expected);
    }

    #[test]
    fn the_reach_of_an_agent_depends_on_its_settings_and_on_the_kernel() {
        let open = SandboxConfig {
            read: vec!["/home/me/.cargo".into()],
            write: vec!["/srv/cache".into()],
            connect: Connect::Ports(vec![443, 80]),
            ..SandboxConfig::default()
        };
        check(
            SandboxConfig::default(),
            COMPLETE,
            "in a sandbox: writes /srv/project; reads these and system folders; connects to this gateway",
        );
        check(
            open.clone(),
            COMPLETE,
            "in a sandbox: writes /srv/project, /srv/cache; reads these, /home/me/.cargo and system folders; connects \
             to this gateway and port 443, 80",
        );
        check(
            open.clone(),
            SandboxSupport::Landlock(3),
            "in a sandbox: writes /srv/project, /srv/cache; reads these, /home/me/.cargo and system folders; connects \
             to anywhere, because this kernel cannot restrict it",
        );
        check(open, SandboxSupport::Missing, "no sandbox on this machine: it can do what your user can do");
        let off = SandboxConfig { mode: SandboxMode::Off, ..SandboxConfig::default() };
        check(off, COMPLETE, "no sandbox (`sandbox = false`): it can do what your user can do");
    }

    #[test]
    fn a_required_sandbox_needs_complete_support() {
        let required = agent(SandboxConfig { mode: SandboxMode::Required, ..SandboxConfig::default() });
        assert_eq!(unmet_requirement(&required, COMPLETE), None);
        for support in [SandboxSupport::Landlock(5), SandboxSupport::Disabled, SandboxSupport::Missing] {
            assert!(unmet_requirement(&required, support).is_some(), "{support}");
            assert_eq!(unmet_requirement(&agent(SandboxConfig::default()), support), None);
        }
    }

    #[test]
    fn a_working_directory_around_toolgates_own_files_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let private = folder.path().join("agents/claude");
        std::fs::create_dir_all(&private).unwrap();
        let agent = |workdir: &Path| AgentConfig {
            workdir: Some(workdir.to_owned()),
            ..AgentConfig::new("claude", "/bin/claude".into(), private.clone())
        };
        assert_eq!(warnings(&agent(Path::new("/"))).len(), 1);
        assert_eq!(warnings(&agent(folder.path())).len(), 1);
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(warnings(&agent(elsewhere.path())), Vec::<String>::new());
    }
}
