//! Metrics for Prometheus. Counting a turn costs a few atomic operations, and every set of labels is bounded.

mod live;
mod routine_losses;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use toolgate_model::Usage;

use crate::http::Api;

pub(crate) use self::live::LiveNumbers;
pub(crate) use self::routine_losses::RoutineLosses;

/// How many models are counted by their own names. A pattern lets clients choose names, and each row stays for ever.
const MAX_MODELS: usize = 200;

/// The label of all further models.
const OTHER_MODELS: &str = "other";

/// What `GET /metrics` shows.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    tokens: Family<TokenLabels, Counter>,
    duration: Family<DialectLabels, Histogram>,
    first_event: Family<DialectLabels, Histogram>,
    in_flight: Family<DialectLabels, Gauge>,
    losses: Family<DialectLabels, Counter>,
    recoveries: Family<RecoveryLabels, Counter>,
    /// The models that are counted by their own names.
    models: RwLock<HashSet<Arc<str>>>,
}

/// Counts a turn as in flight until it is dropped.
pub(crate) struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// What is counted of a turn.
pub(crate) struct FinishedTurn<'a> {
    pub(crate) api: Api,
    /// `None` if no back end answered: names that clients make up are no labels.
    pub(crate) model: Option<&'a str>,
    pub(crate) status: u16,
    pub(crate) duration: Duration,
    pub(crate) first_event: Option<Duration>,
    pub(crate) usage: Option<&'a Usage>,
    /// How many things were lost in translation.
    pub(crate) losses: usize,
    /// How the reply of a text-only model was recovered.
    pub(crate) recoveries: &'a [&'static str],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    dialect: &'static str,
    model: Arc<str>,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    dialect: &'static str,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DialectLabels {
    dialect: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RecoveryLabels {
    kind: &'static str,
}

