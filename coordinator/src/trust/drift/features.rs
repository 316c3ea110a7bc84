//! What is compared: a chunk in sums, and the means that follow from them.

use std::ops::AddAssign;

use rookery_common::chunk::{SearchSums, ValueSums};

/// Self-play games in sums.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GameSums {
    pub games: u32,
    /// Searched plies.
    pub plies: u64,
    pub draws: u32,
    pub white_wins: u32,
    pub searches: SearchSums,
}

impl AddAssign for GameSums {
    fn add_assign(&mut self, other: Self) {
        self.games += other.games;
        self.plies += other.plies;
        self.draws += other.draws;
        self.white_wins += other.white_wins;
        self.searches += other.searches;
    }
}

/// A mean that is compared.
pub struct Feature {
    pub name: &'static str,
    /// By how much honest machines may differ in truth: a standard deviation.
    pub least: f64,
    /// The mean; none if too little is known.
    pub of: fn(&GameSums) -> Option<f64>,
}

/// Fewest searches for a mean of values.
const SEARCHES: u32 = 100;

/// All that is compared. Lengths are in plies, entropies in nats, values from −1 to 1 as the mover
/// sees them; an error is the squared difference between value and result.
pub const FEATURES: [Feature; 10] = [
    Feature {
        name: "game length",
        least: 0.5,
        of: |sums| per_game(sums, sums.plies as f64),
    },
    Feature {
        name: "share of draws",
        least: 0.01,
        of: |sums| per_game(sums, sums.draws.into()),
    },
    Feature {
        name: "share of White's wins",
        least: 0.01,
        of: |sums| per_game(sums, sums.white_wins.into()),
    },
    Feature {
        name: "visits of a search",
        least: 0.25,
        of: |sums| per_search(sums, sums.searches.visits as f64),
    },
    Feature {
        name: "entropy of visits",
        least: 0.02,
        of: |sums| per_search(sums, sums.searches.entropy),
    },
    Feature {
        name: "share of values that are not level",
        least: 0.01,
        of: |sums| {
            let [losing, _, winning] = sums.searches.values;
            per_search(sums, (losing.searches + winning.searches).into())
        },
    },
    Feature {
        name: "error of values",
        least: 0.01,
        of: |sums| {
            let errors = sums.searches.values.iter().map(|values| values.error);
            per_search(sums, errors.sum())
        },
    },
    Feature {
        name: "bias of values when losing",
        least: 0.02,
        of: |sums| bias(&sums.searches.values[0]),
    },
    Feature {
        name: "bias of values when level",
        least: 0.02,
        of: |sums| bias(&sums.searches.values[1]),
    },
    Feature {
        name: "bias of values when winning",
        least: 0.02,
        of: |sums| bias(&sums.searches.values[2]),
    },
];

fn per_game(sums: &GameSums, sum: f64) -> Option<f64> {
    (sums.games > 0).then(|| sum / f64::from(sums.games))
}

fn per_search(sums: &GameSums, sum: f64) -> Option<f64> {
    let searches = sums.searches.searches;
    (searches >= SEARCHES).then(|| sum / f64::from(searches))
}

/// By how much values are too high in the mean.
fn bias(values: &ValueSums) -> Option<f64> {
    let too_high = values.value - values.result as f64;
    (values.searches >= SEARCHES).then(|| too_high / f64::from(values.searches))
}
