//! A thread's share of a job, as the engine takes it.

use rookery_common::chunk::Side;
use rookery_common::protocol::audits::AuditTask;
use rookery_common::protocol::jobs::{Job, OpeningError, PairTask, Work, selfplay_start};
use rookery_engine::{AuditedGame, MatchGame, Planned};

use super::part::Part;

/// Some games of an assignment.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) assignment: Part,
    pub(super) games: Vec<u32>,
    /// The most memory that one of them takes, in bytes.
    pub(super) bytes: u64,
}

/// A share that cannot be played.
#[derive(Debug, thiserror::Error)]
pub(super) enum ShareError {
    /// A game is not one of the job's.
    #[error("game {0} is not one of the job's")]
    Index(u32),
    /// An opening, or an audited game, cannot be played.
    #[error("game {index}: {source}")]
    Opening { index: u32, source: OpeningError },
}

/// The job with only these games.
pub(super) fn plan(job: &Job, games: &[u32]) -> Result<rookery_engine::Job, ShareError> {
    let work = match &job.work {
        Work::SelfPlay {
            params,
            games: all,
            openings,
            ..
        } => rookery_engine::Work::SelfPlay {
            params: params.clone(),
            games: planned(games, |index| {
                if index >= *all {
                    return Err(ShareError::Index(index));
                }
                selfplay_start(openings, index)
                    .map_err(|source| ShareError::Opening { index, source })
            })?,
        },
        Work::Puzzles {
            params, puzzles, ..
        } => rookery_engine::Work::Puzzles {
            params: params.clone(),
            games: planned(games, |index| {
                puzzles
                    .get(index as usize)
                    .cloned()
                    .ok_or(ShareError::Index(index))
            })?,
        },
        Work::Match { params, pairs, .. } => rookery_engine::Work::Match {
            params: params.clone(),
            games: planned(games, |index| match_game(pairs, index))?,
        },
        Work::Audit { rules, tasks } => rookery_engine::Work::Audit {
            rules: rules.clone(),
            games: planned(games, |index| audited_game(tasks, index))?,
        },
    };
    Ok(rookery_engine::Job {
        seed: job.seed,
        work,
    })
}

fn planned<G>(
    games: &[u32],
    game: impl Fn(u32) -> Result<G, ShareError>,
) -> Result<Vec<Planned<G>>, ShareError> {
    games
        .iter()
        .map(|index| {
            Ok(Planned {
                index: *index,
                game: game(*index)?,
            })
        })
        .collect()
}

/// Game `i` of an audit is task `i`.
fn audited_game(tasks: &[AuditTask], index: u32) -> Result<AuditedGame, ShareError> {
    let task = tasks.get(index as usize).ok_or(ShareError::Index(index))?;
    AuditedGame::of(task).map_err(|source| ShareError::Opening { index, source })
}

/// Game `2i` of a match is pair `i` with the candidate as White, game `2i + 1` as Black.
fn match_game(pairs: &[PairTask], index: u32) -> Result<MatchGame, ShareError> {
    let task = pairs
        .get(index as usize / 2)
        .ok_or(ShareError::Index(index))?;
    let candidate = if index.is_multiple_of(2) {
        Side::White
    } else {
        Side::Black
    };
    let start = task
        .opening
        .start()
        .map_err(|source| ShareError::Opening { index, source })?;
    Ok(MatchGame {
        pair: task.pair,
        candidate,
        start,
    })
}
