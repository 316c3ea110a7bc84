//! The fit against a published one, against generic optimisation, and at its edges.

use proptest::prelude::*;

use super::*;
use crate::rating::testing::close;

/// Player, opponent, wins, draws, losses.
fn pairing((player, opponent, wins, draws, losses): (usize, usize, u64, u64, u64)) -> Pairing {
    Pairing {
        player,
        opponent,
        wins,
        draws,
        losses,
    }
}

fn rate(
    players: usize,
    results: &[(usize, usize, u64, u64, u64)],
    anchors: &[Anchor],
) -> RatingFit {
    let pairings: Vec<Pairing> = results.iter().copied().map(pairing).collect();
    fit(players, &pairings, anchors).unwrap()
}

/// Elo and standard deviation of each player.
fn expect(fit: &RatingFit, expected: &[(f64, f64)]) {
    assert_eq!(fit.players().len(), expected.len());
    for (player, &(elo, deviation)) in fit.players().iter().zip(expected) {
        close(player.elo, elo, 2e-3);
        close(player.deviation, deviation, 2e-3);
    }
}

/// Davidson's own example (1970), six brands of chocolate pudding. Worths and `nu` as the R package
/// PlackettLuce publishes them in its vignette, there after seven iterations.
#[test]
fn agrees_with_davidsons_puddings() {
    let results = [
        (0, 1, 19, 16, 22),
        (0, 2, 16, 12, 19),
        (1, 2, 19, 10, 19),
        (0, 3, 18, 13, 23),
        (1, 3, 23, 9, 19),
        (2, 3, 19, 15, 20),
        (0, 4, 13, 18, 19),
        (1, 4, 16, 12, 20),
        (2, 4, 16, 17, 15),
        (3, 4, 17, 16, 14),
        (0, 5, 18, 12, 21),
        (1, 5, 22, 12, 20),
        (2, 5, 13, 10, 18),
        (3, 5, 14, 18, 19),
        (4, 5, 11, 12, 21),
    ];
    let none = Prior {
        difference: 1e6,
        rating: 1e6,
        log_nu: 1e3,
    };
    let fit = fit_with(6, &results.map(pairing), &[Anchor::FIRST], &none).unwrap();
    close(fit.nu(), 0.746_814_7, 2e-5);
    let scale = nats_per_elo(fit.nu());
    let worths: Vec<f64> = fit
        .players()
        .iter()
        .map(|p| (p.elo * scale).exp())
        .collect();
    let published = [
        0.138_800_5,
        0.172_998_5,
        0.161_742_0,
        0.165_393_0,
        0.158_680_5,
        0.202_385_5,
    ];
    for (worth, expected) in worths.iter().zip(published) {
        close(worth / worths.iter().sum::<f64>(), expected, 3e-5);
    }
    close(fit.players()[5].deviation, 24.336_8, 1e-3);
    close(fit.covariance(1, 2).unwrap(), 281.555_4, 1e-2);
}

/// Reference: the posterior written out from the probabilities and maximised by scipy's BFGS and
/// Nelder-Mead, its curvature by differences.
#[test]
fn agrees_with_generic_optimisation() {
    let results = [
        (0, 1, 10, 20, 30),
        (1, 2, 15, 25, 10),
        (0, 2, 8, 14, 18),
        (2, 3, 20, 0, 0),
    ];
    let fit = rate(4, &results, &[Anchor::FIRST]);
    expect(
        &fit,
        &[
            (0.0, 0.0),
            (121.446_3, 32.088_1),
            (87.514_0, 34.091_9),
            (-813.421_3, 318.233_8),
        ],
    );
    close(fit.nu(), 1.411_250, 1e-5);
    close(fit.covariance(1, 2).unwrap(), 597.647_9, 1e-2);

    let anchored = rate(
        4,
        &results,
        &[
            Anchor::FIRST,
            Anchor {
                player: 3,
                elo: 400.0,
            },
        ],
    );
    expect(
        &anchored,
        &[
            (0.0, 0.0),
            (214.867_3, 35.351_6),
            (265.830_7, 35.531_2),
            (400.0, 0.0),
        ],
    );
}

