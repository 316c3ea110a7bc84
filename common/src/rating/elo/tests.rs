//! Elo against values of other programs and of generic optimisation, and its symmetries.

use proptest::prelude::*;

use super::*;
use crate::rating::testing::close;

fn pairs(counts: [u64; 5]) -> EloEstimate {
    EloEstimate::from_pairs(&Pentanomial { counts }).unwrap()
}

/// Half the width of the Elo interval: the number after ± in other programs.
fn half_width(estimate: &EloEstimate) -> f64 {
    (estimate.high - estimate.low) / 2.0
}

#[test]
fn the_scale_is_400_points_for_ten_to_one() {
    close(score_from_elo(400.0), 10.0 / 11.0, 1e-15);
    close(elo_from_score(0.55), 34.860_070_287_560_08, 1e-10);
    close(elo_from_score(1.0), 1_199.826_2, 1e-4);
    close(NELO_PER_DEVIATION, 347.435_585_522_601_46, 1e-10);
    close(nelo_from_score(0.6, 0.4), NELO_PER_DEVIATION / 4.0, 1e-10);
}

/// Reference: the likelihood maximised over all distributions of a given mean by
/// `scipy.optimize.minimize` (SLSQP), its edges by `brentq`.
#[test]
fn intervals_agree_with_generic_optimisation() {
    let cases = [
        (
            [10789, 19328, 33806, 19402, 10543],
            -0.773_577_3,
            -2.051_176_3,
            0.503_991_7,
            0.117_658_6,
        ),
        (
            [39, 2226, 31451, 2412, 40],
            0.902_981_0,
            0.240_479_9,
            1.565_778_4,
            0.996_221_1,
        ),
        (
            [5, 40, 80, 60, 15],
            34.860_070_3,
            12.325_251_9,
            57.622_505_8,
            0.998_742_8,
        ),
        (
            [0, 3, 10, 7, 1],
            49.956_193_7,
            -7.780_084_5,
            112.932_030_2,
            0.955_840_6,
        ),
    ];
    for (counts, elo, low, high, los) in cases {
        let estimate = pairs(counts);
        close(estimate.elo, elo, 1e-6);
        close(estimate.low, low, 1e-5);
        close(estimate.high, high, 1e-5);
        close(estimate.los, los, 1e-6);
    }
    let games = EloEstimate::from_games(120, 50, 30).unwrap();
    close(games.low, 124.281_375_2, 1e-5);
    close(games.high, 213.822_837_1, 1e-5);
    let few = EloEstimate::from_games(5, 3, 2).unwrap();
    close(few.low, -76.382_697, 1e-5);
    close(few.high, 306.996_649, 1e-5);
    close(few.los, 0.875_444_8, 1e-6);
}

/// Reference: fishtest's `stat_util.get_elo` and its normalised Elo, computed with scipy.
#[test]
fn long_matches_agree_with_fishtest() {
    let estimate = pairs([39, 2226, 31451, 2412, 40]);
    close(half_width(&estimate), 0.662_531_5, 1e-3);
    close(estimate.los, 0.996_222_1, 1e-5);
    close(estimate.nelo, 3.450_799_6, 1e-6);
    let games = EloEstimate::from_games(65_388, 56_553, 65_804).unwrap();
    close(half_width(&games), 1.313_742_9, 1e-3);
    close(games.nelo, -0.920_939_9, 1e-6);
}

/// With `n` wins and nothing else, the least likely score still allowed is `exp(-z^2 / 2n)`, and
/// the likelihood ratio against equality is `2^n`.
#[test]
fn a_clean_sweep_has_an_honest_interval() {
    for wins in [1, 3, 10, 200] {
        let estimate = EloEstimate::from_games(wins, 0, 0).unwrap();
        close(
            estimate.score_low,
            (-Z95 * Z95 / (2.0 * wins as f64)).exp(),
            2e-3,
        );
        close(estimate.score_high, 1.0, 1e-9);
        close(
            estimate.los,
            cdf((2.0 * wins as f64 * 2_f64.ln()).sqrt()),
            2e-3,
        );
    }
}

proptest! {
    #[test]
    fn swapping_sides_negates(counts in prop::array::uniform5(0_u64..500)) {
        prop_assume!(counts.iter().sum::<u64>() > 0);
        let ours = pairs(counts);
        let theirs = EloEstimate::from_pairs(&Pentanomial { counts }.swapped()).unwrap();
        prop_assert!((ours.elo + theirs.elo).abs() < 1e-6);
        prop_assert!((ours.low + theirs.high).abs() < 1e-6);
        prop_assert!((ours.high + theirs.low).abs() < 1e-6);
        prop_assert!((ours.los + theirs.los - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_interval_holds_the_estimate(wins in 0_u64..1 << 40, draws in 0_u64..1 << 40, losses in 0_u64..1 << 40) {
        prop_assume!(wins + draws + losses > 0);
        let e = EloEstimate::from_games(wins, draws, losses).unwrap();
        prop_assert!(e.low <= e.elo && e.elo <= e.high);
        prop_assert!([e.elo, e.low, e.high, e.nelo].iter().all(|x| x.is_finite()));
        prop_assert!((0.0..=1.0).contains(&e.los));
    }

    #[test]
    fn draws_shrink_the_interval_of_equals(each in 1_u64..300, draws in 0_u64..300, more in 1_u64..300) {
        let before = EloEstimate::from_games(each, draws, each).unwrap();
        let after = EloEstimate::from_games(each, draws + more, each).unwrap();
        prop_assert!(half_width(&after) < half_width(&before));
    }

    #[test]
    fn a_win_more_raises_the_estimate(wins in 0_u64..300, draws in 0_u64..300, losses in 1_u64..300) {
        let before = EloEstimate::from_games(wins, draws, losses).unwrap();
        let after = EloEstimate::from_games(wins + 1, draws, losses).unwrap();
        prop_assert!(after.score > before.score);
        prop_assert!(after.los > before.los - 1e-12);
    }

    #[test]
    fn more_of_the_same_shrinks_around_the_same_score(counts in prop::array::uniform5(1_u64..200), times in 2_u64..20) {
        let once = pairs(counts);
        let often = pairs(counts.map(|count| count * times));
        prop_assert!((once.elo - often.elo).abs() < 1e-9);
        prop_assert!((once.nelo - often.nelo).abs() < 1e-9);
        prop_assert!(half_width(&often) < half_width(&once));
    }

    #[test]
    fn elo_and_score_are_inverse(elo in -1190.0..1190.0) {
        prop_assert!((elo_from_score(score_from_elo(elo)) - elo).abs() < 1e-9);
    }
}
