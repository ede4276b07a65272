//! Numbers for Prometheus.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use toolgate_model::Usage;

/// What `GET /metrics` shows.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    tokens: Family<TokenLabels, Counter>,
    duration: Family<DialectLabels, Histogram>,
    first_event: Family<DialectLabels, Histogram>,
}

/// What is counted of a turn.
pub(crate) struct FinishedTurn<'a> {
    pub(crate) dialect: &'static str,
    pub(crate) status: u16,
    pub(crate) duration: Duration,
    pub(crate) first_event: Option<Duration>,
    pub(crate) usage: Option<&'a Usage>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    dialect: &'static str,
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

impl Metrics {
    pub(crate) fn new() -> Self {
        // From 5 ms to about 11 minutes: a cached answer and a long reasoning turn.
        let seconds: fn() -> Histogram = || Histogram::new(exponential_buckets(0.005, 2.2, 16));
        let mut metrics = Self {
            registry: Registry::with_prefix("toolgate"),
            requests: Family::default(),
            tokens: Family::default(),
            duration: Family::new_with_constructor(seconds),
            first_event: Family::new_with_constructor(seconds),
        };
        let registry = &mut metrics.registry;
        registry.register("requests", "Turns by client dialect and status", metrics.requests.clone());
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
        metrics
    }

    /// Counts a turn that is over.
    pub(crate) fn count(&self, turn: &FinishedTurn<'_>) {
        let FinishedTurn { dialect, status, duration, first_event, usage } = *turn;
        self.requests.get_or_create(&RequestLabels { dialect, status }).inc();
        self.duration.get_or_create(&DialectLabels { dialect }).observe(duration.as_secs_f64());
        if let Some(first_event) = first_event {
            self.first_event.get_or_create(&DialectLabels { dialect }).observe(first_event.as_secs_f64());
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

    /// The text Prometheus reads.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
