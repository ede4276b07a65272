//! The servers for test suites in other languages: a scripted model that serves all three upstream dialects, and the
//! gateway in front of it, and another host if a suite needs one. All end when [`TestServers`] is dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toolgate_tether::Tethered;

use crate::cargo;
use crate::report::StepResult;
use crate::test::run_counting;

/// The upstream dialects by the first letter of a model name: `c/text-16` is the case `text-16` on a Chat Completions
/// host.
pub(crate) const HOSTS: &[(&str, &str)] =
    &[("m", "anthropic-messages"), ("c", "openai-chat"), ("r", "openai-responses")];

/// The cases of the scripted model.
const CASES: &[&str] =
    &["text-16", "parallel", "reasoning", "echo", "error-429", "error-400", "length", "cut"];

pub(crate) struct TestServers {
    // Dropped in this order: the gateway ends before its hosts.
    _gateway: Tethered,
    _scripted_model: Tethered,
    _other_host: Option<Tethered>,
    program: PathBuf,
    gateway_url: String,
    model_url: String,
    folder: PathBuf,
}

/// Agents behind the gateway: (name, program). Each uses the scripted play of its name.
pub(crate) type Agents = [(&'static str, PathBuf)];

impl TestServers {
    /// Builds and starts both servers. The store and the logs are in a folder with this name.
    pub(crate) fn start(root: &Path, name: &str) -> Result<Self, String> {
        Self::with_agents(root, name, &[])
    }

    /// The same with agents. Each has a second entry `NAME-tools` with a built-in tool.
    pub(crate) fn with_agents(root: &Path, name: &str, agents: &Agents) -> Result<Self, String> {
        Self::with_additions(root, name, |_, model_url| Ok((None, agents_text(model_url, agents))))
    }

    /// The same with another host. `start` gets the folder for its log, and returns the host with its part of the
    /// gateway's config.
    pub(crate) fn with_host(
        root: &Path,
        name: &str,
        start: impl FnOnce(&Path) -> Result<(Tethered, String), String>,
    ) -> Result<Self, String> {
        Self::with_additions(root, name, |folder, _| start(folder).map(|(host, config)| (Some(host), config)))
    }

    /// `additions` gets the folder and the scripted model's URL, and returns another host and more of the config.
    fn with_additions(
        root: &Path,
        name: &str,
        additions: impl FnOnce(&Path, &str) -> Result<(Option<Tethered>, String), String>,
    ) -> Result<Self, String> {
        let arguments = ["--quiet", "--package", "toolgate", "--package", "toolgate-testkit", "--bins"];
        let [gateway, scripted_model] = cargo::build(root, &arguments, ["toolgate", "scripted-model"])?;
        let folder = root.join(".toolgate-test").join(name);
        if folder.exists() {
            // Removes the store of an earlier run.
            fs::remove_dir_all(&folder).map_err(|cause| format!("clearing {}: {cause}", folder.display()))?;
        }
        fs::create_dir_all(&folder).map_err(|cause| format!("creating {}: {cause}", folder.display()))?;

        let mut scripted_model = Tethered::start(&scripted_model, &[], &folder.join("scripted-model.log"))
            .map_err(|cause| format!("starting the scripted model: {cause}"))?;
        let model_url =
            scripted_model.wait_for_url().map_err(|cause| format!("starting the scripted model: {cause}"))?;

        let config = folder.join("toolgate.toml");
        let store = folder.join("toolgate.db");
        let (other_host, more_config) = additions(&folder, &model_url)?;
        let text = config_text(&model_url, &store) + &more_config;
        fs::write(&config, text).map_err(|cause| format!("writing {}: {cause}", config.display()))?;
        // Agents write to the home folder, which must not be the user's.
        let home = format!("HOME={}", folder.display());
        let (program, config) = (gateway, config.to_string_lossy());
        let arguments = [home.as_str(), &program.to_string_lossy(), "--config", &config];
        let mut gateway = Tethered::start(Path::new("env"), &arguments, &folder.join("toolgate.log"))
            .map_err(|cause| format!("starting the gateway: {cause}"))?;
        let gateway_url = gateway.wait_for_url().map_err(|cause| format!("starting the gateway: {cause}"))?;
        println!("the gateway (process {}) listens on {gateway_url}", gateway.pid());
        Ok(Self {
            _gateway: gateway,
            _scripted_model: scripted_model,
            _other_host: other_host,
            program,
            gateway_url,
            model_url,
            folder,
        })
    }
}

/// Runs a suite with the gateway's URL in `GATEWAY`, its program in `TOOLGATE` and the scripted model's URL in
/// `SCRIPTED_MODEL`.
pub(crate) fn run_suite(servers: &Result<TestServers, String>, command: &mut Command) -> StepResult {
    let Ok(servers) = servers else {
        return StepResult::plain(Err("not run, because the gateway did not start".to_owned()));
    };
    let chosen: Vec<_> =
        command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
    // The SDKs read keys, URLs and proxies from the environment; a suite must not depend on the user's.
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    for (name, value) in chosen {
        command.env(name, value.unwrap_or_default());
    }
    command
        .env("GATEWAY", &servers.gateway_url)
        .env("TOOLGATE", &servers.program)
        .env("SCRIPTED_MODEL", &servers.model_url)
        .env("PYTHONUNBUFFERED", "1")
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let (counts, result) = run_counting(command);
    let nothing_ran = counts.passed == 0 && result.is_ok();
    let result = if nothing_ran { Err("the suite ran no checks".to_owned()) } else { result };
    let log = servers.folder.join("toolgate.log");
    StepResult::counted(
        counts,
        result.map_err(|why| format!("{why}; the gateway's log is {}", log.display())),
    )
}

fn config_text(model_url: &str, store: &Path) -> String {
    let mut text = format!("listen = \"127.0.0.1:0\"\nstore = \"sqlite:{}\"\n", store.display());
    let mut add = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    for (host, dialect) in HOSTS {
        // The scripted errors are permanent, so retries would only take time.
        add(&format!(
            "\n[upstreams.{host}]\ndialect = \"{dialect}\"\nbase_url = \"{model_url}\"\napi_key = \"sk-test\"\nretries = 0"
        ));
        for case in CASES {
            add(&format!("\n[models.\"{host}/{case}\"]\nupstream = \"{host}\"\nmodel = \"{case}\""));
        }
        // The plays of the scripted model, for prompted tools.
        add(&format!("\n[models.\"p{host}/*\"]\nupstream = \"{host}\"\ntools = \"prompted\""));
    }
    text
}

fn agents_text(model_url: &str, agents: &Agents) -> String {
    let host = model_url.trim_end_matches("/v1");
    let agent = |name: &str, program: &Path, tools: &str| {
        format!(
            "\n[agents.{name}]\ncommand = \"{program}\"\ntools = [{tools}]\nwarm = 1\nmax = 2\n\
             env = {{ ANTHROPIC_BASE_URL = \"{host}\", ANTHROPIC_API_KEY = \"k\", ANTHROPIC_MODEL = \"play/{name}\" }}\n\
             \n[models.{name}]\nagent = \"{name}\"\n",
            program = program.display(),
        )
    };
    let both = |(name, program): &(&'static str, PathBuf)| {
        agent(name, program, "") + &agent(&format!("{name}-tools"), program, "\"Bash\"")
    };
    if agents.is_empty() {
        return String::new();
    }
    let rules = "\n[approvals]\nrules = [\"allow Bash(echo:*)\"]\n".to_owned();
    rules + &agents.iter().map(both).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_an_entry_without_and_one_with_tools_and_its_own_play() {
        let text = agents_text("http://127.0.0.1:9/v1", &[("older", PathBuf::from("/bin/claude"))]);
        for line in [
            "[agents.older]\ncommand = \"/bin/claude\"\ntools = []\n",
            "[agents.older-tools]\ncommand = \"/bin/claude\"\ntools = [\"Bash\"]\n",
            "ANTHROPIC_BASE_URL = \"http://127.0.0.1:9\"",
            "ANTHROPIC_MODEL = \"play/older-tools\" }\n\n[models.older-tools]\nagent = \"older-tools\"\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert_eq!(agents_text("http://127.0.0.1:9/v1", &[]), "");
    }

    #[test]
    fn every_case_is_configured_for_every_host() {
        let text = config_text("http://127.0.0.1:9/v1", Path::new("/tmp/x.db"));
        assert!(text.starts_with("listen = \"127.0.0.1:0\"\nstore = \"sqlite:/tmp/x.db\"\n"));
        assert!(
            text.contains("[upstreams.c]\ndialect = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n")
        );
        assert!(text.contains("[models.\"r/error-429\"]\nupstream = \"r\"\nmodel = \"error-429\"\n"));
        assert!(text.contains("[models.\"pc/*\"]\nupstream = \"c\"\ntools = \"prompted\"\n"));
        assert_eq!(text.matches("[models.").count(), HOSTS.len() * (CASES.len() + 1));
    }
}
