//! Gates whose pairs come in any order, or do not come.

use std::collections::{BTreeSet, HashSet};

use rand::seq::SliceRandom as _;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::rating::gate::AtLimit;
use rookery_common::rating::sprt::SprtParams;

use super::*;

const WON: PairScore = Some([GameScore::Win; 2]);
const LOST: PairScore = Some([GameScore::Loss; 2]);
const MISSING: PairScore = None;

/// A gate of so many pairs at most that distinguishes networks of equal strength from one that is
/// so many Elo stronger.
fn sprt(elo1: f64, max_pairs: u64) -> GateRule {
    let params = SprtParams {
        elo1,
        ..SprtParams::default()
    };
    GateRule::Sprt {
        params,
        max_pairs,
        at_limit: AtLimit::Reject,
    }
}

fn status(rule: &GateRule, pairs: &[PairScore]) -> Option<MatchStatus> {
    decided(rule, pairs, 0)
        .unwrap()
        .map(|decided| decided.status)
}

#[test]
fn a_gate_is_decided_by_its_first_pairs_and_not_by_those_after() {
    // Each won pair says 0.42 of the 2.94 that are needed.
    let pairs = [[WON; 8], [LOST; 8]].concat();
    let found = decided(&sprt(200.0, 40), &pairs, 0).unwrap().unwrap();
    let expected = Decided {
        status: MatchStatus::Promoted,
        reason: GateReason::AcceptedH1,
        pairs: 8,
    };
    assert_eq!(found, expected);
    let reversed = [[LOST; 8], [WON; 8]].concat();
    assert_eq!(
        status(&sprt(200.0, 40), &reversed),
        Some(MatchStatus::Rejected)
    );
}

#[test]
fn a_missing_pair_counts_against_what_the_others_decide() {
    let rule = sprt(200.0, 40);
    let with_a_gap = |won: usize| {
        let mut pairs = vec![WON; 1 + won];
        pairs[0] = MISSING;
        pairs
    };
    assert_eq!(status(&rule, &with_a_gap(8)), None);
    // The lost pair that it may be says nearly as much as two won ones.
    assert_eq!(
        status(&rule, &with_a_gap(10)),
        Some(MatchStatus::Promoted),
        "whatever it is"
    );
    let lost = |gap| [gap, LOST, LOST, LOST, LOST];
    assert_eq!(status(&rule, &lost(MISSING)), None);
    assert_eq!(status(&rule, &lost(LOST)), Some(MatchStatus::Rejected));
}

#[test]
fn pairs_behind_the_last_that_is_in_are_not_missed() {
    let rule = sprt(200.0, 40);
    let out = [[WON; 8], [MISSING; 8]].concat();
    assert_eq!(status(&rule, &out), Some(MatchStatus::Promoted));
    assert_eq!(status(&rule, &[MISSING; 40]), None);
    assert_eq!(status(&rule, &[]), None);
}

#[test]
fn what_did_not_decide_before_is_not_asked_again() {
    let pairs = [[WON; 8], [LOST; 8]].concat();
    assert_eq!(decided(&sprt(200.0, 40), &pairs, 9).unwrap(), None);
}

#[test]
fn a_gate_of_fixed_length_waits_for_pairs_that_can_turn_it() {
    let rule = GateRule::Fixed {
        games: 8,
        threshold: 0.5,
    };
    assert_eq!(status(&rule, &[LOST, MISSING, WON]), None);
    let lost = [LOST, MISSING, LOST];
    assert_eq!(status(&rule, &lost), Some(MatchStatus::Rejected));
    let won = [WON, MISSING, WON];
    assert_eq!(
        status(&rule, &won),
        None,
        "half of the points is too little"
    );
    let won = [WON, MISSING, WON, WON];
    assert_eq!(status(&rule, &won), Some(MatchStatus::Promoted));
}

/// The definition, tried out: a gate ends with the first of its pairs, in the order of their numbers, after which the
/// rule says one thing, whatever each missing pair before it turns out to be.
fn by_definition(rule: &GateRule, pairs: &[PairScore]) -> Option<(MatchStatus, u32)> {
    const SCORES: [PairScore; 5] = [
        LOST,
        Some([GameScore::Loss, GameScore::Draw]),
        Some([GameScore::Draw; 2]),
        Some([GameScore::Draw, GameScore::Win]),
        WON,
    ];
    // Of each possible case, how many pairs have each score.
    let mut cases = BTreeSet::from([[0; SCORES.len()]]);
    for (number, pair) in (1..).zip(pairs) {
        let scores = match pair {
            Some([white, black]) => {
                let score = white.half_points() + black.half_points();
                score..score + 1
            }
            None => 0..SCORES.len(),
        };
        let one_more = |case: &[usize; SCORES.len()], score: usize| {
            let mut case = *case;
            case[score] += 1;
            case
        };
        cases = cases
            .iter()
            .flat_map(|case| scores.clone().map(move |score| one_more(case, score)))
            .collect();
        let of_case = |case: &[usize; SCORES.len()]| {
            let pairs: Vec<PairScore> = SCORES
                .into_iter()
                .zip(case)
                .flat_map(|(score, count)| std::iter::repeat_n(score, *count))
                .collect();
            as_they_come(rule, &pairs)
        };
        let said: HashSet<_> = cases.iter().map(of_case).collect();
        if let (Some(_), 1, Some(status)) = (pair, said.len(), said.into_iter().next().flatten()) {
            return Some((status, number));
        }
    }
    None
}