impl Metrics {
    pub(crate) fn new(live: LiveNumbers) -> Self {
        // From 5 ms to about 11 minutes: a cached answer and a long reasoning turn.
        let seconds: fn() -> Histogram = || Histogram::new(exponential_buckets(0.005, 2.2, 16));
        let mut metrics = Self {
            registry: Registry::with_prefix("toolgate"),
            requests: Family::default(),
            tokens: Family::default(),
            duration: Family::new_with_constructor(seconds),
            first_event: Family::new_with_constructor(seconds),
            in_flight: Family::default(),
            losses: Family::default(),
            recoveries: Family::default(),
            models: RwLock::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("requests", "Turns by client dialect, model and status", metrics.requests.clone());
        registry.register("tokens", "Tokens by client dialect and kind", metrics.tokens.clone());
        registry.register(
            "duration_seconds",
            "From request to the end of the reply",
            metrics.duration.clone(),
        );
        registry.register(
            "first_event_seconds",
            "From request to the first event",
            metrics.first_event.clone(),
        );
        registry.register("turns_in_flight", "Turns that have not ended", metrics.in_flight.clone());
        registry.register("losses", "Fields that a translation could not express", metrics.losses.clone());
        registry.register(
            "recoveries",
            "Calls of text-only models that were not written as prompted and were recovered",
            metrics.recoveries.clone(),
        );
        registry.register_collector(Box::new(live));
        metrics
    }

    /// Counts a turn that has begun, until the guard is dropped.
    pub(crate) fn begin(&self, api: Api) -> InFlight {
        let gauge = self.in_flight.get_or_create_owned(&DialectLabels { dialect: api.name() });
        gauge.inc();
        InFlight(gauge)
    }

    /// Counts a turn that has ended.
    pub(crate) fn count(&self, turn: &FinishedTurn<'_>) {
        let FinishedTurn { api, model, status, duration, first_event, usage, losses, recoveries } = *turn;
        let dialect = api.name();
        let labels = DialectLabels { dialect };
        let model = model.map(|model| self.model_label(model)).unwrap_or_default();
        self.requests.get_or_create(&RequestLabels { dialect, model, status }).inc();
        self.duration.get_or_create(&labels).observe(duration.as_secs_f64());
        if let Some(first_event) = first_event {
            self.first_event.get_or_create(&labels).observe(first_event.as_secs_f64());
        }
        if losses > 0 {
            self.losses.get_or_create(&labels).inc_by(losses as u64);
        }
        for kind in recoveries {
            self.recoveries.get_or_create(&RecoveryLabels { kind }).inc();
        }
        let Some(usage) = usage else { return };
        let kinds = [
            ("input", usage.input),
            ("cache_read", usage.cache_read),
            ("cache_write", usage.cache_write),
            ("output", usage.output),
        ];
        for (kind, count) in kinds.into_iter().filter(|(_, count)| *count > 0) {
            self.tokens.get_or_create(&TokenLabels { dialect, kind }).inc_by(count);
        }
    }

    /// The label of a model: its name, unless there are too many.
    fn model_label(&self, name: &str) -> Arc<str> {
        let known = self.models.read();
        if let Some(label) = known.get(name) {
            return Arc::clone(label);
        }
        let has_room = known.len() < MAX_MODELS;
        drop(known);
        if !has_room {
            return OTHER_MODELS.into();
        }
        let label: Arc<str> = name.into();
        self.models.write().insert(Arc::clone(&label));
        label
    }

    /// The text Prometheus reads.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use toolgate_backend::StatsRegistry;
    use toolgate_state::{MemoryStore, UsageLog};

    use super::*;
    use crate::accept::ConnectionCounts;

    fn metrics() -> Metrics {
        let (usage, _worker) = UsageLog::new(Arc::new(MemoryStore::new()));
        Metrics::new(LiveNumbers {
            connections: Arc::new(ConnectionCounts::new(2, 10)),
            usage,
            bus: toolgate_state::Bus::new(),
            dropped_log_lines: Arc::default(),
            upstreams: StatsRegistry::default(),
        })
    }

    fn turn<'a>(model: &'a str, recoveries: &'a [&'static str]) -> FinishedTurn<'a> {
        FinishedTurn {
            api: Api::Chat,
            model: Some(model),
            status: 200,
            duration: Duration::from_millis(20),
            first_event: None,
            usage: None,
            losses: 2,
            recoveries,
        }
    }

    #[test]
    fn turns_losses_and_recoveries_are_counted() {
        let metrics = metrics();
        metrics.count(&turn("m", &["coerced", "retried", "coerced"]));
        metrics.count(&turn("m", &[]));
        let text = metrics.text().unwrap();
        for line in [
            r#"toolgate_requests_total{dialect="openai-chat",model="m",status="200"} 2"#,
            r#"toolgate_losses_total{dialect="openai-chat"} 4"#,
            r#"toolgate_recoveries_total{kind="coerced"} 2"#,
            r#"toolgate_recoveries_total{kind="retried"} 1"#,
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    #[test]
    fn every_turn_is_counted_in_its_own_row_and_no_other() {
        let metrics = metrics();
        let mut expected = BTreeMap::new();
        // Names that differ little, in an order in which each row is met again.
        for number in 0..600_u16 {
            let api = [Api::Messages, Api::Chat, Api::Responses][usize::from(number % 3)];
            let status = [200, 201, 429, 500][usize::from(number / 3 % 4)];
            let model = [None, Some("m"), Some("m1"), Some("1m"), Some("")][usize::from(number / 12 % 5)];
            metrics.count(&FinishedTurn { api, model, status, ..turn("", &[]) });
            let row = (api.name(), model.unwrap_or_default(), status);
            *expected.entry(row).or_insert(0) += 1;
        }
        let text = metrics.text().unwrap();
        for ((dialect, model, status), count) in &expected {
            let row = format!(
                "toolgate_requests_total{{dialect=\"{dialect}\",model=\"{model}\",status=\"{status}\"}} {count}\n"
            );
            assert!(text.contains(&row), "{row} in {text}");
        }
        assert_eq!(text.matches("toolgate_requests_total{").count(), expected.len());
    }

    #[test]
    fn names_that_clients_choose_do_not_grow_the_metrics_without_end() {
        let metrics = metrics();
        for number in 0..1_000 {
            metrics.count(&turn(&format!("m{number}"), &[]));
        }
        let text = metrics.text().unwrap();
        assert!(text.contains(r#"model="other",status="200"} 800"#), "{text}");
        assert_eq!(text.matches("toolgate_requests_total{").count(), MAX_MODELS + 1);
    }
}
