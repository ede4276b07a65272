//! The cost of an agent behind the gateway: starts, paused sessions, and many conversations on few processes.
//!
//! The real program runs on the gateway's own `demo` model, so no account and no network are needed, and only the program
//! and the gateway are measured. Everything is compared within one run.

mod outcome;
mod scene;
mod talk;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::task::LocalSet;

use crate::AnyError;
use crate::result::median;
use outcome::{Crowd, Outcome, Paused, Resumed, Starts};
use scene::{Fence, Pool, Scene};
use talk::Conversation;

/// Messages of a history that no process has seen.
const HISTORY_MESSAGES: usize = 40;

/// Turns of each conversation of the crowd.
const CROWD_TURNS: usize = 3;

/// Conversations after which the gateway recognises the client's usual opening.
const TO_BE_KNOWN: usize = 2;

/// Processes that the crowd shares.
const CROWD_PROCESSES: u32 = 4;

/// A program, and on Linux the process that watches over it.
const A_PROCESS: usize = if cfg!(target_os = "linux") { 2 } else { 1 };

/// How much to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    rounds: usize,
    paused_sessions: usize,
    crowd: usize,
}

impl Effort {
    pub(crate) const FULL: Self = Self { rounds: 9, paused_sessions: 200, crowd: 20 };
    /// Shows that everything runs. The figures mean little.
    pub(crate) const SMOKE: Self = Self { rounds: 2, paused_sessions: 8, crowd: 6 };
}

/// Measures everything, prints each figure when it is ready and writes `agent.json` into `folder`.
pub(crate) fn run(gateway: &Path, program: &Path, folder: &Path, effort: Effort) -> Result<(), AnyError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let setting = Setting { gateway, program, folder, effort };
    let outcome = LocalSet::new().block_on(&runtime, setting.measure())?;
    fs::create_dir_all(folder)?;
    let path = folder.join("agent.json");
    fs::write(&path, format!("{:#}\n", outcome.json()))?;
    println!("written to {}", path.display());
    Ok(())
}

struct Setting<'a> {
    gateway: &'a Path,
    program: &'a Path,
    folder: &'a Path,
    effort: Effort,
}

