//! What a worker needs to answer requests.

use std::sync::Arc;

use toolgate_backend::Router;
use toolgate_state::{Bus, Store, UsageLog};

use crate::accept::ConnectionCounts;
use crate::approval::Inbox;
use crate::clock::Clock;
use crate::config::Limits;
use crate::console::ConsoleKey;
use crate::http::Door;
use crate::session_log::SessionLog;
use crate::tasks::Tasks;
use crate::telemetry::{Metrics, RoutineLosses};

/// One for the whole process.
pub(crate) struct Shared {
    pub(crate) door: Door,
    pub(crate) limits: Limits,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) usage: UsageLog,
    pub(crate) bus: Arc<Bus>,
    pub(crate) session_log: SessionLog,
    pub(crate) metrics: Metrics,
    pub(crate) routine_losses: RoutineLosses,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) connections: Arc<ConnectionCounts>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) console: ConsoleKey,
}

/// One for each worker thread.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) router: Router,
    pub(crate) tasks: Tasks,
}
