//! The rule that decides when a candidate replaces the best network.
//!
//! A pure function from the rule and the match's tally to a decision with its reason.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::error::{RatingError, within};
use super::pentanomial::Tally;
use super::sprt::{SprtParams, SprtStatus, Verdict};

/// Longest gate, in pairs or games.
const MAX_LENGTH: u64 = 10_000_000;

/// What a sequential gate does when it reaches its length without a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AtLimit {
    /// Promote if the candidate scored more than half of the points of its pairs.
    #[default]
    PromoteIfScoreAboveHalf,
    /// Reject.
    Reject,
}

/// When a candidate replaces best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum GateRule {
    /// A sequential test on pairs.
    Sprt {
        /// Hypotheses and error rates.
        params: SprtParams,
        /// Pairs after which `at_limit` decides, 1 to 10,000,000.
        max_pairs: u64,
        /// What happens then.
        #[serde(default)]
        at_limit: AtLimit,
    },
    /// A fixed number of games, as AlphaGo Zero's evaluator (Silver et al., *Nature* 550, 2017).
    Fixed {
        /// Games to play, 1 to 10,000,000.
        games: u64,
        /// The score that must be exceeded, 0 to 1; AlphaGo Zero's is 0.55.
        threshold: f64,
    },
    /// No match: every candidate is promoted, as in AlphaZero.
    None,
}

/// What becomes of the candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateDecision {
    /// More games are needed.
    Continue,
    /// The candidate becomes best.
    Promote,
    /// The candidate does not become best.
    Reject,
}

/// Why a gate decided as it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateReason {
    /// There is no gate.
    NoGate,
    /// The games so far do not decide.
    Undecided,
    /// The sequential test accepted H1.
    AcceptedH1,
    /// The sequential test accepted H0.
    AcceptedH0,
    /// All pairs were played; the candidate scored above one half.
    LimitAboveHalf,
    /// All pairs were played; the candidate scored one half or less.
    LimitNotAboveHalf,
    /// All pairs were played, and the rule then rejects.
    LimitRejects,
    /// The candidate's points exceed what the threshold asks of all games.
    AboveThreshold,
    /// The candidate can no longer exceed the threshold.
    NotAboveThreshold,
}

impl fmt::Display for GateReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoGate => "every candidate is promoted: the run has no gate",
            Self::Undecided => "the games so far do not decide",
            Self::AcceptedH1 => "the sequential test accepted that the candidate is stronger",
            Self::AcceptedH0 => "the sequential test accepted that the candidate is not stronger",
            Self::LimitAboveHalf => "no verdict within the limit; the score is above one half",
            Self::LimitNotAboveHalf => {
                "no verdict within the limit; the score is not above one half"
            }
            Self::LimitRejects => "no verdict within the limit",
            Self::AboveThreshold => "the score exceeds the threshold",
            Self::NotAboveThreshold => "the score cannot exceed the threshold any more",
        })
    }
}

/// A decision, why, and the sequential test behind it if the rule is one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GateVerdict {
    /// What becomes of the candidate.
    pub decision: GateDecision,
    /// Why; in words by its `Display`.
    pub reason: GateReason,
    /// The sequential test, if the rule is one.
    pub sprt: Option<SprtStatus>,
}

impl GateVerdict {
    fn new(decision: GateDecision, reason: GateReason) -> Self {
        Self {
            decision,
            reason,
            sprt: None,
        }
    }
}

impl Default for GateRule {
    /// A sequential test of 0 against 30 Elo within 200 pairs, then the better score.
    fn default() -> Self {
        Self::Sprt {
            params: SprtParams::default(),
            max_pairs: 200,
            at_limit: AtLimit::PromoteIfScoreAboveHalf,
        }
    }
}

impl GateRule {
    /// Checks every parameter against its range.
    ///
    /// # Errors
    ///
    /// The first parameter that is not a number or outside.
    pub fn check(&self) -> Result<(), RatingError> {
        let length = |what, length: u64| within(what, length as f64, 1.0, MAX_LENGTH as f64);
        match self {
            Self::Sprt {
                params, max_pairs, ..
            } => {
                length("max_pairs", *max_pairs)?;
                params.check()
            }
            Self::Fixed { games, threshold } => {
                length("games", *games)?;
                within("threshold", *threshold, 0.0, 1.0)
            }
            Self::None => Ok(()),
        }
    }

    /// The most games a match under this rule needs; 0 without a gate.
    pub fn max_games(&self) -> u64 {
        match self {
            Self::Sprt { max_pairs, .. } => max_pairs.saturating_mul(2),
            Self::Fixed { games, .. } => *games,
            Self::None => 0,
        }
    }

    /// What the tally so far decides.
    ///
    /// A sequential test looks at complete pairs only. A fixed match ends early once the games left
    /// cannot change its outcome.
    ///
    /// # Errors
    ///
    /// Parameters that [`GateRule::check`] refuses, or a tally that contradicts itself.
    pub fn decide(&self, tally: &Tally) -> Result<GateVerdict, RatingError> {
        self.check()?;
        tally.check()?;
        match self {
            Self::Sprt {
                params,
                max_pairs,
                at_limit,
            } => decide_sprt(params, *max_pairs, *at_limit, tally),
            Self::Fixed { games, threshold } => Ok(decide_fixed(*games, *threshold, tally)),
            Self::None => Ok(GateVerdict::new(GateDecision::Promote, GateReason::NoGate)),
        }
    }
}

fn decide_sprt(
    params: &SprtParams,
    max_pairs: u64,
    at_limit: AtLimit,
    tally: &Tally,
) -> Result<GateVerdict, RatingError> {
    let status = params.status(&tally.pairs)?;
    let (decision, reason) = match status.verdict {
        Verdict::AcceptH1 => (GateDecision::Promote, GateReason::AcceptedH1),
        Verdict::AcceptH0 => (GateDecision::Reject, GateReason::AcceptedH0),
        Verdict::Continue if tally.pairs.pairs() < max_pairs => {
            (GateDecision::Continue, GateReason::Undecided)
        }
        Verdict::Continue => decide_at_limit(at_limit, tally),
    };
    Ok(GateVerdict {
        decision,
        reason,
        sprt: Some(status),
    })
}

fn decide_at_limit(at_limit: AtLimit, tally: &Tally) -> (GateDecision, GateReason) {
    match at_limit {
        AtLimit::Reject => (GateDecision::Reject, GateReason::LimitRejects),
        AtLimit::PromoteIfScoreAboveHalf if tally.pairs.score() > Some(0.5) => {
            (GateDecision::Promote, GateReason::LimitAboveHalf)
        }
        AtLimit::PromoteIfScoreAboveHalf => (GateDecision::Reject, GateReason::LimitNotAboveHalf),
    }
}

fn decide_fixed(games: u64, threshold: f64, tally: &Tally) -> GateVerdict {
    let played = tally.games();
    let left = games.saturating_sub(played) as f64;
    let needed = threshold * games.max(played) as f64;
    if tally.points() > needed {
        GateVerdict::new(GateDecision::Promote, GateReason::AboveThreshold)
    } else if tally.points() + left <= needed {
        GateVerdict::new(GateDecision::Reject, GateReason::NotAboveThreshold)
    } else {
        GateVerdict::new(GateDecision::Continue, GateReason::Undecided)
    }
}

#[cfg(test)]
mod tests;
