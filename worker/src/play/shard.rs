//! A thread's shard of a job, as the engine takes it.

use std::num::NonZeroUsize;

use rookery_common::chunk::Side;
use rookery_common::protocol::audits::AuditTask;
use rookery_common::protocol::jobs::{Job, OpeningError, PairTask, Work, selfplay_start};
use rookery_engine::{AuditedGame, MatchGame, Planned};

use super::job_guard::JobGuard;

/// Divides games among threads in proportion to those that each plays at once, in turns.
pub(super) fn divide(games: &[u32], at_once: &[NonZeroUsize]) -> Vec<Vec<u32>> {
    let mut shards = vec![Vec::new(); at_once.len()];
    for game in games {
        // How full the thread would be with one more.
        let filled =
            |place: &usize| (shards[*place].len() + 1) as f64 / at_once[*place].get() as f64;
        let emptiest = (0..shards.len()).min_by(|a, b| filled(a).total_cmp(&filled(b)));
        if let Some(place) = emptiest {
            shards[place].push(*game);
        }
    }
    shards
}

/// Some games of a job.
#[derive(Debug)]
pub(super) struct JobShard {
    pub(super) work: JobGuard,
    pub(super) games: Vec<u32>,
    /// The most memory that one of them takes, in bytes.
    pub(super) bytes: u64,
}

/// Games that cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum GamesError {
    /// A game is not one of the job's.
    #[error("game {0} is not one of the job's")]
    Index(u32),
    /// An opening, or an audited game, cannot be played.
    #[error("game {index}: {source}")]
    Opening {
        /// The game.
        index: u32,
        /// What is wrong with its beginning.
        source: OpeningError,
    },
    /// A puzzle cannot be played, or the parameters are outside their ranges.
    #[error(transparent)]
    Job(#[from] rookery_engine::JobError),
}

/// Sets up all games of a job, to see whether they can be played.
///
/// # Errors
///
/// [`GamesError`], the first thing that is wrong.
pub fn check_games(job: &Job) -> Result<(), GamesError> {
    let all: Vec<u32> = (0..job.work.games()).collect();
    Ok(plan(job, &all)?.work.check()?)
}

/// The job with only these games.
pub(super) fn plan(job: &Job, games: &[u32]) -> Result<rookery_engine::Job, GamesError> {
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
                    return Err(GamesError::Index(index));
                }
                selfplay_start(openings, index)
                    .map_err(|source| GamesError::Opening { index, source })
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
                    .ok_or(GamesError::Index(index))
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
    game: impl Fn(u32) -> Result<G, GamesError>,
) -> Result<Vec<Planned<G>>, GamesError> {
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
fn audited_game(tasks: &[AuditTask], index: u32) -> Result<AuditedGame, GamesError> {
    let task = tasks.get(index as usize).ok_or(GamesError::Index(index))?;
    AuditedGame::of(task).map_err(|source| GamesError::Opening { index, source })
}

/// Game `2i` of a match is pair `i` with the candidate as White, game `2i + 1` as Black.
fn match_game(pairs: &[PairTask], index: u32) -> Result<MatchGame, GamesError> {
    let task = pairs
        .get(index as usize / 2)
        .ok_or(GamesError::Index(index))?;
    let candidate = if index.is_multiple_of(2) {
        Side::White
    } else {
        Side::Black
    };
    let start = task
        .opening
        .start()
        .map_err(|source| GamesError::Opening { index, source })?;
    Ok(MatchGame {
        pair: task.pair,
        candidate,
        start,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(games: u32, at_once: &[usize]) -> Vec<Vec<u32>> {
        let at_once = at_once.iter().map(|n| NonZeroUsize::new(*n).unwrap());
        let all: Vec<u32> = (0..games).collect();
        divide(&all, &at_once.collect::<Vec<_>>())
    }

    #[test]
    fn a_job_with_a_game_that_cannot_be_played_is_told_from_others() {
        use rookery_common::protocol::jobs::Opening;

        let mut job = crate::spool::testing::job(3);
        check_games(&job).unwrap();
        let Work::SelfPlay { openings, .. } = &mut job.work else {
            panic!("another kind of job");
        };
        let fen = Some("8/8/8/8/8/8/8/8 w - - 0 1".to_owned());
        *openings = vec![Opening { fen, moves: vec![] }];
        let error = check_games(&job).unwrap_err().to_string();
        assert!(error.contains("is not a legal position"), "{error}");
    }

    #[test]
    fn threads_alike_get_games_in_turn_and_others_in_proportion() {
        assert_eq!(divided(5, &[8, 8]), [vec![0, 2, 4], vec![1, 3]]);
        let shards = divided(90, &[64, 64, 16]);
        let counts: Vec<usize> = shards.iter().map(Vec::len).collect();
        assert_eq!(counts, [40, 40, 10]);
        let mut all = shards.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..90), "each once");
        // A few games go to the thread that has most of them at once.
        assert_eq!(divided(2, &[4, 64]), [vec![], vec![0, 1]]);
    }
}
