//! The measurement: rounds in which relay and gateway take turns, and medians over the rounds.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tokio::task::LocalSet;

use crate::AnyError;
use crate::load::{Shot, Times, Volume, fire};
use crate::process;
use crate::result::{Figures, RowResult, Summary, median};
use crate::rows::{Exchange, Row, rows};
use crate::stage::{Server, Stage};

/// Connections while processor time is measured: enough that the server is never idle.
const BUSY_CONNECTIONS: u32 = 16;

/// Requests at concurrency 1 before the other server's turn. The batch is short: added latency is a small difference of
/// two large times, and both must see the same machine.
const SINGLE_BATCH: Volume = Volume { requests: 10, connections: 1 };

/// Streams open at once while memory is measured.
const MEMORY_STREAMS: u32 = 256;

/// How long to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    rounds: u32,
    busy_requests: u32,
    single_batches: u32,
}

impl Effort {
    pub(crate) const FULL: Self = Self { rounds: 9, busy_requests: 800, single_batches: 5 };
    /// Shows that everything runs. The figures mean little.
    pub(crate) const SMOKE: Self = Self { rounds: 2, busy_requests: 160, single_batches: 2 };
}

/// Measures all rows, prints the table and writes `result.json` into `folder`.
pub(crate) fn run(gateway: &Path, folder: &Path, effort: Effort) -> Result<(), AnyError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rows = rows();
    let mut results = Vec::new();
    let stage = Stage::start(gateway, &folder.join("speed"), &rows)?;
    for row in &rows {
        println!("measuring: {}", row.name);
        let mut result = LocalSet::new().block_on(&runtime, measure(&stage, row, effort))?;
        // The kernel keeps the peak of a process's whole life, so memory is measured on fresh processes.
        let fresh = Stage::start(gateway, &folder.join("memory"), &rows)?;
        let memory = LocalSet::new().block_on(&runtime, measure_memory(&fresh, row))?;
        result.gateway.peak_memory_mib = memory.gateway;
        result.relay.peak_memory_mib = memory.relay;
        results.push(result);
    }
    drop(stage);
    let summary = Summary { rows: results };
    println!("\n{summary}");
    let path = folder.join("result.json");
    fs::write(&path, format!("{:#}\n", summary.json()))?;
    println!("written to {}", path.display());
    Ok(())
}

/// The figures of one round.
#[derive(Debug, Clone, Copy)]
struct Round {
    relay: Turn,
    gateway: Turn,
}

/// One server's turn, in microseconds. Added times are measured against the upstream alone, over plain HTTP/1.1.
#[derive(Debug, Clone, Copy)]
struct Turn {
    cpu: f64,
    added_latency: f64,
    added_first_event: f64,
}

async fn measure(stage: &Stage, row: &Row, effort: Effort) -> Result<RowResult, AnyError> {
    let gateway = Contender { server: &stage.gateway, shot: Exchange::translated };
    let relay = Contender { server: stage.relay(row.link()), shot: Exchange::native };
    let warm_up = Volume { requests: effort.busy_requests / 4, connections: BUSY_CONNECTIONS };
    gateway.cpu(row, warm_up).await?;
    relay.cpu(row, warm_up).await?;
    let mut rounds = Vec::new();
    for number in 0..effort.rounds * row.rounds_for_one() {
        // The order alternates, so that neither server always runs on a warmer machine.
        let (relay, gateway) = if number % 2 == 0 {
            let relay = relay.turn(stage, row, effort).await?;
            (relay, gateway.turn(stage, row, effort).await?)
        } else {
            let gateway = gateway.turn(stage, row, effort).await?;
            (relay.turn(stage, row, effort).await?, gateway)
        };
        rounds.push(Round { relay, gateway });
    }
    Ok(summed_up(row, &rounds))
}

