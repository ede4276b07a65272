//! The processes of a measurement: an upstream and a relay for each link, and the gateway. All end with the [`Stage`].

use std::fmt::Write;
use std::fs;
use std::path::Path;

use toolgate_tether::Tethered;

use crate::AnyError;
use crate::dialect::{Dialect, LastBlock};
use crate::link::{Certificates, Link};
use crate::rows::Row;

/// A server under measurement, with an address of the form `127.0.0.1:PORT`.
pub(crate) struct Server {
    process: Tethered,
    pub(crate) address: String,
}

pub(crate) struct Stage {
    pub(crate) gateway: Server,
    legs: Vec<Leg>,
}

/// The host at the end of one link, and the relay to it.
struct Leg {
    link: Link,
    upstream: Server,
    relay: Server,
}

impl Stage {
    /// Starts fresh processes that can answer the rows. Their files go into `folder`, which is emptied first, so that
    /// no run uses the store of an earlier one.
    pub(crate) fn start(gateway: &Path, folder: &Path, rows: &[Row]) -> Result<Self, AnyError> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        let certificates = Certificates::make(folder)?;
        let legs: Vec<Leg> =
            Link::ALL.into_iter().map(|link| Leg::start(link, folder)).collect::<Result<_, _>>()?;
        let config = folder.join("toolgate.toml");
        fs::write(&config, config_text(&legs, &folder.join("toolgate.db"), rows)?)?;
        // `env` becomes the gateway, so the process keeps its id.
        let trusted = format!("SSL_CERT_FILE={}", certificates.authority.display());
        let arguments: [&str; 4] =
            [&trusted, &gateway.to_string_lossy(), "--config", &config.to_string_lossy()];
        let gateway = Server::start(Path::new("env"), &arguments, &folder.join("toolgate.log"))?;
        Ok(Self { gateway, legs })
    }

    /// The relay over this link.
    pub(crate) fn relay(&self, link: Link) -> &Server {
        &self.leg(link).relay
    }

    /// The upstream that the load reaches directly.
    pub(crate) fn direct(&self) -> &Server {
        &self.leg(Link::Plain).upstream
    }

    fn leg(&self, link: Link) -> &Leg {
        let leg = self.legs.iter().find(|leg| leg.link == link);
        leg.unwrap_or(&self.legs[0])
    }
}

impl Leg {
    fn start(link: Link, folder: &Path) -> Result<Self, AnyError> {
        let bench = std::env::current_exe()?;
        let certificates = folder.to_string_lossy();
        let log = |server: &str| folder.join(format!("{server}-{}.log", link.name()));
        let upstream = Server::start(&bench, &["upstream", link.name(), &certificates], &log("upstream"))?;
        let arguments = ["relay", link.name(), &certificates, &upstream.address];
        let relay = Server::start(&bench, &arguments, &log("relay"))?;
        Ok(Self { link, upstream, relay })
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

/// A model has the same name on both sides, so that relay and gateway get requests that differ only in the dialect.
fn config_text(legs: &[Leg], store: &Path, rows: &[Row]) -> Result<String, AnyError> {
    let mut text = format!("listen = \"127.0.0.1:0\"\nstore = \"sqlite:{}\"\n", store.display());
    for Leg { link, upstream, relay: _ } in legs {
        add_upstreams(&mut text, *link, &upstream.address)?;
    }
    add_models(&mut text, rows)?;
    Ok(text)
}

fn add_upstreams(text: &mut String, link: Link, address: &str) -> Result<(), AnyError> {
    for dialect in Dialect::ALL {
        let (name, scheme) = (link.upstream(dialect), link.scheme());
        let dialect = dialect.config_name();
        writeln!(
            text,
            "\n[upstreams.{name}]\ndialect = \"{dialect}\"\nbase_url = \"{scheme}://{address}/v1\"\napi_key = \"sk-bench\""
        )?;
    }
    Ok(())
}

fn add_models(text: &mut String, rows: &[Row]) -> Result<(), AnyError> {
    let exchanges = rows
        .iter()
        .flat_map(|row| &row.exchanges)
        .flat_map(|exchange| [*exchange, exchange.steady(), exchange.slow()]);
    let mut models: Vec<(String, String, &str)> = exchanges
        .map(|exchange| {
            let tools = match exchange.script.last {
                LastBlock::WrittenCall(_) => "prompted",
                LastBlock::Text | LastBlock::ToolCall => "native",
            };
            (exchange.model(), exchange.link.upstream(exchange.host), tools)
        })
        .collect();
    models.sort();
    models.dedup();
    for (model, upstream, tools) in models {
        writeln!(text, "\n[models.\"{model}\"]\nupstream = \"{upstream}\"\ntools = \"{tools}\"")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::rows;

    #[test]
    fn the_config_names_each_model_once() {
        let mut text = String::new();
        add_models(&mut text, &rows()).unwrap();
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
        let encrypted = "[models.\"openai-chat-http2/fast-text-64\"]\nupstream = \"openai-chat-http2\"\n";
        assert!(text.contains(encrypted), "{text}");
    }

    #[test]
    fn each_link_has_its_own_hosts() {
        let mut text = String::new();
        add_upstreams(&mut text, Link::Plain, "127.0.0.1:8").unwrap();
        add_upstreams(&mut text, Link::Tls, "127.0.0.1:9").unwrap();
        let plain =
            "[upstreams.openai-chat]\ndialect = \"openai-chat\"\nbase_url = \"http://127.0.0.1:8/v1\"\n";
        let tls =
            "[upstreams.openai-chat-tls]\ndialect = \"openai-chat\"\nbase_url = \"https://127.0.0.1:9/v1\"\n";
        assert!(text.contains(plain) && text.contains(tls), "{text}");
    }
}