/// The pairs of a gate come in any order. It is asked about with each, and decided as soon as it is by definition.
#[test]
fn a_gate_is_decided_as_soon_as_no_missing_pair_can_turn_it() {
    const LENGTH: usize = 8;
    let fixed = |threshold| GateRule::Fixed {
        games: 2 * LENGTH as u64,
        threshold,
    };
    let rules = [fixed(0.5), fixed(0.3), sprt(400.0, LENGTH as u64)];
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut ends = HashSet::new();
    for (place, rule) in rules.iter().cycle().take(60).enumerate() {
        let game = |rng: &mut ChaCha8Rng| match rng.random_range(0..10) + place % 7 {
            0..4 => GameScore::Loss,
            4..8 => GameScore::Draw,
            _ => GameScore::Win,
        };
        let mut coming: Vec<usize> = (0..LENGTH).collect();
        coming.shuffle(&mut rng);
        let mut pairs = vec![MISSING; LENGTH];
        for pair in coming {
            pairs[pair] = Some([game(&mut rng), game(&mut rng)]);
            let found = decided(rule, &pairs, pair as u32).unwrap();
            let found = found.map(|found| (found.status, found.pairs));
            assert_eq!(found, by_definition(rule, &pairs), "{rule:?}, {pairs:?}");
            if let Some((status, _)) = found {
                ends.insert(status);
                break;
            }
        }
    }
    assert_eq!(ends.len(), 2, "{ends:?}");
}

/// Pairs of a job.
const JOB: usize = 8;
/// Jobs that an honest contributor plays until a pair that was kept back is handed out again: an
/// hour, for jobs of five minutes.
const KEPT_BACK: usize = 12;
/// The longest match.
const PAIRS: usize = 200;

/// A match of which an honest contributor plays one half, and one who sends only the pairs that
/// the candidate has won takes the other; the honest one plays again what does not come.
struct Suppressed {
    truth: Vec<PairScore>,
    pairs: Vec<PairScore>,
    /// Pairs that were kept back, and from which round on others may play them.
    dropped: Vec<(usize, usize)>,
}

impl Suppressed {
    /// Two networks of one strength.
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut game = || match rng.random_range(0..10) {
            0..3 => GameScore::Win,
            3..6 => GameScore::Loss,
            _ => GameScore::Draw,
        };
        Self {
            truth: (0..PAIRS).map(|_| Some([game(), game()])).collect(),
            pairs: Vec::new(),
            dropped: Vec::new(),
        }
    }

    fn next(&self, count: usize) -> std::ops::Range<usize> {
        let next = self.pairs.len();
        next..PAIRS.min(next + count)
    }

    /// Both play a job. The first pair of which something is new.
    fn play(&mut self, round: usize) -> usize {
        let first = self.pairs.len();
        for pair in self.next(JOB) {
            let won = self.truth[pair].filter(|games| {
                let [one, other] = games.map(GameScore::half_points);
                one + other > 2
            });
            if won.is_none() {
                self.dropped.push((round + KEPT_BACK, pair));
            }
            self.pairs.push(won);
        }
        let over = self.dropped.iter().filter(|(from, _)| *from <= round);
        let again = over.count().min(JOB);
        let again: Vec<_> = self.dropped.drain(..again).map(|(_, pair)| pair).collect();
        for pair in &again {
            self.pairs[*pair] = self.truth[*pair];
        }
        for pair in self.next(JOB - again.len()) {
            self.pairs.push(self.truth[pair]);
        }
        again.first().copied().unwrap_or(first)
    }

    /// The match's end, if this says when that is, of the pairs and the first that is new.
    fn end(mut self, decide: impl Fn(&[PairScore], usize) -> Option<MatchStatus>) -> MatchStatus {
        (0..)
            .find_map(|round| {
                let first = self.play(round);
                decide(&self.pairs, first)
            })
            .unwrap()
    }
}

/// What a rule says that counts pairs when they come in.
fn as_they_come(rule: &GateRule, pairs: &[PairScore]) -> Option<MatchStatus> {
    let mut tally = Tally::default();
    for [white, black] in pairs.iter().flatten() {
        tally.add_pair(*white, *black);
    }
    match rule.decide(&tally).unwrap().decision {
        GateDecision::Continue => None,
        GateDecision::Promote => Some(MatchStatus::Promoted),
        GateDecision::Reject => Some(MatchStatus::Rejected),
    }
}

#[test]
fn who_sends_only_won_pairs_does_not_change_what_a_gate_decides() {
    const MATCHES: u64 = 40;
    let rule = sprt(60.0, PAIRS as u64);
    let (mut honest, mut naive) = (0, 0);
    for seed in 0..MATCHES {
        let truth = status(&rule, &Suppressed::new(seed).truth).unwrap();
        let in_order = Suppressed::new(seed).end(|pairs, first| {
            let found = decided(&rule, pairs, first as u32).unwrap();
            found.map(|found| found.status)
        });
        assert_eq!(in_order, truth, "match {seed}");
        let as_they_come = Suppressed::new(seed).end(|pairs, _| as_they_come(&rule, pairs));
        honest += u64::from(truth == MatchStatus::Promoted);
        naive += u64::from(as_they_come == MatchStatus::Promoted);
    }
    assert!(honest <= MATCHES / 5, "{honest} of equal networks promoted");
    assert!(
        naive >= MATCHES / 2,
        "counted as they came, {naive} would have been"
    );
}
