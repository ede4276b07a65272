//! `cargo xtask storm`: tens of thousands of connections, good and bad, against one gateway.
//!
//! Every good request must get its whole reply, no bad one may get any, and the gateway's memory must stop growing.
//! The seed decides which connections come in which order.

mod connection;
mod memory;
mod requests;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use tokio::task::LocalSet;
use tokio::time::timeout;

use self::connection::Kind;
use self::memory::MemoryTrace;
use self::requests::Requests;
use crate::AnyError;
use crate::rows::rows;
use crate::stage::Stage;

/// Connections open at once.
const CONCURRENCY: usize = 128;

/// The longest that one connection may take. A slow one takes well under a second.
const CONNECTION_LIMIT: Duration = Duration::from_mins(1);

/// The longest that the whole storm may take.
const STORM_LIMIT: Duration = Duration::from_mins(20);

/// How many failures are shown.
const SHOWN_FAILURES: usize = 10;

/// How many connections, and the seed of their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    connections: u64,
    seed: u64,
}

impl Extent {
    /// Reads `--connections N` and `--seed S`. Without a seed every run is another one.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, AnyError> {
        let mut extent = Self { connections: 50_000, seed: u64::from(std::process::id()) };
        for pair in words.chunks(2) {
            match pair {
                ["--connections", number] => extent.connections = number.parse()?,
                ["--seed", number] => extent.seed = number.parse()?,
                _ => return Err(format!("storm does not take `{}`", pair.join(" ")).into()),
            }
        }
        Ok(extent)
    }
}

/// Runs the storm against a gateway of its own, whose files go into `folder`.
pub(crate) fn run(gateway: &Path, folder: &Path, extent: Extent) -> Result<(), AnyError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let stage = Stage::start(gateway, folder, &rows())?;
    LocalSet::new().block_on(&runtime, storm(&stage, extent))
}

async fn storm(stage: &Stage, extent: Extent) -> Result<(), AnyError> {
    let Extent { connections, seed } = extent;
    println!("{connections} connections, seed {seed}");
    let requests = &Requests::to(&stage.gateway.address)?;
    requests.warm_up().await?;
    let began = Instant::now();
    let mut memory = MemoryTrace::start(stage.gateway.pid())?;
    let mut tally = Tally::default();
    let mut random = Random(seed);
    let kinds = (0..connections).map(|_| Kind::draw(&mut random));
    let mut outcomes = futures_util::stream::iter(kinds)
        .map(|(kind, detail)| async move {
            let ran = timeout(CONNECTION_LIMIT, kind.run(requests, detail)).await;
            (kind, ran.unwrap_or_else(|_| Err(format!("no end within {CONNECTION_LIMIT:?}").into())))
        })
        .buffer_unordered(CONCURRENCY);
    while let Some((kind, outcome)) = outcomes.next().await {
        tally.add(kind, outcome);
        memory.sample()?;
        if began.elapsed() > STORM_LIMIT {
            return Err(format!("the storm is not over after {STORM_LIMIT:?}").into());
        }
    }
    drop(outcomes);
    requests
        .warm_up()
        .await
        .map_err(|cause| format!("the gateway does not answer after the storm: {cause}"))?;
    memory.sample_now()?;
    println!("{tally}in {:.1} s", began.elapsed().as_secs_f64());
    println!("{memory}");
    tally.verdict()?;
    memory.verdict()
}

/// How many connections of each kind there were, and what went wrong.
#[derive(Default)]
struct Tally {
    counts: BTreeMap<&'static str, u64>,
    failures: Vec<String>,
}

impl Tally {
    fn add(&mut self, kind: Kind, outcome: Result<(), AnyError>) {
        *self.counts.entry(kind.name()).or_default() += 1;
        if let Err(cause) = outcome {
            self.failures.push(format!("{}: {cause}", kind.name()));
        }
    }

    fn verdict(&self) -> Result<(), AnyError> {
        if self.failures.is_empty() {
            return Ok(());
        }
        let shown: Vec<&str> = self.failures.iter().take(SHOWN_FAILURES).map(String::as_str).collect();
        Err(format!("{} connections failed, the first of them:\n{}", self.failures.len(), shown.join("\n"))
            .into())
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, count) in &self.counts {
            writeln!(f, "{count:>8} {name}")?;
        }
        Ok(())
    }
}

/// A small generator of numbers (`SplitMix64`): the same seed gives the same storm.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extent_is_read_from_the_command_line() {
        let extent = Extent::parse(&["--seed", "7", "--connections", "10"]).unwrap();
        assert_eq!(extent, Extent { connections: 10, seed: 7 });
        assert_eq!(Extent::parse(&[]).unwrap().connections, 50_000);
        assert!(Extent::parse(&["--fast"]).is_err());
        assert!(Extent::parse(&["--seed", "x"]).is_err());
    }

    #[test]
    fn a_seed_gives_the_same_storm_again_with_every_kind_in_it() {
        let draw = |seed| {
            let mut random = Random(seed);
            (0..500).map(|_| Kind::draw(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
        for (kind, _) in Kind::SHARES {
            assert!(draw(3).iter().any(|(drawn, _)| *drawn == kind), "{kind:?}");
        }
    }
}
