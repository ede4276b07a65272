//! Builds the gateway from the config: store, usage log, back ends and service.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::Context;
use toolgate_backend::config::{Supervision, Tools, TriggerSecret};
use toolgate_gateway::config::GatewayConfig;
use toolgate_gateway::{ConsoleKey, Gateway, Parts, SystemClock};
use toolgate_state::{Bus, Store, UsageLog, UsageLogWorker};

use crate::config::Config;
use crate::store_secret;

/// A gateway that is ready to start, and what must run beside it and be closed after it.
pub(crate) struct Assembled {
    pub(crate) gateway: Gateway,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) usage: UsageLog,
    pub(crate) usage_worker: UsageLogWorker,
    pub(crate) console: ConsoleKey,
}

/// Opens the store and builds the gateway.
pub(crate) async fn assemble(
    config: &Config,
    workers: usize,
    dropped_log_lines: Arc<AtomicU64>,
) -> anyhow::Result<Assembled> {
    let store = toolgate_state::open(&config.store).await?;
    let secret = store_secret::load(&config.store)?;
    let console = ConsoleKey::derive(&secret);
    let (usage, usage_worker) = UsageLog::new(Arc::<dyn Store>::clone(&store));
    let service = GatewayConfig {
        listen: config.listen,
        workers,
        hosts: config.hosts.clone(),
        keys: config.keys.clone(),
        approvals: config.approvals.clone(),
        record: config.record,
        limits: config.limits,
    };
    let parts = Parts {
        store: Arc::clone(&store),
        usage: usage.clone(),
        bus: Bus::new(),
        clock: Arc::new(SystemClock),
        dropped_log_lines,
        console: console.clone(),
    };
    let mut backend = config.backend.clone();
    if cfg!(target_os = "linux") {
        backend.agents.iter_mut().for_each(|agent| agent.supervision = Supervision::OwnProgram);
    }
    if backend.models.iter().any(|model| matches!(model.tools, Tools::Prompted(_))) {
        backend.trigger_secret = Some(TriggerSecret::new(secret));
    }
    let gateway = Gateway::new(&service, backend, parts).context("starting the gateway")?;
    Ok(Assembled { gateway, store, usage, usage_worker, console })
}
