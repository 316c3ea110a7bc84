//! Each rule's decisions, their limits, and the JSON that operators write.

use proptest::prelude::*;

use super::*;
use crate::rating::pentanomial::Pentanomial;

fn games(wins: u64, draws: u64, losses: u64) -> Tally {
    Tally {
        wins,
        draws,
        losses,
        pairs: Pentanomial::default(),
    }
}

/// A tally of the pairs alone; a pair of one point is a win and a loss.
fn pairs(counts: [u64; 5]) -> Tally {
    let [ll, ld, wl, wd, ww] = counts;
    Tally {
        wins: wl + wd + 2 * ww,
        draws: ld + wd,
        losses: 2 * ll + ld + wl,
        pairs: Pentanomial { counts },
    }
}

fn sprt(max_pairs: u64, at_limit: AtLimit) -> GateRule {
    GateRule::Sprt {
        params: SprtParams::default(),
        max_pairs,
        at_limit,
    }
}

fn decide(rule: &GateRule, tally: &Tally) -> (GateDecision, GateReason) {
    let verdict = rule.decide(tally).unwrap();
    (verdict.decision, verdict.reason)
}

#[test]
fn a_sequential_gate_follows_its_test() {
    let rule = sprt(1000, AtLimit::Reject);
    let cases = [
        (
            [1, 2, 5, 3, 1],
            GateDecision::Continue,
            GateReason::Undecided,
        ),
        (
            [2, 20, 60, 60, 20],
            GateDecision::Promote,
            GateReason::AcceptedH1,
        ),
        (
            [20, 60, 60, 20, 2],
            GateDecision::Reject,
            GateReason::AcceptedH0,
        ),
    ];
    for (counts, decision, reason) in cases {
        let verdict = rule.decide(&pairs(counts)).unwrap();
        assert_eq!(
            (verdict.decision, verdict.reason),
            (decision, reason),
            "{counts:?}"
        );
        assert!(verdict.sprt.unwrap().llr.is_finite());
    }
}

#[test]
fn a_sequential_gate_ends_at_its_limit_as_it_says() {
    let (above, even) = (pairs([1, 2, 5, 3, 1]), pairs([1, 2, 6, 2, 1]));
    let better = sprt(12, AtLimit::PromoteIfScoreAboveHalf);
    assert_eq!(
        decide(&better, &above),
        (GateDecision::Promote, GateReason::LimitAboveHalf)
    );
    assert_eq!(
        decide(&better, &even),
        (GateDecision::Reject, GateReason::LimitNotAboveHalf)
    );
    let strict = sprt(12, AtLimit::Reject);
    assert_eq!(
        decide(&strict, &above),
        (GateDecision::Reject, GateReason::LimitRejects)
    );
    let longer = sprt(13, AtLimit::Reject);
    assert_eq!(decide(&longer, &above).0, GateDecision::Continue);
}

#[test]
fn an_unfinished_pair_does_not_count() {
    let mut tally = pairs([1, 2, 5, 3, 0]);
    let rule = sprt(12, AtLimit::Reject);
    tally.wins += 5;
    assert_eq!(decide(&rule, &tally).0, GateDecision::Continue);
}

#[test]
fn a_fixed_gate_needs_more_than_its_threshold() {
    let rule = GateRule::Fixed {
        games: 400,
        threshold: 0.55,
    };
    assert_eq!(decide(&rule, &games(220, 0, 180)).0, GateDecision::Reject);
    assert_eq!(decide(&rule, &games(220, 1, 179)).0, GateDecision::Promote);
    assert_eq!(decide(&rule, &games(0, 0, 0)).0, GateDecision::Continue);
}

#[test]
fn a_fixed_gate_stops_when_the_rest_cannot_change_it() {
    let rule = GateRule::Fixed {
        games: 400,
        threshold: 0.55,
    };
    assert_eq!(decide(&rule, &games(220, 0, 0)).0, GateDecision::Continue);
    assert_eq!(decide(&rule, &games(220, 1, 0)).0, GateDecision::Promote);
    assert_eq!(decide(&rule, &games(0, 0, 179)).0, GateDecision::Continue);
    assert_eq!(decide(&rule, &games(0, 0, 180)).0, GateDecision::Reject);
}

#[test]
fn no_gate_promotes_at_once() {
    let verdict = GateRule::None.decide(&Tally::default()).unwrap();
    assert_eq!(
        (verdict.decision, verdict.reason),
        (GateDecision::Promote, GateReason::NoGate)
    );
    assert_eq!(GateRule::None.max_games(), 0);
}

#[test]
fn nonsense_is_refused_by_name() {
    let bad = [
        (sprt(0, AtLimit::Reject), "max_pairs"),
        (
            GateRule::Fixed {
                games: 0,
                threshold: 0.5,
            },
            "games",
        ),
        (
            GateRule::Fixed {
                games: u64::MAX,
                threshold: 0.5,
            },
            "games",
        ),
        (
            GateRule::Fixed {
                games: 10,
                threshold: f64::NAN,
            },
            "threshold",
        ),
        (
            GateRule::Fixed {
                games: 10,
                threshold: 1.5,
            },
            "threshold",
        ),
    ];
    for (rule, name) in bad {
        let error = rule.decide(&Tally::default()).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    let impossible = Tally {
        pairs: Pentanomial { counts: [1; 5] },
        ..Tally::default()
    };
    assert!(GateRule::default().decide(&impossible).is_err());
}

#[test]
fn a_rules_json_names_its_kind() {
    let fixed = r#"{"kind": "fixed", "games": 400, "threshold": 0.55}"#;
    let rule: GateRule = serde_json::from_str(fixed).unwrap();
    assert_eq!(
        rule,
        GateRule::Fixed {
            games: 400,
            threshold: 0.55
        }
    );
    let json = serde_json::to_value(GateRule::default()).unwrap();
    assert_eq!(json["kind"], "sprt");
    assert_eq!(json["at_limit"], "promote-if-score-above-half");
    assert_eq!(
        serde_json::from_value::<GateRule>(json).unwrap(),
        GateRule::default()
    );
    assert_eq!(
        serde_json::to_string(&GateRule::None).unwrap(),
        r#"{"kind":"none"}"#
    );
}

proptest! {
    #[test]
    fn no_gate_goes_beyond_its_limit(counts in prop::array::uniform5(0_u64..200)) {
        let tally = pairs(counts);
        prop_assume!(tally.games() > 0);
        let fixed = GateRule::Fixed { games: tally.games(), threshold: 0.55 };
        prop_assert_ne!(decide(&fixed, &tally).0, GateDecision::Continue);
        let sequential = sprt(tally.pairs.pairs(), AtLimit::Reject);
        prop_assert_ne!(decide(&sequential, &tally).0, GateDecision::Continue);
    }

    #[test]
    fn an_early_end_is_the_end(wins in 0_u64..60, draws in 0_u64..60, losses in 0_u64..60) {
        let rule = GateRule::Fixed { games: 200, threshold: 0.55 };
        let so_far = games(wins, draws, losses);
        let left = 200 - so_far.games();
        let outcomes = [games(wins + left, draws, losses), games(wins, draws, losses + left)]
            .map(|end| decide(&rule, &end).0);
        match decide(&rule, &so_far).0 {
            GateDecision::Continue => prop_assert_ne!(outcomes[0], outcomes[1]),
            decided => prop_assert_eq!(outcomes, [decided; 2]),
        }
    }
}
