//! Games of a network with itself, as chunks for the trainer and as PGN for people.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_analysis::Device;
use rookery_common::chunk::export::pgn::{self, PgnTags};
use rookery_common::chunk::{ChunkHeader, GameKind, GameRecord, encode};
use rookery_common::ids::{ContentHash, JobId};
use rookery_common::protocol::jobs::{Backend, WorkKind};
use rookery_engine::{EvaluationCache, GamePool, Job, Judges};
use rookery_model::Weights;

/// Positions whose evaluations are kept for other games.
const CACHED: usize = 50_000;

/// Plays a job's games side by side; those that have not ended when it is time to stop are lost.
///
/// # Errors
///
/// If a game of the job cannot be played, or the device does not compute the network.
pub fn play(
    job: &Job,
    weights: &Weights,
    device: &Device,
    judges: &Judges,
    is_over: &dyn Fn() -> bool,
) -> anyhow::Result<Vec<GameRecord>> {
    let mut evaluator = device.evaluator(weights)?;
    let cache = EvaluationCache::new(CACHED);
    let pool = GamePool::new(job, job.work.len(), &[cache.into()])?;
    let mut pool = pool.with_judges(judges.clone());
    let mut games = Vec::new();
    pool.run_each(&mut [&mut *evaluator], is_over, |game| games.push(game))?;
    Ok(games)
}

/// The games of a training, in its folder: `games.pgn` and one chunk after the other.
#[derive(Debug)]
pub struct GamesFolder {
    dir: PathBuf,
    event: String,
    backend: Backend,
    pgn: File,
    games: u64,
    chunks: Vec<PathBuf>,
}

impl GamesFolder {
    /// An empty one; files of an earlier training in the folder are replaced.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn create(dir: &Path, event: &str, backend: Backend) -> anyhow::Result<Self> {
        let pgn = dir.join("games.pgn");
        let file = File::create(&pgn);
        Ok(Self {
            dir: dir.to_owned(),
            event: event.to_owned(),
            backend,
            pgn: file.with_context(|| format!("cannot create {}", pgn.display()))?,
            games: 0,
            chunks: Vec::new(),
        })
    }

    /// The chunks, in the order in which they were written.
    pub fn chunks(&self) -> &[PathBuf] {
        &self.chunks
    }

    /// Games that were written.
    pub const fn games(&self) -> u64 {
        self.games
    }

    /// Writes games of one job by a network, if there is any.
    ///
    /// # Errors
    ///
    /// If a file cannot be written.
    pub fn add(&mut self, games: &[GameRecord], network: ContentHash) -> anyhow::Result<()> {
        let Some(first) = games.first() else {
            return Ok(());
        };
        let number = self.chunks.len() + 1;
        let header = ChunkHeader {
            run: self.event.parse()?,
            job: JobId(uuid::Uuid::from_u128(number as u128)),
            networks: vec![network],
            worker_version: env!("CARGO_PKG_VERSION").to_owned(),
            backend: self.backend,
            kind: match first.kind {
                GameKind::Puzzle { .. } => WorkKind::Puzzles,
                _ => WorkKind::SelfPlay,
            },
        };
        let path = self.dir.join(format!("{number:05}.chunk"));
        let cannot = || format!("cannot write {}", path.display());
        std::fs::write(&path, encode(&header, games)?).with_context(cannot)?;
        self.chunks.push(path);
        for game in games {
            self.games += 1;
            let tags = PgnTags {
                event: self.event.clone(),
                round: self.games.to_string(),
                first: network.short(),
                ..PgnTags::default()
            };
            let text = pgn::game(game, &tags)?;
            let written = self.pgn.write_all(text.as_bytes());
            written.context("cannot write games.pgn")?;
        }
        Ok(())
    }
}
