//! Numbers that other parts of the gateway keep, read on each scrape of `/metrics`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use toolgate_backend::config::UpstreamName;
use toolgate_backend::{StatsRegistry, UpstreamStats};
use toolgate_state::{Bus, UsageLog};

use crate::accept::ConnectionCounts;

/// Where the numbers come from.
#[derive(Debug)]
pub(crate) struct LiveNumbers {
    pub(crate) connections: Arc<ConnectionCounts>,
    pub(crate) usage: UsageLog,
    pub(crate) bus: Arc<Bus>,
    pub(crate) dropped_log_lines: Arc<AtomicU64>,
    pub(crate) upstreams: StatsRegistry,
}

type Labels = Vec<(&'static str, String)>;

impl Collector for LiveNumbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let by_worker = self.connections.open().enumerate();
        let by_worker = by_worker.map(|(worker, open)| (vec![("worker", worker.to_string())], open as u64));
        gauges(&mut encoder, "connections", "Open connections of clients by worker", by_worker)?;
        let refused = self.connections.refused();
        counter(&mut encoder, "connections_refused", "Connections beyond the cap", refused)?;
        let usage = self.usage.dropped();
        counter(&mut encoder, "usage_records_dropped", "Usage records that could not be stored", usage)?;
        let lines = self.dropped_log_lines.load(Ordering::Relaxed);
        counter(&mut encoder, "log_lines_dropped", "Log lines that stderr did not take in time", lines)?;
        self.encode_bus(&mut encoder)?;
        self.encode_upstreams(&mut encoder)
    }
}

impl LiveNumbers {
    fn encode_bus(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Clients that watch the observed events";
        let mut watching = encoder.encode_descriptor("event_subscribers", help, None, MetricType::Gauge)?;
        watching.encode_gauge(&(self.bus.subscribers() as u64))?;
        let dropped = self.bus.dropped_subscribers();
        counter(encoder, "event_subscribers_dropped", "Watching clients that fell behind", dropped)?;
        counter(encoder, "events_published", "Observed events", self.bus.published())
    }

    fn encode_upstreams(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let each = |number: fn(&UpstreamStats) -> u64| {
            let labelled = move |(name, stats): (&UpstreamName, &Arc<UpstreamStats>)| {
                (vec![("upstream", name.to_string())], number(stats))
            };
            self.upstreams.iter().map(labelled)
        };
        let open = each(UpstreamStats::connections_open);
        gauges(encoder, "upstream_connections", "Open connections to hosts", open)?;
        let in_flight = each(UpstreamStats::in_flight);
        gauges(encoder, "upstream_in_flight", "Requests that hosts are answering", in_flight)?;
        let opened = each(UpstreamStats::connections_opened);
        counters(encoder, "upstream_connections_opened", "Connections opened to hosts", opened)?;
        let retries = each(UpstreamStats::retries);
        counters(encoder, "upstream_retries", "Requests sent again to the same host", retries)?;
        let failovers = each(UpstreamStats::failovers);
        counters(encoder, "upstream_failovers", "Turns given to the next target after a failure", failovers)
    }
}

fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (Labels, u64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        family.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}

fn counters(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (Labels, u64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in values {
        family.encode_family(&labels)?.encode_counter(&value, NO_EXEMPLAR)?;
    }
    Ok(())
}

fn counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    metric.encode_counter(&value, NO_EXEMPLAR)
}

const NO_EXEMPLAR: Option<&Exemplar<NoLabels, f64>> = None;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NoLabels {}
