//! The processes of a measurement: the upstream, the relay and the gateway. All end with the [`Stage`].

use std::fmt::Write;
use std::fs;
use std::path::Path;

use toolgate_tether::Tethered;

use crate::AnyError;
use crate::dialect::{Dialect, Ending};
use crate::rows::Row;

/// A server under measurement, with its address of the form `127.0.0.1:PORT`.
pub(crate) struct Server {
    process: Tethered,
    pub(crate) address: String,
}

pub(crate) struct Stage {
    pub(crate) gateway: Server,
    pub(crate) relay: Server,
    pub(crate) upstream: Server,
}

impl Stage {
    /// Starts fresh processes that can answer the rows; their files go into `folder`, which is emptied first, so
    /// that the store of an earlier run is not part of this one.
    pub(crate) fn start(gateway: &Path, folder: &Path, rows: &[Row]) -> Result<Self, AnyError> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        let bench = std::env::current_exe()?;
        let upstream = Server::start(&bench, &["upstream"], &folder.join("upstream.log"))?;
        let relay = Server::start(&bench, &["relay", &upstream.address], &folder.join("relay.log"))?;
        let config = folder.join("toolgate.toml");
        fs::write(&config, config_text(&upstream.address, &folder.join("toolgate.db"), rows)?)?;
        let arguments = ["--config", &config.to_string_lossy()];
        let gateway = Server::start(gateway, &arguments, &folder.join("toolgate.log"))?;
        Ok(Self { gateway, relay, upstream })
    }
}

impl Server {
    pub(crate) fn start(program: &Path, arguments: &[&str], log: &Path) -> Result<Self, AnyError> {
        let context = |cause| format!("starting {} {}: {cause}", program.display(), arguments.join(" "));
        let mut process = Tethered::start(program, arguments, log).map_err(context)?;
        let url = process.wait_for_url().map_err(context)?;
        let address = url.trim_start_matches("http://").split('/').next().unwrap_or_default().to_owned();
        Ok(Self { process, address })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// A model is called the same on both sides, so that what relay and gateway get differs in nothing but the dialect.
fn config_text(upstream: &str, store: &Path, rows: &[Row]) -> Result<String, AnyError> {
    let mut text = format!("listen = \"127.0.0.1:0\"\nstore = \"sqlite:{}\"\n", store.display());
    for dialect in Dialect::ALL {
        let name = dialect.config_name();
        writeln!(
            text,
            "\n[upstreams.{name}]\ndialect = \"{name}\"\nbase_url = \"http://{upstream}/v1\"\napi_key = \"sk-bench\""
        )?;
    }
    let exchanges = rows
        .iter()
        .flat_map(|row| &row.exchanges)
        .flat_map(|exchange| [*exchange, exchange.steady(), exchange.slow()]);
    let mut models: Vec<(String, &str, &str)> = exchanges
        .map(|exchange| {
            let tools = match exchange.script.ending {
                Ending::WrittenCall(_) => "prompted",
                Ending::Text | Ending::ToolCall => "native",
            };
            (exchange.script.model_at(exchange.host), exchange.host.config_name(), tools)
        })
        .collect();
    models.sort();
    models.dedup();
    for (model, host, tools) in models {
        writeln!(text, "\n[models.\"{model}\"]\nupstream = \"{host}\"\ntools = \"{tools}\"")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::rows;

    #[test]
    fn the_config_names_each_model_once() {
        let text = config_text("127.0.0.1:9", Path::new("/tmp/x.db"), &rows()).unwrap();
        assert_eq!(
            text.matches(
                "[models.\"openai-chat/fast-call-64\"]\nupstream = \"openai-chat\"\ntools = \"native\"\n"
            )
            .count(),
            1,
            "{text}"
        );
        assert!(text.contains("[models.\"anthropic-messages/slow-call-64\"]\n"), "{text}");
        let prompted =
            "[models.\"openai-chat/fast-written-64\"]\nupstream = \"openai-chat\"\ntools = \"prompted\"\n";
        assert!(text.contains(prompted), "{text}");
        assert!(text.contains("base_url = \"http://127.0.0.1:9/v1\"\n"), "{text}");
    }
}
