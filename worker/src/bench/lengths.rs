//! How long the games of a measurement were, and how many an hour that makes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rookery_common::chunk::GameRecord;
use rookery_common::ids::JobId;

use crate::play::GameSink;

/// Positions of a game where too few have ended to tell: a run from zero had 106 in its first hours.
const ASSUMED_POSITIONS: f64 = 100.0;

/// Games go nowhere; only their number and their positions are kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Lengths(Arc<Sums>);

#[derive(Debug, Default)]
struct Sums {
    games: AtomicU64,
    positions: AtomicU64,
}

impl GameSink for Lengths {
    fn keep(&self, _job: JobId, game: Box<GameRecord>) {
        self.0.games.fetch_add(1, Relaxed);
        self.0.positions.fetch_add(game.plies.len() as u64, Relaxed);
    }

    fn is_stuck(&self) -> bool {
        false
    }
}

impl Lengths {
    /// Games that ended since the start.
    pub(super) fn ended(&self) -> u64 {
        self.0.games.load(Relaxed)
    }

    /// Searched positions of a game: the mean of those that ended, if as many have ended as are played at once. Games
    /// begin together, so that the first to end are the short ones; until then a usual length is taken.
    pub(super) fn positions_per_game(&self, at_once: usize) -> f64 {
        let games = self.ended();
        if games == 0 || games < at_once as u64 {
            return ASSUMED_POSITIONS;
        }
        self.0.positions.load(Relaxed) as f64 / games as f64
    }
}

/// Games an hour at this number of positions a second; none if either is unknown.
pub(super) fn games_per_hour(positions_per_s: f64, positions_per_game: f64) -> Option<f64> {
    (positions_per_s > 0.0 && positions_per_game > 0.0)
        .then(|| 3600.0 * positions_per_s / positions_per_game)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(games: u64, positions: u64) -> Lengths {
        let lengths = Lengths::default();
        lengths.0.games.store(games, Relaxed);
        lengths.0.positions.store(positions, Relaxed);
        lengths
    }

    #[test]
    fn a_usual_length_stands_for_games_until_as_many_have_ended_as_are_played_at_once() {
        assert_eq!(lengths(0, 0).positions_per_game(4), ASSUMED_POSITIONS);
        assert_eq!(lengths(3, 60).positions_per_game(4), ASSUMED_POSITIONS);
        assert_eq!(lengths(4, 300).positions_per_game(4), 75.0);
    }

    #[test]
    fn games_an_hour_follow_from_positions_a_second() {
        assert_eq!(games_per_hour(50.0, 100.0), Some(1800.0));
        assert_eq!(games_per_hour(0.0, 100.0), None);
        assert_eq!(games_per_hour(50.0, 0.0), None);
    }
}
