//! `toolgate doctor`: what is there, what is not, and what to do about it.

use std::fmt;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use toolgate_backend::config::{AgentConfig, AgentModel, ProxyConfig, UpstreamConfig};
use toolgate_gateway::approval::ApprovalConfig;
use toolgate_state::StoreUrl;

use crate::announce;
use crate::args::Options;
use crate::config::{self, AGENT_PROGRAM, ANTHROPIC_KEY, Config, FILE_NAME, OPENAI_KEY, Origin};
use crate::environment::Environment;

/// How long to try a host before calling it out of reach.
const REACH_TIMEOUT: Duration = Duration::from_secs(3);

/// Whether the gateway would start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It would.
    Fit,
    /// It would not; the report says why.
    Unfit,
}

/// Looks at everything a start needs and writes one line about each.
pub(crate) fn run(options: &Options, environment: &Environment, out: &mut dyn Write) -> io::Result<Verdict> {
    let origin = config::find(options.config.as_deref(), environment);
    line(out, Mark::Fine, "config", &announce::origin(&origin))?;
    if origin == Origin::BuiltIn {
        let folder =
            environment.config_folder().map(|folder| format!(" or {}", folder.join(FILE_NAME).display()));
        line(
            out,
            Mark::Hint,
            "",
            &format!("to change settings, write ./{FILE_NAME}{}", folder.unwrap_or_default()),
        )?;
    }
    let loaded = match config::load(options.config.as_deref(), options.listen, environment) {
        Ok(loaded) => loaded,
        Err(refused) => {
            line(out, Mark::Bad, "config", &format!("cannot be used:\n{refused}"))?;
            return Ok(Verdict::Unfit);
        }
    };
    for warning in &loaded.warnings {
        line(out, Mark::Hint, "", &warning.to_string())?;
    }
    let config = &loaded.config;
    let port = examine_port(config, out)?;
    let store = examine_store(&config.store, out)?;
    for route in &config.backend.models {
        let who = announce::answered_by(route, &config.backend);
        line(out, Mark::Fine, "model", &format!("{}: {who}", route.pattern))?;
    }
    examine_proxy(&config.backend.proxy, out)?;
    for upstream in &config.backend.upstreams {
        examine_host(upstream, out)?;
    }
    examine_keys(&loaded.origin, environment, out)?;
    examine_approvals(&config.approvals, out)?;
    examine_agents(config, environment, out)?;
    Ok(if port == Verdict::Fit && store == Verdict::Fit { Verdict::Fit } else { Verdict::Unfit })
}

#[derive(Clone, Copy)]
enum Mark {
    Fine,
    Hint,
    Bad,
}

fn line(out: &mut dyn Write, mark: Mark, subject: &str, finding: &str) -> io::Result<()> {
    let mark = match mark {
        Mark::Fine => "ok",
        Mark::Hint => "..",
        Mark::Bad => "!!",
    };
    writeln!(out, "{mark}  {subject:<8} {finding}")
}

fn examine_port(config: &Config, out: &mut dyn Write) -> io::Result<Verdict> {
    let address = config.listen;
    match TcpListener::bind(address) {
        Ok(_) => line(out, Mark::Fine, "listen", &format!("{address} is free"))?,
        Err(cause) => {
            let advice = "stop what listens there (another toolgate?), or choose another with --listen";
            line(out, Mark::Bad, "listen", &format!("{address}: {cause}: {advice}"))?;
            return Ok(Verdict::Unfit);
        }
    }
    Ok(Verdict::Fit)
}

fn examine_store(store: &StoreUrl, out: &mut dyn Write) -> io::Result<Verdict> {
    let StoreUrl::SqliteFile(path) = store else {
        line(out, Mark::Fine, "store", &announce::store(store))?;
        return Ok(Verdict::Fit);
    };
    let shown = path.display();
    if !path.exists() {
        line(out, Mark::Fine, "store", &format!("{shown} will be made at the first start"))?;
        return Ok(Verdict::Fit);
    }
    match std::fs::OpenOptions::new().append(true).open(path) {
        Ok(_) => line(out, Mark::Fine, "store", &shown.to_string())?,
        Err(cause) => {
            line(
                out,
                Mark::Bad,
                "store",
                &format!("{shown}: {cause}: make it yours to write, or name another in `store`"),
            )?;
            return Ok(Verdict::Unfit);
        }
    }
    Ok(Verdict::Fit)
}

