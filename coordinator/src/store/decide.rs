//! Decisions that follow from what was read, without a database: what to hand out, what a lease
//! allows, what a pair scores.

use rookery_common::params::SchedulingParams;

use super::model::Chances;

/// Which kind of work a request gets first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preference {
    /// An open match, if it has pairs to hand out; else as the rest.
    Match(Training),
    /// Training games.
    Training(Training),
}

/// Which training games.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Training {
    /// From the start position.
    SelfPlay,
    /// From puzzles, if the run has any.
    Puzzles,
}

/// What a request of a worker that plays `at_once` games gets, by chance and the run's shares.
/// A network's first training job are puzzles (unless the run wants none), so that its puzzle
/// score is soon known: `puzzles_begun` says whether it had some.
pub fn preference(
    params: &SchedulingParams,
    chances: &Chances,
    at_once: u32,
    puzzles_begun: bool,
) -> Preference {
    let share = puzzle_jobs(params, at_once);
    let training = if chances.puzzle < share || (share > 0.0 && !puzzles_begun) {
        Training::Puzzles
    } else {
        Training::SelfPlay
    };
    if chances.gate < f64::from(params.gate_share) {
        Preference::Match(training)
    } else {
        Preference::Training(training)
    }
}

/// The share of training jobs that makes `puzzle_share` the share of training games, as large as
/// this worker's jobs are.
fn puzzle_jobs(params: &SchedulingParams, at_once: u32) -> f64 {
    let share = f64::from(params.puzzle_share);
    let puzzles = share * f64::from(job_size(params.selfplay_games, at_once));
    let selfplay = (1.0 - share) * f64::from(job_size(params.puzzle_games, at_once));
    if puzzles + selfplay > 0.0 {
        puzzles / (puzzles + selfplay)
    } else {
        0.0
    }
}

/// How many times the run's job size a worker that plays many games at once may get.
const LARGEST_JOB: u32 = 4;

/// Games of a job: what the run says, more for a worker that plays more games at once.
pub fn job_size(run_says: u32, at_once: u32) -> u32 {
    let run_says = run_says.max(1);
    at_once.clamp(run_says, run_says.saturating_mul(LARGEST_JOB))
}

/// Whether a lease is over, so that its pairs may go to others: it expired, and as much time
/// again has passed.
pub const fn is_over(expires_at: i64, lease_ms: i64, now: i64) -> bool {
    now > expires_at.saturating_add(lease_ms)
}

/// The rating band of a puzzle, 200 points wide.
pub fn rating_band(rating: u32) -> String {
    let low = rating / 200 * 200;
    format!("{low}-{}", low + 199)
}

/// Self-play games shorter than this may be equal by chance.
const UNIQUE_FROM_PLIES: u32 = 8;

/// Whether two honest self-play games of this length never have the same moves and visits.
pub const fn must_be_unique(plies: u32) -> bool {
    plies >= UNIQUE_FROM_PLIES
}

#[cfg(test)]
mod tests {
    use rookery_common::ids::{JobId, Seed};

    use super::*;

    fn drawn(gate: f64, puzzle: f64) -> Chances {
        Chances {
            job: JobId(uuid::Uuid::nil()),
            seed: Seed(0),
            gate,
            puzzle,
        }
    }

    #[test]
    fn the_puzzles_share_is_one_of_games_not_of_jobs() {
        let params = SchedulingParams {
            puzzle_share: 0.5,
            selfplay_games: 10,
            puzzle_games: 90,
            ..SchedulingParams::default()
        };
        // Nine self-play jobs of 10 games make as many games as one puzzle job of 90.
        assert!((puzzle_jobs(&params, 1) - 0.1).abs() < 1e-9);
        // A worker that plays 30 at once gets 30 and 90.
        assert!((puzzle_jobs(&params, 30) - 0.25).abs() < 1e-9);
        let none = SchedulingParams {
            puzzle_share: 0.0,
            ..params.clone()
        };
        assert_eq!(
            preference(&none, &drawn(0.99, 0.0), 1, false),
            Preference::Training(Training::SelfPlay)
        );
        let all = SchedulingParams {
            puzzle_share: 1.0,
            ..params
        };
        assert_eq!(
            preference(&all, &drawn(0.0, 0.99), 1, true),
            Preference::Match(Training::Puzzles)
        );
    }

    #[test]
    fn a_network_begins_with_puzzles() {
        let params = SchedulingParams {
            puzzle_share: 0.1,
            ..SchedulingParams::default()
        };
        let at = |begun| preference(&params, &drawn(0.99, 0.99), 1, begun);
        assert_eq!(at(false), Preference::Training(Training::Puzzles));
        assert_eq!(at(true), Preference::Training(Training::SelfPlay));
    }

    #[test]
    fn jobs_grow_with_the_worker_within_reason() {
        assert_eq!(job_size(32, 0), 32);
        assert_eq!(job_size(32, 64), 64);
        assert_eq!(job_size(32, u32::MAX), 128);
    }

    #[test]
    fn a_lease_has_its_length_again_as_grace() {
        assert!(!is_over(1_000, 500, 1_500));
        assert!(is_over(1_000, 500, 1_501));
    }

    #[test]
    fn bands_are_named_by_their_ends() {
        assert_eq!(rating_band(0), "0-199");
        assert_eq!(rating_band(1_250), "1200-1399");
    }
}