fn summed_up(row: &Row, rounds: &[Round]) -> RowResult {
    let over_rounds = |figure: &dyn Fn(&Round) -> f64| median(rounds.iter().map(figure).collect());
    let figures = |turn: fn(&Round) -> Turn| Figures {
        cpu_us: over_rounds(&|round| turn(round).cpu),
        added_latency_us: over_rounds(&|round| turn(round).added_latency),
        added_first_event_us: over_rounds(&|round| turn(round).added_first_event),
        peak_memory_mib: 0.0,
    };
    RowResult {
        name: row.name,
        goal: row.goal,
        // The two turns of one round are compared, so a slow minute of the machine cancels out.
        cpu_ratio: over_rounds(&|round| round.gateway.cpu / round.relay.cpu),
        gateway: figures(|round| round.gateway),
        relay: figures(|round| round.relay),
    }
}

/// A server under measurement, and the requests it gets.
struct Contender<'a> {
    server: &'a Server,
    shot: fn(Exchange) -> Shot,
}

impl Contender<'_> {
    async fn turn(&self, stage: &Stage, row: &Row, effort: Effort) -> Result<Turn, AnyError> {
        let cpu =
            self.cpu(row, Volume { requests: effort.busy_requests, connections: BUSY_CONNECTIONS }).await?;
        let (mut added_latency, mut added_first_event) = (Vec::new(), Vec::new());
        for exchange in row.exchanges.iter().map(|exchange| exchange.steady()) {
            let (mut direct, mut through) = (Times::default(), Times::default());
            for _ in 0..effort.single_batches {
                direct.extend(fire(&stage.direct().address, &exchange.native(), SINGLE_BATCH).await?);
                through.extend(fire(&self.server.address, &(self.shot)(exchange), SINGLE_BATCH).await?);
            }
            let (direct, through) = (Middle::of(direct), Middle::of(through));
            added_latency.push(through.last - direct.last);
            added_first_event.push(through.first - direct.first);
        }
        Ok(Turn { cpu, added_latency: mean(&added_latency), added_first_event: mean(&added_first_event) })
    }

    /// Processor time per request, in microseconds, averaged over the exchanges of the row.
    async fn cpu(&self, row: &Row, volume: Volume) -> Result<f64, AnyError> {
        let mut figures = Vec::new();
        for exchange in &row.exchanges {
            let shot = (self.shot)(*exchange);
            let requests = volume.requests * exchange.requests_for_one_stream();
            let volume = Volume { requests, ..volume };
            let before = process::cpu_time(self.server.pid())?;
            fire(&self.server.address, &shot, volume).await?;
            let spent = process::cpu_time(self.server.pid())?.saturating_sub(before);
            figures.push(microseconds(spent) / f64::from(volume.requests));
        }
        Ok(mean(&figures))
    }
}

/// The median request, in microseconds.
struct Middle {
    first: f64,
    last: f64,
}

impl Middle {
    fn of(times: Times) -> Self {
        let middle = |times: Vec<Duration>| median(times.into_iter().map(microseconds).collect());
        Self { first: middle(times.first), last: middle(times.last) }
    }
}

/// Peak memory in MiB.
struct Memory {
    relay: f64,
    gateway: f64,
}

async fn measure_memory(stage: &Stage, row: &Row) -> Result<Memory, AnyError> {
    let volume = Volume { requests: MEMORY_STREAMS, connections: MEMORY_STREAMS };
    for exchange in row.exchanges.iter().map(|exchange| exchange.slow()) {
        fire(&stage.relay(row.link()).address, &exchange.native(), volume).await?;
        fire(&stage.gateway.address, &exchange.translated(), volume).await?;
    }
    Ok(Memory {
        relay: process::peak_memory_mib(stage.relay(row.link()).pid())?,
        gateway: process::peak_memory_mib(stage.gateway.pid())?,
    })
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn mean(figures: &[f64]) -> f64 {
    let count = u32::try_from(figures.len()).map_or(f64::NAN, f64::from);
    figures.iter().sum::<f64>() / count
}
