//! An honest player that needs no network: it plays a job with the engine's uniform evaluator.

use anyhow::Context;
use rookery_common::chunk::{ChunkHeader, GameRecord, Side, encode};
use rookery_common::ids::ContentHash;
use rookery_common::protocol::jobs::{Backend, Job, Work, selfplay_start};
use rookery_engine::dummy::UniformEvaluator;
use rookery_engine::evaluator::Evaluator;
use rookery_engine::play::{self, AuditedGame, GamePool, MatchGame, Planned};

/// A chunk as it is uploaded.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// Its SHA-256.
    pub hash: ContentHash,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Chunk {
    /// Encodes games under a header.
    ///
    /// # Errors
    ///
    /// If a record is no legal game.
    pub fn of(header: &ChunkHeader, games: &[GameRecord]) -> anyhow::Result<Self> {
        let bytes = encode(header, games)?;
        Ok(Self {
            hash: ContentHash::of(&bytes),
            bytes,
        })
    }
}

/// The header of an honest chunk for a job.
pub fn header(job: &Job) -> ChunkHeader {
    ChunkHeader {
        run: job.run.clone(),
        job: job.id,
        networks: job.work.networks(),
        worker_version: env!("CARGO_PKG_VERSION").to_owned(),
        backend: Backend::Uniform,
        kind: job.work.kind(),
    }
}

/// Plays all games of a job.
///
/// # Errors
///
/// If the job cannot be played.
pub fn play(job: &Job) -> anyhow::Result<Vec<GameRecord>> {
    let mut first = UniformEvaluator::default();
    let mut second = UniformEvaluator::default();
    play_with(job, &mut [&mut first, &mut second])
}

/// Plays all games of a job with these evaluators in place of its networks.
///
/// # Errors
///
/// If the job cannot be played.
pub fn play_with(
    job: &Job,
    evaluators: &mut [&mut dyn Evaluator],
) -> anyhow::Result<Vec<GameRecord>> {
    let job = play::Job {
        seed: job.seed,
        work: plan(&job.work)?,
    };
    Ok(GamePool::new(&job, 64, &[])?.run(evaluators)?)
}

/// Plays a job and makes the chunk.
///
/// # Errors
///
/// If the job cannot be played.
pub fn honest_chunk(job: &Job) -> anyhow::Result<Chunk> {
    Chunk::of(&header(job), &play(job)?)
}

fn plan(work: &Work) -> anyhow::Result<play::Work> {
    Ok(match work {
        Work::Audit { rules, tasks } => play::Work::Audit {
            rules: rules.clone(),
            games: (0..)
                .zip(tasks)
                .map(|(index, task)| {
                    let game = AuditedGame::of(task)?;
                    Ok(Planned { index, game })
                })
                .collect::<anyhow::Result<_>>()?,
        },
        Work::SelfPlay {
            games,
            openings,
            params,
            ..
        } => play::Work::SelfPlay {
            params: params.clone(),
            games: (0..*games)
                .map(|index| {
                    let game = selfplay_start(openings, index)?;
                    Ok(Planned { index, game })
                })
                .collect::<anyhow::Result<_>>()?,
        },
        Work::Puzzles {
            puzzles, params, ..
        } => play::Work::Puzzles {
            params: params.clone(),
            games: (0..)
                .zip(puzzles.clone())
                .map(|(index, game)| Planned { index, game })
                .collect(),
        },
        Work::Match { pairs, params, .. } => {
            let mut games = Vec::new();
            for task in pairs {
                let start = task.opening.start().context("the opening is legal")?;
                for candidate in [Side::White, Side::Black] {
                    let game = MatchGame {
                        pair: task.pair,
                        candidate,
                        start: start.clone(),
                    };
                    games.push(Planned {
                        index: games.len() as u32,
                        game,
                    });
                }
            }
            play::Work::Match {
                params: params.clone(),
                games,
            }
        }
    })
}