#[test]
fn players_without_a_way_to_the_first_stay_finite_and_uncertain() {
    let fit = rate(5, &[(0, 1, 10, 20, 30), (2, 3, 5, 5, 10)], &[Anchor::FIRST]);
    let elo: Vec<f64> = fit.players().iter().map(|player| player.elo).collect();
    close(elo[1], 120.573_7, 2e-3);
    close(elo[2] + elo[3], 0.0, 1e-2);
    close(fit.players()[2].deviation, 2121.3, 1.0);
    close(fit.players()[4].elo, 0.0, 1e-9);
    close(fit.players()[4].deviation, 3000.0, 1e-6);
    let (mean, deviation) = fit.difference(3, 2).unwrap();
    close(mean, 88.257_2, 1e-2);
    assert!(
        deviation < 120.0,
        "players that met are known better than to the first: {deviation}"
    );
}

#[test]
fn one_game_is_a_weak_bridge() {
    let fit = rate(
        4,
        &[
            (0, 1, 400, 400, 400),
            (2, 3, 400, 400, 400),
            (1, 2, 1, 0, 0),
        ],
        &[Anchor::FIRST],
    );
    let across = fit.players()[2];
    assert!(across.elo < -100.0 && across.high() > 0.0, "{across:?}");
    assert!(across.deviation < 2500.0, "{across:?}");
}

#[test]
fn clean_sweeps_stay_finite_and_uncertain() {
    let fit = rate(2, &[(1, 0, 20, 0, 0)], &[Anchor::FIRST]);
    expect(&fit, &[(0.0, 0.0), (802.420_0, 364.297_6)]);
    assert!(fit.superiority(1, 0).unwrap() > 0.98);
    let more = rate(2, &[(1, 0, 2000, 0, 0)], &[Anchor::FIRST]);
    assert!(more.players()[1].elo > fit.players()[1].elo);
}

#[test]
fn nothing_but_draws_is_equality() {
    let fit = rate(2, &[(1, 0, 0, 30, 0)], &[Anchor::FIRST]);
    expect(&fit, &[(0.0, 0.0), (0.0, 9.404_2)]);
    close(fit.superiority(1, 0).unwrap(), 0.5, 1e-6);
}

/// One match alone must say what the Elo of its score says: 168.4.
#[test]
fn the_scale_is_that_of_the_score() {
    for (draws, tolerance) in [(0, 1.0), (50, 2.0), (400, 1.0)] {
        let fit = rate(2, &[(1, 0, 120, draws, 60)], &[Anchor::FIRST]);
        let match_elo = crate::rating::EloEstimate::from_games(120, draws, 60).unwrap();
        close(fit.players()[1].elo, match_elo.elo, tolerance);
    }
}

#[test]
fn a_long_chain_is_not_drawn_together() {
    let results: Vec<_> = (1..60)
        .map(|player| (player, player - 1, 150, 150, 100))
        .collect();
    let fit = rate(60, &results, &[Anchor::FIRST]);
    let step = crate::rating::EloEstimate::from_games(150, 150, 100)
        .unwrap()
        .elo;
    close(fit.players()[59].elo / (59.0 * step), 1.0, 0.02);
    close(fit.players()[1].elo / step, 1.0, 0.03);
    assert!(fit.players()[59].deviation > fit.players()[1].deviation * 7.0);
    assert_eq!((fit.players()[0].games, fit.players()[1].games), (400, 800));
}

/// Hundreds of networks, each against its three predecessors, with true ratings known.
#[test]
fn hundreds_of_players_are_rated_at_once() {
    let truth = |player: usize| 20.0 * player as f64;
    let mut results = Vec::new();
    for player in 1..300_usize {
        for opponent in player.saturating_sub(3)..player {
            let score = crate::rating::elo::score_from_elo(truth(player) - truth(opponent));
            let wins = (score * 1000.0).round() as u64;
            results.push((player, opponent, wins, 0, 1000 - wins));
        }
    }
    let fit = rate(300, &results, &[Anchor::FIRST]);
    close(fit.players()[299].elo, truth(299), 60.0);
    assert!(fit.players()[299].low() < truth(299) && truth(299) < fit.players()[299].high());
}

#[test]
fn the_longest_records_are_still_rated() {
    let most = MAX_GAMES / 3;
    let fit = rate(
        4,
        &[
            (0, 1, most, most, most),
            (1, 2, 1, 0, 0),
            (2, 0, 0, 0, 1),
            (3, 2, MAX_GAMES, 0, 0),
        ],
        &[Anchor::FIRST],
    );
    close(fit.players()[1].elo, 0.0, 1e-3);
    assert!(fit.players().iter().all(|player| player.elo.is_finite()));
}

