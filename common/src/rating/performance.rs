//! The rating of a player from tasks whose ratings are known, as puzzles are.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::elo::score_from_elo;
use super::roots::bisect;

/// Tasks of one rating, and how many of them were solved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tasks {
    /// Their rating.
    pub rating: f64,
    /// How many were tried.
    pub tried: u64,
    /// How many of these were solved; more than were tried count as all.
    pub solved: u64,
}

/// A rating with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Performance {
    /// The rating.
    pub elo: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// How far beyond the easiest and the hardest task a rating can lie: one in ten thousand is solved by
/// chance or failed by accident anyway.
const BEYOND: f64 = 1_600.0;

/// What the log-likelihood falls by at the ends of a 95 % interval: half of the chi-squared quantile of
/// one degree of freedom (Wilks' theorem).
const FALL_95: f64 = 1.920_729;

/// The rating at which the tasks' results are likeliest: a task of rating `r` is solved with the probability
/// that a player wins against one rated `r`, draws aside (the model of Lichess's puzzle ratings without
/// their deviations). None if nothing was tried.
pub fn performance(tasks: &[Tasks]) -> Option<Performance> {
    let tasks = || tasks.iter().filter(|tasks| tasks.tried > 0);
    let lowest = tasks().map(|tasks| tasks.rating).reduce(f64::min)? - BEYOND;
    let highest = tasks().map(|tasks| tasks.rating).reduce(f64::max)? + BEYOND;
    let solved = |tasks: &Tasks| tasks.solved.min(tasks.tried) as f64;
    let all: f64 = tasks().map(solved).sum();
    let expected = |elo: f64| -> f64 {
        let of = |tasks: &Tasks| tasks.tried as f64 * score_from_elo(elo - tasks.rating);
        tasks().map(of).sum()
    };
    let likelihood = |elo: f64| -> f64 {
        let of = |tasks: &Tasks| {
            // Of p and 1 - p, each of which may be too close to 0 to be told from it.
            let log_odds = (elo - tasks.rating) * std::f64::consts::LN_10 / 400.0;
            let (log_p, log_q) = (-(-log_odds).exp().ln_1p(), -log_odds.exp().ln_1p());
            let won = solved(tasks);
            won * log_p + (tasks.tried as f64 - won) * log_q
        };
        tasks().map(of).sum()
    };
    let elo = bisect(lowest, highest, |elo| expected(elo) < all);
    let floor = likelihood(elo) - FALL_95;
    Some(Performance {
        elo,
        low: bisect(lowest, elo, |elo| likelihood(elo) < floor),
        high: bisect(elo, highest, |elo| likelihood(elo) > floor),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rating: f64, tried: u64, solved: u64) -> Tasks {
        Tasks {
            rating,
            tried,
            solved,
        }
    }

    #[test]
    fn tasks_may_be_as_far_apart_as_ratings_are() {
        let both = performance(&[of(700.0, 20, 20), of(6_100.0, 20, 20)]).unwrap();
        assert!(both.low > 6_000.0 && both.high >= both.low, "{both:?}");
        let none = performance(&[of(0.0, 20, 0), of(4e9, 20, 0)]).unwrap();
        assert!(none.high < 100.0 && none.low <= none.high, "{none:?}");
    }

    /// Half of the tasks solved is their own rating, ten in eleven are 400 more.
    #[test]
    fn one_rating_gives_its_elo_difference() {
        let even = performance(&[of(1_500.0, 100, 50)]).unwrap();
        assert!((even.elo - 1_500.0).abs() < 1e-6, "{even:?}");
        let better = performance(&[of(1_500.0, 110, 100)]).unwrap();
        assert!((better.elo - 1_900.0).abs() < 1e-6, "{better:?}");
        // 100 tries: a deviation of 0.05 of the score, 34.7 Elo.
        let half = (even.high - even.low) / 2.0;
        assert!((half - 1.96 * 34.74).abs() < 2.0, "{even:?}");
    }

    #[test]
    fn more_tasks_narrow_the_interval_and_all_bands_count() {
        let few = [of(700.0, 20, 16), of(1_100.0, 20, 9), of(1_500.0, 20, 3)];
        let many = few.map(|tasks| of(tasks.rating, 25 * tasks.tried, 25 * tasks.solved));
        let (few, many) = (performance(&few).unwrap(), performance(&many).unwrap());
        assert!((few.elo - many.elo).abs() < 1e-6);
        assert!(
            few.low < many.low && many.high < few.high,
            "{few:?} {many:?}"
        );
        assert!(((few.high - few.low) / (many.high - many.low) - 5.0).abs() < 0.3);
        assert!((900.0..1_200.0).contains(&many.elo), "{many:?}");
    }

    #[test]
    fn nothing_solved_or_everything_has_one_open_end() {
        let none = performance(&[of(1_000.0, 30, 0)]).unwrap();
        assert!(none.elo < -590.0 && none.high < 600.0, "{none:?}");
        let all = performance(&[of(1_000.0, 30, 40)]).unwrap();
        assert!(all.elo > 2_590.0 && all.low > 1_400.0, "{all:?}");
        assert_eq!(performance(&[of(1_000.0, 0, 0)]), None);
        assert_eq!(performance(&[]), None);
    }
}