fn examine_proxy(proxy: &ProxyConfig, out: &mut dyn Write) -> io::Result<()> {
    let ProxyConfig { https, http, no_proxy } = proxy;
    for (scheme, url) in [("https", https), ("http", http)] {
        let Some(url) = url else { continue };
        let host = url.host().unwrap_or_default();
        let port = url.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
        line(out, Mark::Fine, "proxy", &format!("{host}{port} for {scheme}:// hosts"))?;
    }
    if (https.is_some() || http.is_some()) && !no_proxy.is_empty() {
        line(out, Mark::Fine, "", &format!("except {} (NO_PROXY)", no_proxy.join(", ")))?;
    }
    Ok(())
}

fn examine_host(upstream: &UpstreamConfig, out: &mut dyn Write) -> io::Result<()> {
    let name = &upstream.name;
    let host = upstream.base_url.host().unwrap_or_default();
    let usual_port = if upstream.base_url.scheme_str() == Some("https") { 443 } else { 80 };
    let port = upstream.base_url.port_u16().unwrap_or(usual_port);
    match reach(host, port) {
        Ok(()) => line(out, Mark::Fine, "upstream", &format!("{name} at {host}:{port} can be reached")),
        Err(cause) => {
            let advice = "check `base_url`, the network, and that the host runs";
            line(
                out,
                Mark::Hint,
                "upstream",
                &format!("{name} at {host}:{port} cannot be reached ({cause}): {advice}"),
            )
        }
    }
}

fn reach(host: &str, port: u16) -> io::Result<()> {
    // An IPv6 host stands in brackets in a URL and without them elsewhere.
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    for address in (bare, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, REACH_TIMEOUT) {
            Ok(_) => return Ok(()),
            Err(cause) => last = cause,
        }
    }
    Err(last)
}

fn examine_keys(origin: &Origin, environment: &Environment, out: &mut dyn Write) -> io::Result<()> {
    for (variable, models) in [(ANTHROPIC_KEY, "claude-*"), (OPENAI_KEY, "gpt-* and o*")] {
        match (environment.variable(variable), origin) {
            (Some(_), _) => line(out, Mark::Fine, "key", &format!("{variable} is set"))?,
            (None, Origin::BuiltIn) => {
                line(out, Mark::Hint, "key", &format!("{variable} is not set: export it to use {models}"))?;
            }
            (None, Origin::File(_)) => {}
        }
    }
    Ok(())
}

fn examine_approvals(approvals: &ApprovalConfig, out: &mut dyn Write) -> io::Result<()> {
    if approvals.rules.is_empty() {
        return Ok(());
    }
    let (rules, timeout) = (approvals.rules.len(), approvals.timeout);
    let finding = format!(
        "{rules} in [approvals]; what they leave open waits {timeout:?} for a person, then it is denied"
    );
    line(out, Mark::Fine, "rules", &finding)
}

fn examine_agents(config: &Config, environment: &Environment, out: &mut dyn Write) -> io::Result<()> {
    if config.backend.agents.is_empty() && environment.program(AGENT_PROGRAM).is_none() {
        let advice = "install Claude Code to use it as a back end";
        return line(out, Mark::Hint, "agent", &format!("no `{AGENT_PROGRAM}` on the PATH: {advice}"));
    }
    for agent in &config.backend.agents {
        examine_agent(agent, out)?;
    }
    Ok(())
}

fn examine_agent(agent: &AgentConfig, out: &mut dyn Write) -> io::Result<()> {
    let (name, program) = (&agent.name, agent.program.display());
    match agent_version(&agent.program) {
        Ok(version) if version < OLDEST_AGENT => {
            let finding =
                format!("{name}: {program} is {version}, older than {OLDEST_AGENT}: update Claude Code");
            line(out, Mark::Bad, "agent", &finding)?;
        }
        Ok(version) => line(out, Mark::Fine, "agent", &format!("{name}: {program} is {version}"))?,
        Err(why) => line(out, Mark::Bad, "agent", &format!("{name}: {program} {why}: install Claude Code"))?,
    }
    if agent.model == AgentModel::Default && !announce::has_key(agent) {
        let advice = "add env = { ANTHROPIC_API_KEY = \"env:ANTHROPIC_API_KEY\" }, or `model` to let it think with one \
                      of this gateway's models";
        line(out, Mark::Hint, "", &format!("{name} has no key: {advice}"))?;
    }
    Ok(())
}

/// The oldest program that was tried.
const OLDEST_AGENT: Version = Version([2, 1, 197]);

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Version([u32; 3]);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([major, minor, patch]) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// What the program says of itself, asked without anything of this environment.
fn agent_version(program: &Path) -> Result<Version, String> {
    let said = Command::new(program).arg("--version").env_clear().stdin(Stdio::null()).output();
    let said = said.map_err(|cause| format!("cannot be run ({cause})"))?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let mut numbers = text.split_whitespace().next().unwrap_or_default().split('.').map(str::parse);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch))) => Ok(Version([major, minor, patch])),
        _ => Err("does not tell its version".to_owned()),
    }
}
