//! A game's searches in sums, by which contributors are compared with each other.
//!
//! Sums are cheap, add up over games and chunks, and give means: how many visits a search had and
//! how they were spread, and what the values were worth once the game was over. Values are told
//! apart by what the mover thought, because an error on one side makes up for one on the other.

use std::ops::AddAssign;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::record::{GameRecord, PlyRecord};

/// Values beyond this, as the mover sees them, are not level.
const LEVEL: f32 = 1.0 / 3.0;
/// Visit counts below this have their part of the entropy in a table.
const TABLE: usize = 1024;

/// `n ln n` for small counts.
static N_LN_N: LazyLock<[f64; TABLE]> = LazyLock::new(|| std::array::from_fn(|n| n_ln_n(n as f64)));

fn n_ln_n(n: f64) -> f64 {
    if n > 0.0 { n * n.ln() } else { 0.0 }
}

/// Sums over the searches of some games.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct SearchSums {
    /// Searches, full and fast.
    pub searches: u32,
    /// Their visits.
    pub visits: u64,
    /// The entropies of their visits, in nats.
    pub entropy: f64,
    /// Their values where the mover thought to be losing (below −1/3), level, and winning.
    pub values: [ValueSums; 3],
}

/// Sums over the values of some searches and what became of their games, as the mover sees both.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ValueSums {
    /// Searches.
    pub searches: u32,
    /// The roots' values, each −1 to 1.
    pub value: f64,
    /// The games' results, each −1, 0 or 1.
    pub result: i64,
    /// The squared differences between value and result, each 0 to 4.
    pub error: f64,
}

impl SearchSums {
    /// The sums of one game. Without searches, or where its start is not a position, all are 0.
    pub fn of(game: &GameRecord) -> Self {
        let mut sums = Self::default();
        let Ok(start) = game.start.history() else {
            return sums;
        };
        let mut mover = start.turn();
        for ply in &game.plies {
            sums.add(ply, game.end.result.score_for(mover));
            mover = !mover;
        }
        sums
    }

    fn add(&mut self, ply: &PlyRecord, result: i8) {
        self.searches += 1;
        let visits: u64 = ply.visits.iter().map(|n| u64::from(*n)).sum();
        self.visits += visits;
        self.entropy += entropy(&ply.visits, visits);
        let group = match ply.root_q {
            q if q < -LEVEL => 0,
            q if q > LEVEL => 2,
            _ => 1,
        };
        let difference = f64::from(ply.root_q) - f64::from(result);
        self.values[group] += ValueSums {
            searches: 1,
            value: ply.root_q.into(),
            result: result.into(),
            error: difference * difference,
        };
    }
}

impl AddAssign for SearchSums {
    fn add_assign(&mut self, other: Self) {
        self.searches += other.searches;
        self.visits += other.visits;
        self.entropy += other.entropy;
        for (own, other) in self.values.iter_mut().zip(other.values) {
            *own += other;
        }
    }
}

impl AddAssign for ValueSums {
    fn add_assign(&mut self, other: Self) {
        self.searches += other.searches;
        self.value += other.value;
        self.result += other.result;
        self.error += other.error;
    }
}

/// The entropy of a distribution of visits, in nats: 0 where all are on one move.
fn entropy(visits: &[u32], all: u64) -> f64 {
    if all == 0 {
        return 0.0;
    }
    let part = |n: &u32| match N_LN_N.get(*n as usize) {
        Some(part) => *part,
        None => n_ln_n(f64::from(*n)),
    };
    let all = all as f64;
    all.ln() - visits.iter().map(part).sum::<f64>() / all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{GameEnd, GameResult, Termination};
    use crate::chunk::testing;

    /// A random game whose every search says this of the mover.
    fn game(values: impl Fn(usize) -> f32, result: GameResult) -> GameRecord {
        let mut game = testing::game(0);
        game.end = GameEnd {
            result,
            termination: Termination::PlyLimit,
        };
        for (place, ply) in game.plies.iter_mut().enumerate() {
            ply.root_q = values(place);
        }
        game
    }

    #[test]
    fn entropy_is_that_of_the_distribution() {
        let of = |visits: &[u32]| entropy(visits, visits.iter().map(|n| u64::from(*n)).sum());
        assert_eq!((of(&[]), of(&[0, 0])), (0.0, 0.0));
        assert!(of(&[7, 0, 0]).abs() < 1e-12);
        assert!((of(&[5, 5, 5, 5]) - 4_f64.ln()).abs() < 1e-12);
        // Beyond the table as within it.
        assert!((of(&[3, 1]) - of(&[6000, 2000])).abs() < 1e-9);
    }

    #[test]
    fn values_are_compared_with_what_the_mover_got() {
        // White is sure to win, Black to lose, and so it goes.
        let right = |place: usize| if place.is_multiple_of(2) { 0.9 } else { -0.9 };
        let sums = SearchSums::of(&game(right, GameResult::WhiteWins));
        let [losing, level, winning] = sums.values;
        assert_eq!(level, ValueSums::default());
        assert_eq!(losing.searches + winning.searches, sums.searches);
        assert_eq!(winning.result, i64::from(winning.searches));
        assert_eq!(losing.result, -i64::from(losing.searches));
        assert!((winning.error - 0.01 * f64::from(winning.searches)).abs() < 1e-3);
        // The same values and the other result are as wrong as can be.
        let sums = SearchSums::of(&game(right, GameResult::BlackWins));
        assert_eq!(sums.values[2].result, -i64::from(sums.values[2].searches));
        assert!(sums.values[2].error > 3.5 * f64::from(sums.values[2].searches));
    }

    #[test]
    fn sums_add_up() {
        let one = SearchSums::of(&game(|_| 0.1, GameResult::Draw));
        let mut two = one;
        two += one;
        assert_eq!(
            (two.searches, two.visits),
            (2 * one.searches, 2 * one.visits)
        );
        assert_eq!(two.values[1].searches, 2 * one.values[1].searches);
        assert!((two.entropy - 2.0 * one.entropy).abs() < 1e-9);
        let text = serde_json::to_string(&two).expect("sums are JSON");
        assert_eq!(serde_json::from_str::<SearchSums>(&text).ok(), Some(two));
    }
}