impl Setting<'_> {
    async fn measure(&self) -> Result<Outcome, AnyError> {
        println!("measuring: starts");
        let starts = self.starts().await?;
        println!("{starts}\nmeasuring: a history that no process knows");
        let resumed = self.resumed().await?;
        println!("{resumed}\nmeasuring: {} conversations on {CROWD_PROCESSES} processes", self.effort.crowd);
        let crowd = self.crowd().await?;
        println!("{crowd}\nmeasuring: {} paused sessions", self.effort.paused_sessions);
        let paused = self.paused().await?;
        println!("{paused}");
        Ok(Outcome { starts, resumed, paused, crowd })
    }

    fn scene(&self, name: &str, pool: Pool) -> Result<Scene, AnyError> {
        Scene::start(self.gateway, self.program, &self.folder.join("agent").join(name), pool)
    }

    /// Warm and cold starts alternate, so that both see the same machine.
    async fn starts(&self) -> Result<Starts, AnyError> {
        let with_warm = Pool { warm: 1, max: 2, hold: "1s", sandbox: Fence::Sandbox };
        let (usual, unseen) = (self.scene("warm", with_warm)?, self.scene("warm-unseen", with_warm)?);
        let no_warm = Pool { warm: 0, ..with_warm };
        let without = self.scene("cold", no_warm)?;
        let unfenced = self.scene("cold-unfenced", Pool { sandbox: Fence::None, ..no_warm })?;
        for number in 0..TO_BE_KNOWN {
            usual.settle(A_PROCESS).await?;
            first_event(&usual, Conversation::new(), &format!("known {number}")).await?;
        }
        let (mut warm, mut warm_unseen, mut cold, mut cold_unfenced) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for round in 0..self.effort.rounds {
            usual.settle(A_PROCESS).await?;
            unseen.settle(A_PROCESS).await?;
            without.settle(0).await?;
            unfenced.settle(0).await?;
            let name = format!("number {round}");
            let other = Conversation::under(&format!("You are friendly assistant {name}."));
            warm.push(first_event(&usual, Conversation::new(), &name).await?);
            warm_unseen.push(first_event(&unseen, other, &name).await?);
            cold.push(first_event(&without, Conversation::new(), &name).await?);
            cold_unfenced.push(first_event(&unfenced, Conversation::new(), &name).await?);
        }
        Ok(Starts {
            warm: median(warm),
            warm_unseen: median(warm_unseen),
            cold: median(cold),
            cold_unfenced: median(cold_unfenced),
        })
    }

    /// The same history twice: sent to a warm process that knows only the client's usual opening, and continued in a live
    /// process that has it.
    async fn resumed(&self) -> Result<Resumed, AnyError> {
        let with_live = self.scene("live", Pool { warm: 0, max: 1, hold: "10m", sandbox: Fence::Sandbox })?;
        let with_warm =
            self.scene("from-nothing", Pool { warm: 1, max: 2, hold: "1s", sandbox: Fence::Sandbox })?;
        let mut known = Conversation::with_history("a long story", HISTORY_MESSAGES);
        known.say("Where were we?");
        known.send(with_live.address()).await?;
        let (mut live, mut from_nothing) = (Vec::new(), Vec::new());
        for round in 0..self.effort.rounds {
            with_live.settle(A_PROCESS).await?;
            with_warm.settle(A_PROCESS).await?;
            known.say(&format!("And then, for the {round}th time?"));
            live.push(milliseconds(known.send(with_live.address()).await?.first));
            let mut unknown = Conversation::with_history(&format!("story {round}"), HISTORY_MESSAGES);
            unknown.say("How does it end?");
            from_nothing.push(milliseconds(unknown.send(with_warm.address()).await?.first));
        }
        Ok(Resumed { live_ms: median(live), from_nothing_ms: median(from_nothing) })
    }

    /// Every session waits for the result of a call until its process is paused.
    async fn paused(&self) -> Result<Paused, AnyError> {
        let scene = self
            .scene("paused", Pool { warm: 0, max: CROWD_PROCESSES, hold: "1s", sandbox: Fence::Sandbox })?;
        let empty_memory_mib = scene.memory_mib()?;
        let mut first = None;
        // One round of sessions first: one-time costs of the gateway are not costs of a session.
        try_join_all((0..CROWD_PROCESSES).map(|number| pause(&scene, format!("village {number}")))).await?;
        scene.wait_for_sleep().await?;
        let (memory_before, store_before) = (scene.memory_mib()?, scene.store_mib()?);
        for batch in (0..self.effort.paused_sessions).collect::<Vec<_>>().chunks(CROWD_PROCESSES as usize) {
            let paused =
                try_join_all(batch.iter().map(|number| pause(&scene, format!("city {number}")))).await?;
            first = first.or_else(|| paused.into_iter().next());
        }
        scene.wait_for_sleep().await?;
        let added_memory_mib = scene.memory_mib()? - memory_before;
        let added_store_mib = scene.store_mib()? - store_before;
        let mut first = first.ok_or("no session was paused")?;
        first.answer_calls("22 degrees and sunny")?;
        let woken = first.send(scene.address()).await?;
        Ok(Paused {
            sessions: self.effort.paused_sessions,
            empty_memory_mib,
            added_memory_mib,
            added_store_mib,
            woken_ms: milliseconds(woken.first),
        })
    }

    async fn crowd(&self) -> Result<Crowd, AnyError> {
        let scene =
            self.scene("crowd", Pool { warm: 1, max: CROWD_PROCESSES, hold: "1m", sandbox: Fence::Sandbox })?;
        let begun = Instant::now();
        let address = scene.address();
        let all = (0..self.effort.crowd).map(|number| async move {
            let mut conversation = Conversation::new();
            for turn in 0..CROWD_TURNS {
                conversation.say(&format!("call `get_weather` for city {number}-{turn}"));
                conversation.send(address).await?;
                conversation.answer_calls(&format!("{turn} degrees in {number}"))?;
                conversation.send(address).await?;
            }
            Ok::<_, AnyError>(())
        });
        // The first failure ends the measurement: there must be none.
        try_join_all(all).await?;
        Ok(Crowd {
            conversations: self.effort.crowd,
            requests: self.effort.crowd * CROWD_TURNS * 2,
            processes: CROWD_PROCESSES,
            seconds: begun.elapsed().as_secs_f64(),
        })
    }
}

async fn first_event(scene: &Scene, mut conversation: Conversation, name: &str) -> Result<f64, AnyError> {
    conversation.say(&format!("Hello {name}."));
    Ok(milliseconds(conversation.send(scene.address()).await?.first))
}

/// A session that waits for the result of its call.
async fn pause(scene: &Scene, place: String) -> Result<Conversation, AnyError> {
    let mut conversation = Conversation::new();
    conversation.say(&format!("call `get_weather` for {place}"));
    conversation.send(scene.address()).await?;
    conversation.expect_calls()?;
    Ok(conversation)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
