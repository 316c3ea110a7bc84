//! Which jobs can be played: whatever a coordinator sends is checked before it takes disk, memory
//! or a thread.

use rookery_common::chunk::Caps;
use rookery_common::ids::ContentHash;
use rookery_common::params::ParamsError;
use rookery_common::protocol::jobs::{Job, Work};
use rookery_common::text::quantity;

/// Most games of a job: coordinators give fast workers sixteen times what a run says, which is at
/// most 4,096.
const MOST_GAMES: u32 = 16 * 4096;

/// A job that no coordinator gives.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// There are none, or too many.
    #[error("it asks for {}, allowed are 1 to {MOST_GAMES}", quantity(*games, "game"))]
    Games {
        /// How many it asks for.
        games: u32,
    },
    /// It has more openings than games.
    #[error("it has {} for {}", quantity(*openings, "opening"), quantity(*games, "game"))]
    Openings {
        /// Its openings.
        openings: usize,
        /// Its games.
        games: u32,
    },
    /// A game begins after more moves than a chunk may have.
    #[error("a game has {} before its first search", quantity(*moves, "move"))]
    Moves {
        /// How many.
        moves: usize,
    },
    /// A parameter is outside its range.
    #[error("{0}")]
    Params(#[from] ParamsError),
    /// The spool holds it.
    #[error("it is being played already, or its games wait to be uploaded")]
    Known,
    /// It does not say what one of its networks is.
    #[error("it does not describe its network {0}")]
    Network(ContentHash),
}

/// Checks that a job's size and parameters are ones that a run can have, and that its networks are
/// described.
pub(crate) fn check_size(job: &Job) -> Result<(), JobError> {
    let games = job.work.games();
    if !(1..=MOST_GAMES).contains(&games) {
        return Err(JobError::Games { games });
    }
    match &job.work {
        Work::SelfPlay {
            openings, params, ..
        } => {
            if openings.len() > games as usize {
                let openings = openings.len();
                return Err(JobError::Openings { openings, games });
            }
            params.check()?;
        }
        Work::Puzzles { params, .. } => params.check()?,
        Work::Match { params, .. } => params.check()?,
        Work::Audit { rules, .. } => rules.check()?,
    }
    let longest = given_moves(&job.work).into_iter().max().unwrap_or(0);
    if longest > Caps::default().plies {
        return Err(JobError::Moves { moves: longest });
    }
    let described = |hash: &ContentHash| job.networks.iter().any(|network| network.hash == *hash);
    match job
        .work
        .networks()
        .into_iter()
        .find(|hash| !described(hash))
    {
        Some(hash) => Err(JobError::Network(hash)),
        None => Ok(()),
    }
}

/// How many moves each game is given. To set one up takes time that grows with their square.
fn given_moves(work: &Work) -> Vec<usize> {
    match work {
        Work::SelfPlay { openings, .. } => openings.iter().map(|one| one.moves.len()).collect(),
        Work::Puzzles { puzzles, .. } => puzzles.iter().map(|one| one.moves.len()).collect(),
        Work::Match { pairs, .. } => pairs.iter().map(|one| one.opening.moves.len()).collect(),
        Work::Audit { tasks, .. } => {
            let moves = tasks
                .iter()
                .map(|one| one.start.moves.len() + one.moves.len());
            moves.collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::protocol::jobs::Opening;

    use super::super::testing::job;
    use super::*;

    /// What is said of a job changed like this.
    fn said(change: impl FnOnce(&mut Job)) -> String {
        let mut job = job(3);
        change(&mut job);
        check_size(&job).unwrap_err().to_string()
    }

    #[test]
    fn jobs_that_no_run_can_have_are_told_apart() {
        assert!(check_size(&job(1)).is_ok() && check_size(&job(MOST_GAMES)).is_ok());
        for games in [0, MOST_GAMES + 1, u32::MAX] {
            let error = check_size(&job(games)).unwrap_err().to_string();
            assert!(error.contains(&format!("{games} games")), "{error}");
        }
        let error = said(|job| {
            if let Work::SelfPlay { openings, .. } = &mut job.work {
                openings.resize_with(4, Opening::default);
            }
        });
        assert_eq!(error, "it has 4 openings for 3 games");
        let error = said(|job| {
            if let Work::SelfPlay { openings, .. } = &mut job.work {
                let moves = vec!["g1f3".to_owned(); 400_000];
                *openings = vec![Opening { fen: None, moves }];
            }
        });
        assert!(error.contains("400000 moves"), "{error}");
        let error = said(|job| {
            if let Work::SelfPlay { params, .. } = &mut job.work {
                params.search.visits = u32::MAX;
            }
        });
        assert!(error.starts_with("search.visits is 4294967295"), "{error}");
        assert!(said(|job| job.networks.clear()).contains("network"));
    }
}
