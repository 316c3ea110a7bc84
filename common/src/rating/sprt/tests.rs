//! The test against published values, generic optimisation and its symmetries.

use proptest::prelude::*;

use super::*;

fn params(elo0: f64, elo1: f64, model: EloModel) -> SprtParams {
    SprtParams {
        elo0,
        elo1,
        model,
        ..SprtParams::default()
    }
}

fn llr(counts: [u64; 5], elo0: f64, elo1: f64, model: EloModel) -> f64 {
    params(elo0, elo1, model)
        .llr(&Pentanomial { counts })
        .unwrap()
}

/// Published by OpenBench for finished tests, to two digits (as collected in the tests of
/// MortenLohne/racetrack).
#[test]
fn normalised_llr_agrees_with_openbench() {
    let cases = [
        ([440, 2910, 5170, 2888, 455], 0.0, 5.0, -2.27),
        ([142, 620, 1122, 699, 188], 0.0, 5.0, 2.99),
        ([349, 1561, 3340, 1604, 359], -5.0, 0.0, 2.90),
        ([98, 382, 674, 369, 71], -5.0, 0.0, -1.11),
    ];
    for (counts, elo0, elo1, expected) in cases {
        let got = llr(counts, elo0, elo1, EloModel::Normalised);
        assert!(
            (got - expected).abs() < 0.0051,
            "{counts:?}: {got}, expected {expected}"
        );
    }
}

/// Reference: both likelihoods maximised by `scipy.optimize.minimize` (SLSQP) over all
/// distributions that obey the hypothesis, counts from fishtest's own examples and extreme ones.
#[test]
fn llr_agrees_with_generic_optimisation() {
    let cases = [
        (
            [10789, 19328, 33806, 19402, 10543],
            -3.0,
            1.0,
            2.131_067_8,
            0.300_869_8,
        ),
        (
            [39, 2226, 31451, 2412, 40],
            0.2,
            0.9,
            2.162_542_6,
            1.216_596_7,
        ),
        (
            [39, 2226, 31451, 2412, 40],
            0.764,
            3.439,
            -27.865_237_3,
            2.162_940_9,
        ),
        ([0, 0, 0, 0, 3], -1.75, 0.25, 0.017_318_2, 0.024_501_1),
        ([0, 3, 10, 7, 1], 0.0, 10.0, 0.521_078_0, 0.298_616_7),
        ([5, 40, 80, 60, 15], 0.0, 20.0, 3.728_636_3, 2.798_010_4),
        ([0, 0, 0, 0, 30], 0.0, 30.0, 2.478_867_8, 3.432_362_2),
        ([12, 0, 0, 0, 30], 0.0, 30.0, 1.397_943_0, 1.881_822_1),
    ];
    for (counts, elo0, elo1, logistic, normalised) in cases {
        for (model, expected) in [
            (EloModel::Logistic, logistic),
            (EloModel::Normalised, normalised),
        ] {
            let got = llr(counts, elo0, elo1, model);
            assert!(
                (got - expected).abs() < 2e-5,
                "{counts:?} {model:?}: {got}, not {expected}"
            );
        }
    }
}

#[test]
fn bounds_are_walds() {
    let (lower, upper) = SprtParams::default().bounds();
    assert!((upper - 2.944_438_979).abs() < 1e-9 && (lower + upper).abs() < 1e-12);
    let strict = SprtParams {
        alpha: 0.01,
        beta: 0.1,
        ..SprtParams::default()
    };
    assert!((strict.bounds().1 - 90_f64.ln()).abs() < 1e-12);
}

#[test]
fn a_bound_reached_is_a_verdict() {
    let test = SprtParams::default();
    let verdict = |counts| test.status(&Pentanomial { counts }).unwrap().verdict;
    assert_eq!(verdict([0; 5]), Verdict::Continue);
    assert_eq!(verdict([1, 2, 5, 3, 1]), Verdict::Continue);
    assert_eq!(verdict([2, 20, 60, 60, 20]), Verdict::AcceptH1);
    assert_eq!(verdict([20, 60, 60, 20, 2]), Verdict::AcceptH0);
}

#[test]
fn nonsense_is_refused_by_name() {
    let bad = [
        (
            SprtParams {
                elo0: f64::NAN,
                ..SprtParams::default()
            },
            "elo0 must be between",
        ),
        (
            SprtParams {
                elo1: f64::INFINITY,
                ..SprtParams::default()
            },
            "elo1 must be between",
        ),
        (
            SprtParams {
                alpha: 0.0,
                ..SprtParams::default()
            },
            "alpha must be between",
        ),
        (
            SprtParams {
                beta: 0.7,
                ..SprtParams::default()
            },
            "beta must be between",
        ),
        (
            SprtParams {
                elo0: 30.0,
                ..SprtParams::default()
            },
            "elo0 must be below elo1",
        ),
        (
            params(0.0, 250.0, EloModel::Normalised),
            "between -200 and 200",
        ),
    ];
    for (test, message) in bad {
        let error = test
            .llr(&Pentanomial { counts: [1; 5] })
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn the_model_may_be_left_out() {
    let json = r#"{"elo0": 0, "elo1": 5, "alpha": 0.05, "beta": 0.05}"#;
    let test: SprtParams = serde_json::from_str(json).unwrap();
    assert_eq!(test.model, EloModel::Logistic);
    assert_eq!(
        serde_json::to_value(Verdict::AcceptH1).unwrap(),
        "accept-h1"
    );
}

fn any_model() -> impl Strategy<Value = EloModel> {
    prop_oneof![Just(EloModel::Logistic), Just(EloModel::Normalised)]
}

/// Counts of every size, zero often among them.
fn any_counts() -> impl Strategy<Value = [u64; 5]> {
    let count = prop_oneof![
        Just(0),
        0_u64..50,
        0_u64..1 << 40,
        any::<u64>().prop_map(|n| n >> 8)
    ];
    prop::array::uniform5(count)
}

proptest! {
    #[test]
    fn swapping_sides_and_hypotheses_negates(
        counts in prop::array::uniform5(0_u64..2000),
        elo0 in -50.0..50.0, gap in 0.5..60.0, model in any_model(),
    ) {
        let ours = llr(counts, elo0, elo0 + gap, model);
        let swapped = Pentanomial { counts }.swapped().counts;
        let theirs = llr(swapped, -elo0 - gap, -elo0, model);
        prop_assert!((ours + theirs).abs() < 1e-6 * (1.0 + ours.abs()), "{} {}", ours, theirs);
    }

    #[test]
    fn llr_grows_with_the_number_of_pairs(
        counts in prop::array::uniform5(1_u64..500), times in 2_u64..50, model in any_model(),
    ) {
        let once = llr(counts, 0.0, 20.0, model);
        let often = llr(counts.map(|count| count * times), 0.0, 20.0, model);
        prop_assert!((often - once * times as f64).abs() < 1e-7 * (1.0 + often.abs()));
    }

    #[test]
    fn a_pair_won_more_raises_llr(
        ends in 5_u64..500, sides in 5_u64..500, middle in 5_u64..500, won in 0_u64..5,
        model in any_model(),
    ) {
        let at = |won| llr([ends, sides, middle, sides, ends + won], 0.0, 20.0, model);
        prop_assert!(at(won + 1) > at(won));
    }

    #[test]
    fn any_counts_give_a_number(
        counts in any_counts(), elo0 in -199.0..198.0, gap in 0.01..1.0, model in any_model(),
    ) {
        let elo1 = elo0 + gap * (200.0 - elo0);
        prop_assert!(llr(counts, elo0, elo1, model).is_finite());
    }
}
