//! When the pairs of a gate match decide it.
//!
//! Pairs count in the order of their numbers, and one that was handed out and is not in counts
//! against whatever the others decide. So who keeps back pairs whose result they dislike changes
//! who plays them, and when, but not what they decide:
//!
//! ```text
//! pair      0   1   2   3   4   5   6
//! score     2   ½   ?   2   1   ?   2
//!                           ^ promotes: only if 2 + ½ + 0 + 2 + 1 points do
//!                             rejects:  only if 2 + ½ + 2 + 2 + 1 points do
//! ```
//!
//! Pairs behind the one that decides count for nothing, whatever they are.

use rookery_common::protocol::matches::MatchStatus;
use rookery_common::rating::gate::{GateDecision, GateReason, GateRule};
use rookery_common::rating::{GameScore, RatingError, Tally};

/// What the candidate scored in the two games of a pair; none while they are not both in.
pub type PairScore = Option<[GameScore; 2]>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decided {
    /// [`MatchStatus::Promoted`] or [`MatchStatus::Rejected`].
    pub status: MatchStatus,
    pub reason: GateReason,
    /// By so many pairs, from pair 0 on.
    pub pairs: u32,
}

/// Each decision, and the score of missing pairs that speaks most against it.
const DECISIONS: [(GateDecision, MatchStatus, GameScore); 2] = [
    (
        GateDecision::Promote,
        MatchStatus::Promoted,
        GameScore::Loss,
    ),
    (GateDecision::Reject, MatchStatus::Rejected, GameScore::Win),
];

/// Whether the pairs that were handed out, from pair 0 on, decide a match under this rule. Those
/// before pair `first` were asked about before and did not.
/// Parameters that [`GateRule::check`] refuses are an error.
pub fn decided(
    rule: &GateRule,
    pairs: &[PairScore],
    first: u32,
) -> Result<Option<Decided>, RatingError> {
    let (mut tally, mut missing) = (Tally::default(), 0);
    for (pairs, score) in (1..).zip(pairs) {
        let Some([white, black]) = score else {
            missing += 1;
            continue;
        };
        tally.add_pair(*white, *black);
        if pairs <= first {
            continue;
        }
        for (decision, status, against) in DECISIONS {
            let verdict = rule.decide(&with_missing(tally, missing, against))?;
            if verdict.decision == decision {
                let reason = verdict.reason;
                return Ok(Some(Decided {
                    status,
                    reason,
                    pairs,
                }));
            }
        }
    }
    Ok(None)
}

/// The tally if both games of so many more pairs scored this.
const fn with_missing(mut tally: Tally, pairs: u64, score: GameScore) -> Tally {
    let games = match score {
        GameScore::Loss => &mut tally.losses,
        GameScore::Draw => &mut tally.draws,
        GameScore::Win => &mut tally.wins,
    };
    *games += 2 * pairs;
    tally.pairs.counts[2 * score.half_points()] += pairs;
    tally
}

#[cfg(test)]
mod tests;
