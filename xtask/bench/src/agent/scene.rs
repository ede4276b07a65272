//! A gateway with one agent, and what the kernel reports about its processes.

use std::collections::BTreeMap;
use std::fs;
use std::io::Error;
use std::iter::successors;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::AnyError;
use crate::process;
use crate::stage::Server;

/// How long to wait for processes to start, become idle or exit.
const PATIENCE: Duration = Duration::from_mins(5);

/// The polling interval.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A process that uses less processor time than this in one interval is idle.
const AT_REST: Duration = Duration::from_millis(10);

/// How the agent's processes are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pool {
    pub(super) warm: u32,
    pub(super) max: u32,
    pub(super) hold: &'static str,
    pub(super) sandbox: Fence,
}

/// Whether the agent's processes run in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fence {
    /// As by default.
    Sandbox,
    None,
}

pub(super) struct Scene {
    gateway: Server,
    folder: PathBuf,
}

impl Scene {
    /// Starts a gateway. Its files go into `folder`, which is emptied first.
    pub(super) fn start(gateway: &Path, program: &Path, folder: &Path, pool: Pool) -> Result<Self, AnyError> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        let config = folder.join("toolgate.toml");
        fs::write(&config, config_text(program, folder, pool))?;
        let arguments = ["--config", &config.to_string_lossy()];
        let gateway = Server::start(gateway, &arguments, &folder.join("toolgate.log"))?;
        Ok(Self { gateway, folder: folder.to_owned() })
    }

    pub(super) fn address(&self) -> &str {
        &self.gateway.address
    }

    /// Waits until at least this many processes run and all of them are idle.
    pub(super) async fn settle(&self, processes: usize) -> Result<(), AnyError> {
        let mut before = self.spent()?;
        self.wait("come to rest", || {
            let now = self.spent()?;
            let rests = now.len() >= processes
                && now.len() == before.len()
                && now.iter().zip(&before).all(|(now, before)| now.saturating_sub(*before) < AT_REST);
            before = now;
            Ok(rests)
        })
        .await
    }

    /// Waits until no process of the agent runs.
    pub(super) async fn wait_for_sleep(&self) -> Result<(), AnyError> {
        self.wait("end", || Ok(family(self.gateway.pid())?.is_empty())).await
    }

    /// The gateway's own resident memory, in MiB.
    pub(super) fn memory_mib(&self) -> Result<f64, AnyError> {
        Ok(process::memory_mib(self.gateway.pid())?)
    }

    /// The size of the store on disk, in MiB.
    pub(super) fn store_mib(&self) -> Result<f64, AnyError> {
        let mut kib = 0;
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with("toolgate.db") {
                kib += entry.metadata()?.len() / 1024;
            }
        }
        Ok(f64::from(u32::try_from(kib)?) / 1024.0)
    }

    async fn wait(
        &self,
        what: &str,
        mut done: impl FnMut() -> Result<bool, AnyError>,
    ) -> Result<(), AnyError> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            tokio::time::sleep(LOOK_EVERY).await;
            if done()? {
                return Ok(());
            }
        }
        let log = self.folder.join("toolgate.log");
        Err(format!("the agent's processes did not {what} within {PATIENCE:?}: see {}", log.display()).into())
    }

    /// Processor time of each of the agent's processes and their keepers.
    fn spent(&self) -> Result<Vec<Duration>, AnyError> {
        let mut spent = Vec::new();
        for child in family(self.gateway.pid())? {
            match process::cpu_time(child) {
                Ok(time) => spent.push(time),
                // It has exited since it was listed.
                Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {}
                Err(cause) => return Err(cause.into()),
            }
        }
        Ok(spent)
    }
}

fn config_text(program: &Path, folder: &Path, pool: Pool) -> String {
    let Pool { warm, max, hold, sandbox } = pool;
    format!(
        "listen = \"127.0.0.1:0\"\n\
         store = \"sqlite:{store}\"\n\n\
         [agents.claude]\n\
         command = \"{program}\"\n\
         model = \"demo\"\n\
         tools = []\n\
         warm = {warm}\n\
         max = {max}\n\
         hold = \"{hold}\"\n\
         sandbox = {sandbox}\n\n\
         [models.\"claude-code\"]\n\
         agent = \"claude\"\n\n\
         [models.demo]\n\
         demo = true\n",
        store = folder.join("toolgate.db").display(),
        program = program.display(),
        sandbox = sandbox == Fence::Sandbox,
    )
}

/// All descendants of a process, in the order of their ids.
fn family(ancestor: u32) -> Result<Vec<u32>, Error> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // A process that has exited has no file.
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        parents.extend(parent_of(&stat).map(|parent| (pid, parent)));
    }
    let descends = |pid: u32| {
        let mut line = successors(Some(pid), |pid| parents.get(pid).copied()).skip(1);
        line.any(|pid| pid == ancestor)
    };
    Ok(parents.keys().copied().filter(|pid| descends(*pid)).collect())
}

/// The second field after the program's name, which may itself contain spaces and parentheses.
fn parent_of(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_read_behind_any_name() {
        assert_eq!(parent_of("12 (a b) c) S 7 12 12 0 -1"), Some(7));
        assert_eq!(parent_of("12 (a"), None);
    }

    #[test]
    fn the_config_is_the_contracts() {
        let pool = Pool { warm: 1, max: 4, hold: "2m", sandbox: Fence::Sandbox };
        let text = config_text(Path::new("/bin/claude"), Path::new("/tmp/x"), pool);
        for line in
            ["command = \"/bin/claude\"\n", "warm = 1\nmax = 4\nhold = \"2m\"\n", "agent = \"claude\"\n"]
        {
            assert!(text.contains(line), "{text}");
        }
    }
}
