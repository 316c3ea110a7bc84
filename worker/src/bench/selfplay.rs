//! Self-play as `run` plays it, but with games that nobody keeps.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rookery_common::chunk::GameRecord;
use rookery_common::ids::{ContentHash, JobId, NetworkNumber, Seed};
use rookery_common::params::SelfPlayParams;
use rookery_common::protocol::jobs::{Job, NetworkRef, Work};
use serde::Serialize;

use super::bare::Bare;
use crate::judges::Judges;
use crate::machine::Machine;
use crate::networks::{Contents, NetworkFile};
use crate::play::{Assignment, Control, GameSink, Gauge, JobGauge, PlayEvent, Player};
use crate::priority::Priority;

/// What is measured.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct SelfPlay {
    /// Games at once.
    pub(super) games: usize,
    /// Mean positions of a batch.
    pub(super) batch: f64,
    /// Visits of each move.
    pub(super) visits: u32,
    /// Evaluations a second.
    pub(super) evals_per_s: f64,
    /// Positions searched a second.
    pub(super) positions_per_s: f64,
    /// Evaluations a second over those of bare evaluation at that batch size.
    pub(super) utilization: f64,
    /// Share of evaluations that the cache or the same batch made needless.
    pub(super) cache_hit_share: f64,
    /// Most memory that the process has had; none where the system does not tell.
    pub(super) peak_rss_bytes: Option<u64>,
}

impl SelfPlay {
    /// The same held against bare evaluation.
    pub(super) fn against(self, bare: &Bare) -> Self {
        Self {
            utilization: self.evals_per_s / bare.evals_per_s,
            ..self
        }
    }
}

/// Games go nowhere.
#[derive(Clone, Copy)]
struct Nowhere;

impl GameSink for Nowhere {
    fn keep(&self, _job: JobId, _game: Box<GameRecord>) {}

    fn is_stuck(&self) -> bool {
        false
    }
}

/// Games for each slot: none is empty before the measurement ends.
const GAMES_PER_SLOT: usize = 8;

/// Plays for a while, as long again before it as a warm-up.
pub(super) fn play(
    machine: &Machine,
    network: &[u8],
    params: &SelfPlayParams,
    time: Duration,
) -> anyhow::Result<SelfPlay> {
    let file = TemporaryNetwork::write(network)?;
    let (events, inbox) = mpsc::channel();
    let (priority, judges) = (Priority::Unchanged, Judges::default());
    let player = Player::start(machine, priority, &judges, &Nowhere, move |event| {
        // Nobody listens any more once the measurement is over.
        drop(events.send(event));
    })?;
    let gauge = Arc::new(JobGauge::default());
    let job = job(file.0.hash, network.len(), params, machine.all_games())?;
    let games = (0..job.work.games()).collect();
    let (job, networks) = (Arc::new(job), vec![file.0.clone()]);
    player.play(Assignment {
        job,
        games,
        networks,
        gauge: Arc::clone(&gauge),
    });
    wait(&inbox, time)?;
    let (before, start) = (Counts::of(player.gauge()), Instant::now());
    wait(&inbox, time)?;
    let (after, seconds) = (Counts::of(player.gauge()), start.elapsed().as_secs_f64());
    gauge.order(Control::Drop);
    let evaluations = (after.evaluations - before.evaluations) as f64;
    let hits = (after.cache_hits - before.cache_hits) as f64;
    Ok(SelfPlay {
        games: machine.all_games(),
        batch: evaluations / ((after.batches - before.batches) as f64).max(1.0),
        visits: params.search.visits,
        evals_per_s: evaluations / seconds,
        positions_per_s: (after.positions - before.positions) as f64 / seconds,
        utilization: 0.0,
        cache_hit_share: hits / (hits + evaluations).max(1.0),
        peak_rss_bytes: rookery_nn::peak_rss_bytes(),
    })
}

/// Waits, unless a thread fails.
fn wait(inbox: &mpsc::Receiver<PlayEvent>, time: Duration) -> anyhow::Result<()> {
    match inbox.recv_timeout(time) {
        Ok(PlayEvent::Failed { error, .. }) => anyhow::bail!("{error}"),
        Ok(PlayEvent::Died) => anyhow::bail!("a thread that plays has ended"),
        Ok(PlayEvent::Left(_)) => {
            anyhow::bail!("all games ended before the time; use fewer seconds")
        }
        Err(_) => Ok(()),
    }
}

fn job(
    hash: ContentHash,
    bytes: usize,
    params: &SelfPlayParams,
    slots: usize,
) -> anyhow::Result<Job> {
    let games = u32::try_from(slots * GAMES_PER_SLOT).unwrap_or(u32::MAX);
    Ok(Job {
        id: JobId(uuid::Uuid::nil()),
        run: "bench".parse()?,
        lease_seconds: 0,
        heartbeat_seconds: 0,
        seed: Seed(1),
        work: Work::SelfPlay {
            network: hash,
            games,
            openings: Vec::new(),
            params: params.clone(),
        },
        networks: vec![NetworkRef {
            hash,
            number: NetworkNumber(0),
            bytes: bytes as u64,
            signature: None,
        }],
        run_key: None,
        notices: Vec::new(),
    })
}

#[derive(Debug, Clone, Copy)]
struct Counts {
    evaluations: u64,
    cache_hits: u64,
    positions: u64,
    batches: u64,
}

impl Counts {
    fn of(gauge: &Gauge) -> Self {
        Self {
            evaluations: gauge.evaluations.load(Relaxed),
            cache_hits: gauge.cache_hits.load(Relaxed),
            positions: gauge.positions.load(Relaxed),
            batches: gauge.batches.load(Relaxed),
        }
    }
}

/// A network's file that goes away with this.
struct TemporaryNetwork(NetworkFile);

impl TemporaryNetwork {
    fn write(bytes: &[u8]) -> anyhow::Result<Self> {
        let name = format!("rookery-bench-{}.safetensors", std::process::id());
        let path: PathBuf = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self(NetworkFile {
            hash: ContentHash::of(bytes),
            path,
            contents: Contents::Network,
        }))
    }
}

impl Drop for TemporaryNetwork {
    fn drop(&mut self) {
        // A file left in the temporary folder does no harm.
        drop(std::fs::remove_file(&self.0.path));
    }
}
