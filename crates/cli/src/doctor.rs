//! `toolgate doctor`: checks this machine, one line per finding, with advice.

use std::fmt;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use toolgate_backend::SandboxSupport;
use toolgate_backend::config::{AgentConfig, AgentModel, ProxyConfig, UpstreamConfig};
use toolgate_gateway::approval::ApprovalConfig;
use toolgate_state::StoreUrl;

use crate::announce;
use crate::args::Options;
use crate::config::{self, AGENT_PROGRAM, ANTHROPIC_KEY, Config, ConfigSource, FILE_NAME, OPENAI_KEY};
use crate::environment::Environment;
use crate::sandbox_report;

/// How long to try to connect to a host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Whether the gateway would start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// Yes.
    Ready,
    /// No; the report says why.
    NotReady,
}

/// Checks everything that a start needs and prints one line for each finding.
pub(crate) fn run(
    options: &Options,
    environment: &Environment,
    out: &mut dyn Write,
) -> io::Result<Readiness> {
    let source = config::find(options.config.as_deref(), environment);
    line(out, Status::Ok, "config", &announce::source(&source))?;
    if source == ConfigSource::BuiltIn {
        let folder =
            environment.config_folder().map(|folder| format!(" or {}", folder.join(FILE_NAME).display()));
        line(
            out,
            Status::Hint,
            "",
            &format!("to change settings, write ./{FILE_NAME}{}", folder.unwrap_or_default()),
        )?;
    }
    let loaded = match config::load(options.config.as_deref(), options.listen, environment) {
        Ok(loaded) => loaded,
        Err(errors) => {
            line(out, Status::Error, "config", &format!("cannot be used:\n{errors}"))?;
            return Ok(Readiness::NotReady);
        }
    };
    for warning in &loaded.warnings {
        line(out, Status::Hint, "", &warning.to_string())?;
    }
    let config = &loaded.config;
    let port = check_port(config, out)?;
    let store = check_store(&config.store, out)?;
    for route in &config.backend.models {
        let who = announce::answered_by(route, &config.backend);
        line(out, Status::Ok, "model", &format!("{}: {who}", route.pattern))?;
    }
    check_proxy(&config.backend.proxy, out)?;
    for upstream in &config.backend.upstreams {
        check_host(upstream, out)?;
    }
    check_keys(&loaded.source, environment, out)?;
    check_approvals(&config.approvals, out)?;
    check_agents(config, environment, out)?;
    let sandboxes = check_sandboxes(&config.backend.agents, out)?;
    let is_ready = [port, store, sandboxes].iter().all(|readiness| *readiness == Readiness::Ready);
    Ok(if is_ready { Readiness::Ready } else { Readiness::NotReady })
}

#[derive(Clone, Copy)]
enum Status {
    Ok,
    Hint,
    Error,
}

fn line(out: &mut dyn Write, status: Status, subject: &str, finding: &str) -> io::Result<()> {
    let mark = match status {
        Status::Ok => "ok",
        Status::Hint => "..",
        Status::Error => "!!",
    };
    writeln!(out, "{mark}  {subject:<8} {finding}")
}

fn check_port(config: &Config, out: &mut dyn Write) -> io::Result<Readiness> {
    let address = config.listen;
    match TcpListener::bind(address) {
        Ok(_) => line(out, Status::Ok, "listen", &format!("{address} is free"))?,
        Err(cause) => {
            let advice = "stop the program that listens there (another toolgate?), or use --listen";
            line(out, Status::Error, "listen", &format!("{address}: {cause}: {advice}"))?;
            return Ok(Readiness::NotReady);
        }
    }
    Ok(Readiness::Ready)
}

fn check_store(store: &StoreUrl, out: &mut dyn Write) -> io::Result<Readiness> {
    let StoreUrl::SqliteFile(path) = store else {
        line(out, Status::Ok, "store", &announce::store(store))?;
        return Ok(Readiness::Ready);
    };
    let shown = path.display();
    if !path.exists() {
        line(out, Status::Ok, "store", &format!("{shown} will be created at the first start"))?;
        return Ok(Readiness::Ready);
    }
    match std::fs::OpenOptions::new().append(true).open(path) {
        Ok(_) => line(out, Status::Ok, "store", &shown.to_string())?,
        Err(cause) => {
            line(
                out,
                Status::Error,
                "store",
                &format!("{shown}: {cause}: check its permissions, or set `store` to another file"),
            )?;
            return Ok(Readiness::NotReady);
        }
    }
    Ok(Readiness::Ready)
}

fn check_proxy(proxy: &ProxyConfig, out: &mut dyn Write) -> io::Result<()> {
    let ProxyConfig { https, http, no_proxy } = proxy;
    for (scheme, url) in [("https", https), ("http", http)] {
        let Some(url) = url else { continue };
        let host = url.host().unwrap_or_default();
        let port = url.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
        line(out, Status::Ok, "proxy", &format!("{host}{port} for {scheme}:// hosts"))?;
    }
    if (https.is_some() || http.is_some()) && !no_proxy.is_empty() {
        line(out, Status::Ok, "", &format!("except {} (NO_PROXY)", no_proxy.join(", ")))?;
    }
    Ok(())
}

