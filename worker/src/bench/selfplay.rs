//! Self-play as `run` plays it, but its games are thrown away.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rookery_common::ids::{ContentHash, JobId, NetworkNumber, Seed};
use rookery_common::params::SelfPlayParams;
use rookery_common::protocol::jobs::{Job, NetworkRef, Work};
use serde::Serialize;

use super::lengths::{Lengths, games_per_hour};
use crate::judges::Judges;
use crate::machine::Machine;
use crate::networks::{Contents, NetworkFile};
use crate::play::{Control, Counters, JobCounters, JobWork, PlayEvent, Player};
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
    /// Whether they were too few to be counted, and so were estimated from the visits.
    pub(super) positions_estimated: bool,
    /// Games an hour, from the positions a second and those of a game; none if no position was searched.
    pub(super) games_per_hour: Option<f64>,
    /// Searched positions of a game: of those that ended, or a usual length where too few have.
    pub(super) positions_per_game: f64,
    /// Games that ended, while warming up too.
    pub(super) games_ended: u64,
    /// Evaluations a second over those of bare evaluation in batches of at most that size.
    pub(super) utilization: f64,
    /// Share of evaluations that the cache or the same batch made needless.
    pub(super) cache_hit_share: f64,
    /// Most memory that the process has had; none where the system does not tell.
    pub(super) peak_rss_bytes: Option<u64>,
}

impl SelfPlay {
    /// The same held against bare evaluation at this speed.
    pub(super) fn against(self, bare_evals_per_s: f64) -> Self {
        Self {
            utilization: self.evals_per_s / bare_evals_per_s,
            ..self
        }
    }
}

/// Moves that games make on average before their positions are counted.
const COUNTED_MOVES: u64 = 3;

/// Games for each slot: none is empty before the measurement ends.
const GAMES_PER_SLOT: usize = 8;

/// How often is looked whether the first batch has been evaluated.
const LOOK: Duration = Duration::from_millis(10);

/// Plays for a while, as long again before it as a warm-up, which begins once the network is loaded.
pub(super) fn play(
    machine: &Machine,
    network: &[u8],
    params: &SelfPlayParams,
    time: Duration,
) -> anyhow::Result<SelfPlay> {
    let file = TemporaryNetwork::write(network)?;
    let (events, inbox) = mpsc::channel();
    let (priority, judges) = (Priority::Unchanged, Judges::default());
    let lengths = Lengths::default();
    let player = Player::start(machine, priority, &judges, &lengths, move |event| {
        // The receiver is gone once the measurement is over.
        drop(events.send(event));
    })?;
    let counters = Arc::new(JobCounters::default());
    let job = job(file.0.hash, network.len(), params, machine.all_games())?;
    let games = (0..job.work.games()).collect();
    let (job, networks) = (Arc::new(job), vec![file.0.clone()]);
    player.play(JobWork {
        job,
        games,
        networks,
        counters: Arc::clone(&counters),
    });
    while Counts::of(player.counters()).evaluations == 0 {
        wait(&inbox, LOOK)?;
    }
    wait(&inbox, time)?;
    let (before, start) = (Counts::of(player.counters()), Instant::now());
    wait(&inbox, time)?;
    let done = Counts::of(player.counters()).since(before);
    let seconds = start.elapsed().as_secs_f64();
    counters.order(Control::Drop);
    let (evaluations, hits) = (done.evaluations as f64, done.cache_hits as f64);
    let (positions, positions_estimated) = done.searched(machine.all_games(), params);
    let positions_per_s = positions / seconds;
    let positions_per_game = lengths.positions_per_game(machine.all_games());
    Ok(SelfPlay {
        games: machine.all_games(),
        batch: evaluations / (done.batches as f64).max(1.0),
        visits: params.search.visits,
        evals_per_s: evaluations / seconds,
        positions_per_s,
        positions_estimated,
        games_per_hour: games_per_hour(positions_per_s, positions_per_game),
        positions_per_game,
        games_ended: lengths.ended(),
        utilization: 0.0,
        cache_hit_share: hits / (hits + evaluations).max(1.0),
        peak_rss_bytes: rookery_common::memory::peak_rss_bytes(),
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
    fn of(counters: &Counters) -> Self {
        Self {
            evaluations: counters.evaluations.load(Relaxed),
            cache_hits: counters.cache_hits.load(Relaxed),
            positions: counters.positions.load(Relaxed),
            batches: counters.batches.load(Relaxed),
        }
    }

    const fn since(self, before: Self) -> Self {
        Self {
            evaluations: self.evaluations - before.evaluations,
            cache_hits: self.cache_hits - before.cache_hits,
            positions: self.positions - before.positions,
            batches: self.batches - before.batches,
        }
    }

    /// Positions that were searched, and whether that is an estimate. Games that begin together move together, so that
    /// few moves say when they were counted rather than how fast they are made. The estimate, from visits, is a little
    /// low: visits to ended games are not among them, nor are those that one move leaves to the next.
    fn searched(self, games: usize, params: &SelfPlayParams) -> (f64, bool) {
        if self.positions >= COUNTED_MOVES * games as u64 {
            return (self.positions as f64, false);
        }
        let full = f64::from(params.full_search_share);
        let visits =
            full * f64::from(params.search.visits) + (1.0 - full) * f64::from(params.fast_visits);
        ((self.evaluations + self.cache_hits) as f64 / visits, true)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_moves_of_many_games_are_estimated_from_their_visits() {
        let mut params = SelfPlayParams::default();
        params.search.visits = 800;
        (params.full_search_share, params.fast_visits) = (1.0, 16);
        let few = Counts {
            evaluations: 700_000,
            cache_hits: 100_000,
            positions: 0,
            batches: 100,
        };
        assert_eq!(few.searched(1000, &params), (1000.0, true));
        params.full_search_share = 0.5;
        params.fast_visits = 200;
        assert_eq!(few.searched(1000, &params), (1600.0, true));
        let many = Counts {
            positions: 3000,
            ..few
        };
        assert_eq!(many.searched(1000, &params), (3000.0, false));
    }
}