#[test]
fn nonsense_is_refused_by_name() {
    let first = [Anchor::FIRST];
    let results = |result| fit(2, &[pairing(result)], &first).unwrap_err();
    assert_eq!(
        results((0, 2, 1, 0, 0)),
        RatingError::UnknownPlayer {
            player: 2,
            players: 2
        }
    );
    assert_eq!(
        results((1, 1, 1, 0, 0)),
        RatingError::SelfPairing { player: 1 }
    );
    assert!(matches!(
        results((0, 1, MAX_GAMES, 1, 0)),
        RatingError::OutOfRange { .. }
    ));
    assert_eq!(fit(2, &[], &[]), Err(RatingError::NoAnchor));
    assert_eq!(
        fit(0, &[], &first),
        Err(RatingError::UnknownPlayer {
            player: 0,
            players: 0
        })
    );
    assert_eq!(
        fit(2, &[], &[Anchor::FIRST; 2]),
        Err(RatingError::DuplicateAnchor { player: 0 })
    );
    let endless = Anchor {
        player: 1,
        elo: f64::NAN,
    };
    assert!(matches!(
        fit(2, &[], &[endless]),
        Err(RatingError::OutOfRange { .. })
    ));
    assert!(matches!(
        fit(9999, &[], &first),
        Err(RatingError::TooManyPlayers { .. })
    ));
    let flat = Prior {
        rating: f64::INFINITY,
        ..Prior::default()
    };
    assert!(matches!(
        fit_with(2, &[], &first, &flat),
        Err(RatingError::OutOfRange { .. })
    ));
    let none = fit(1, &[], &first).unwrap();
    assert_eq!(
        (none.covariance(0, 1), none.superiority(1, 0)),
        (None, None)
    );
    assert_eq!(none.superiority(0, 0), Some(0.5));
}

fn any_results() -> impl Strategy<Value = Vec<(usize, usize, u64, u64, u64)>> {
    let count = || prop_oneof![Just(0), 0_u64..40, 0_u64..100_000];
    let one = (0_usize..6, 1_usize..6, count(), count(), count()).prop_map(
        |(player, step, wins, draws, losses)| (player, (player + step) % 6, wins, draws, losses),
    );
    prop::collection::vec(one, 0..12)
}

proptest! {
    #[test]
    fn any_results_give_finite_ratings(results in any_results(), far in -10_000.0..10_000.0) {
        let fit = rate(6, &results, &[Anchor::FIRST, Anchor { player: 5, elo: far }]);
        for player in fit.players() {
            prop_assert!(player.elo.is_finite() && player.deviation.is_finite());
            prop_assert!(player.low() <= player.elo && player.elo <= player.high());
        }
    }

    #[test]
    fn turning_every_game_round_negates(results in any_results()) {
        let turned: Vec<_> = results.iter().map(|&(a, b, w, d, l)| (a, b, l, d, w)).collect();
        let (ours, theirs) =
            (rate(6, &results, &[Anchor::FIRST]), rate(6, &turned, &[Anchor::FIRST]));
        for (one, other) in ours.players().iter().zip(theirs.players()) {
            prop_assert!((one.elo + other.elo).abs() < 1e-3, "{:?} {:?}", one, other);
            prop_assert!((one.deviation - other.deviation).abs() <= 1e-5 * one.deviation, "{:?} {:?}", one, other);
        }
    }

    #[test]
    fn naming_a_pairing_from_the_other_side_changes_nothing(results in any_results()) {
        let turned: Vec<_> = results.iter().map(|&(a, b, w, d, l)| (b, a, l, d, w)).collect();
        prop_assert_eq!(rate(6, &results, &[Anchor::FIRST]), rate(6, &turned, &[Anchor::FIRST]));
    }

    #[test]
    fn superiority_is_symmetric(results in any_results()) {
        let fit = rate(6, &results, &[Anchor::FIRST]);
        let sum = fit.superiority(1, 4).unwrap() + fit.superiority(4, 1).unwrap();
        prop_assert!((sum - 1.0).abs() < 1e-9);
    }

    #[test]
    fn more_of_the_same_narrows(wins in 1_u64..50, draws in 0_u64..50, losses in 1_u64..50) {
        let once = rate(2, &[(1, 0, wins, draws, losses)], &[Anchor::FIRST]);
        let often = rate(2, &[(1, 0, 10 * wins, 10 * draws, 10 * losses)], &[Anchor::FIRST]);
        prop_assert!(often.players()[1].deviation < once.players()[1].deviation);
    }
}