fn check_host(upstream: &UpstreamConfig, out: &mut dyn Write) -> io::Result<()> {
    let name = &upstream.name;
    let host = upstream.base_url.host().unwrap_or_default();
    let default_port = if upstream.base_url.scheme_str() == Some("https") { 443 } else { 80 };
    let port = upstream.base_url.port_u16().unwrap_or(default_port);
    match connect(host, port) {
        Ok(()) => line(out, Status::Ok, "upstream", &format!("{name} at {host}:{port} is reachable")),
        Err(cause) => {
            let advice = "check `base_url`, the network and the host";
            line(
                out,
                Status::Hint,
                "upstream",
                &format!("{name} at {host}:{port} is not reachable ({cause}): {advice}"),
            )
        }
    }
}

fn connect(host: &str, port: u16) -> io::Result<()> {
    // A URL has brackets around an IPv6 address.
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (bare, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(_) => return Ok(()),
            Err(cause) => last = cause,
        }
    }
    Err(last)
}

fn check_keys(source: &ConfigSource, environment: &Environment, out: &mut dyn Write) -> io::Result<()> {
    for (variable, models) in [(ANTHROPIC_KEY, "claude-*"), (OPENAI_KEY, "gpt-* and o*")] {
        match (environment.variable(variable), source) {
            (Some(_), _) => line(out, Status::Ok, "key", &format!("{variable} is set"))?,
            (None, ConfigSource::BuiltIn) => {
                line(out, Status::Hint, "key", &format!("{variable} is not set: export it to use {models}"))?;
            }
            (None, ConfigSource::File(_)) => {}
        }
    }
    Ok(())
}

fn check_approvals(approvals: &ApprovalConfig, out: &mut dyn Write) -> io::Result<()> {
    if approvals.rules.is_empty() {
        return Ok(());
    }
    let rules = approvals.rules.len();
    let wait = approvals.timeout.map_or_else(|| "for ever".to_owned(), |timeout| format!("{timeout:?}"));
    let finding = format!("{rules} in [approvals]; other questions wait {wait} for a person");
    line(out, Status::Ok, "rules", &finding)
}

fn check_agents(config: &Config, environment: &Environment, out: &mut dyn Write) -> io::Result<()> {
    if config.backend.agents.is_empty() && environment.program(AGENT_PROGRAM).is_none() {
        let advice = "install Claude Code to use it as a back end";
        return line(out, Status::Hint, "agent", &format!("no `{AGENT_PROGRAM}` on the PATH: {advice}"));
    }
    for agent in &config.backend.agents {
        check_agent(agent, out)?;
    }
    Ok(())
}

fn check_agent(agent: &AgentConfig, out: &mut dyn Write) -> io::Result<()> {
    let (name, program) = (&agent.name, agent.program.display());
    match agent_version(&agent.program) {
        Ok(version) if version < OLDEST_AGENT => {
            let finding = format!(
                "{name}: {program} is {version}, older than the supported {OLDEST_AGENT}: update Claude Code"
            );
            line(out, Status::Error, "agent", &finding)?;
        }
        Ok(version) => line(out, Status::Ok, "agent", &format!("{name}: {program} is {version}"))?,
        Err(why) => {
            line(out, Status::Error, "agent", &format!("{name}: {program} {why}: install Claude Code"))?;
        }
    }
    if agent.model == AgentModel::Default && !agent.has_own_host() {
        let advice = "add env = { ANTHROPIC_API_KEY = \"env:ANTHROPIC_API_KEY\" }, or `model` to use one of this \
                      gateway's models";
        line(out, Status::Hint, "", &format!("{name} has no key: {advice}"))?;
    }
    Ok(())
}

/// Shows what this machine can enforce and what each agent may reach.
fn check_sandboxes(agents: &[AgentConfig], out: &mut dyn Write) -> io::Result<Readiness> {
    let support = SandboxSupport::of_this_machine();
    let status = if support.is_complete() { Status::Ok } else { Status::Hint };
    line(out, status, "sandbox", &support.to_string())?;
    let mut readiness = Readiness::Ready;
    for agent in agents {
        let name = &agent.name;
        line(out, Status::Ok, "", &format!("{name}: {}", sandbox_report::reach(agent, support)))?;
        for warning in sandbox_report::warnings(agent) {
            line(out, Status::Hint, "", &format!("{name}: {warning}"))?;
        }
        if let Some(problem) = sandbox_report::unmet_requirement(agent, support) {
            line(out, Status::Error, "", &format!("{name}: {problem}"))?;
            readiness = Readiness::NotReady;
        }
    }
    Ok(readiness)
}

/// The oldest tested version.
const OLDEST_AGENT: Version = Version([2, 1, 197]);

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Version([u32; 3]);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([major, minor, patch]) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// Runs the program with `--version`, in an empty environment.
fn agent_version(program: &Path) -> Result<Version, String> {
    let output = Command::new(program).arg("--version").env_clear().stdin(Stdio::null()).output();
    let output = output.map_err(|cause| format!("cannot be run ({cause})"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = text.split_whitespace().next().unwrap_or_default().split('.').map(str::parse);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch))) => Ok(Version([major, minor, patch])),
        _ => Err("prints no version".to_owned()),
    }
}
