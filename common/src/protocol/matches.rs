//! Matches, games and ratings.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::jobs::WorkKind;
use super::networks::Rating;
use crate::chess::{GameResult, Termination};
use crate::ids::{ContentHash, GameId, MatchId, NetworkNumber, RunName};
use crate::names::names;
use crate::rating::gate::GateRule;
use crate::rating::pentanomial::Tally;

names! {
    /// Why a match is played.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum MatchPurpose {
        /// It decides whether a candidate replaces best.
        Gate = "gate",
        /// It only adds to the ratings.
        Rating = "rating",
    }
}

names! {
    /// Whether a match is open, or how it ended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum MatchStatus {
        /// Games are being played.
        Open = "open",
        /// The candidate won: it became best.
        Promoted = "promoted",
        /// The candidate did not win.
        Rejected = "rejected",
        /// It ended without a verdict.
        Finished = "finished",
    }
}

/// A match as the API and the pages show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MatchInfo {
    /// Its number.
    pub id: MatchId,
    /// Its run.
    pub run: RunName,
    /// Why it is played.
    pub purpose: MatchPurpose,
    /// Whether it is open, or how it ended.
    pub status: MatchStatus,
    /// The number of the network whose wins and losses the tally counts.
    pub candidate: NetworkNumber,
    /// The number of the other network.
    pub opponent: NetworkNumber,
    /// Wins, draws and losses of the candidate, and complete pairs by their score.
    pub tally: Tally,
    /// The rule that decides it, from the run's parameters when it was opened.
    pub rule: GateRule,
    /// The most pairs that are played.
    #[serde(default)]
    pub pair_limit: u32,
    /// Pairs that were handed out and lack a game; 0 once the match has ended. In a gate match they count against the
    /// decision. So the match may be open although its tally or likelihood ratio is beyond a bound.
    #[serde(default)]
    pub pairs_out: u64,
    /// Those of `pairs_out` whose worker sent a heartbeat within two thirds of a lease's length. The others still count
    /// if their games come before another worker gets them.
    #[serde(default)]
    pub pairs_playing: u64,
    /// The pairs by which an open gate match is decided so far: all before the first missing one. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_order: Option<PairsInOrder>,
    /// The log-likelihood ratio of all complete pairs, if the rule is a sequential test.
    #[serde(default)]
    pub llr: Option<f64>,
    /// The log-likelihood ratios at which the test rejects (the first) and promotes (the second).
    #[serde(default)]
    pub llr_bounds: Option<(f64, f64)>,
    /// The candidate's logistic Elo minus the opponent's, with its 95 % interval: estimate, low, high. A sequential test
    /// stops as soon as it can decide, so the estimate of one that has ended is biased away from zero.
    #[serde(default)]
    pub elo: Option<(f64, f64, f64)>,
    /// The likelihood that the candidate is the stronger one, 0 to 1.
    #[serde(default)]
    pub los: Option<f64>,
    /// Why the match ended; absent while it is open.
    #[serde(default)]
    pub reason: Option<String>,
    /// When it was opened, RFC 3339.
    pub opened_at: String,
    /// When it was decided, RFC 3339; absent while it is open.
    #[serde(default)]
    pub decided_at: Option<String>,
}

/// The pairs of an open gate match that count for its decision already: all before the first missing one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PairsInOrder {
    /// The number of these pairs.
    pub pairs: u64,
    /// Their log-likelihood ratio, if the rule is a sequential test.
    #[serde(default)]
    pub llr: Option<f64>,
}

impl MatchInfo {
    /// How far an open match is: `41 of 60 pairs in: +12 =24 -5; decided in order, 17 counted so far, LLR 1.30`.
    pub fn standing(&self) -> String {
        let Tally {
            wins,
            draws,
            losses,
            pairs,
        } = self.tally;
        let mut text = format!(
            "{} of {} pairs in: +{wins} ={draws} -{losses}",
            pairs.pairs(),
            self.pair_limit
        );
        if let Some(PairsInOrder { pairs, llr }) = self.in_order {
            text.push_str(&format!("; decided in order, {pairs} counted so far"));
            if let Some(llr) = llr {
                text.push_str(&format!(", LLR {llr:.2}"));
            }
        }
        text
    }
}

/// A game as the API and the pages show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GameInfo {
    /// Its number.
    pub id: GameId,
    /// Its run.
    pub run: RunName,
    /// The kind of its job.
    pub kind: WorkKind,
    /// The number of White's network.
    pub white: NetworkNumber,
    /// The number of Black's network.
    pub black: NetworkNumber,
    /// The number of its match, if it belongs to one.
    #[serde(default)]
    pub match_id: Option<MatchId>,
    /// The identifier of its puzzle, if it began at one.
    #[serde(default)]
    pub puzzle: Option<String>,
    /// Whether that puzzle was solved.
    #[serde(default)]
    pub solved: Option<bool>,
    /// Who won.
    pub result: GameResult,
    /// Why it ended.
    pub termination: Termination,
    /// The number of searched plies: without the opening's.
    pub plies: u32,
    /// Its opening's code in the Encyclopaedia of Chess Openings, if it has one.
    #[serde(default)]
    pub eco: Option<String>,
    /// Its opening's name without the variation.
    #[serde(default)]
    pub opening_name: Option<String>,
    /// The contributor's name.
    pub contributor: String,
    /// The SHA-256 of its chunk.
    pub chunk: ContentHash,
    /// Its place in the chunk, from 0.
    pub place: u32,
    /// When its chunk was acknowledged, RFC 3339.
    pub accepted_at: String,
}

/// A game with its moves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GameDetail {
    /// The game.
    #[serde(flatten)]
    pub info: GameInfo,
    /// The start as FEN; the standard one if it is absent.
    #[serde(default)]
    pub fen: Option<String>,
    /// Moves that were given before the first search, in UCI.
    pub opening: Vec<String>,
    /// The searched moves.
    pub moves: Vec<MoveDetail>,
}

/// One move of a game.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MoveDetail {
    /// In UCI.
    pub uci: String,
    /// In standard algebraic notation.
    pub san: String,
    /// The position after the move, as FEN.
    pub fen: String,
    /// The search's expected result for the side that moves: 1 is a win, -1 a loss.
    pub q: f32,
    /// The search's probability of a draw, 0 to 1.
    pub draw: f32,
    /// The moves with most visits, at most five: the move in UCI, and its share of the visits, 0 to 1.
    pub top: Vec<(String, f32)>,
}

/// A row of the rating list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RatingRow {
    /// The network's number.
    pub network: NetworkNumber,
    /// Its file's SHA-256.
    pub hash: ContentHash,
    /// Its rating.
    pub rating: Rating,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_open_gate_says_what_is_in_and_what_counts() {
        let mut info: MatchInfo = serde_json::from_value(json!({
            "id": 1, "run": "main", "purpose": "gate", "status": "open", "candidate": 3, "opponent": 2,
            "tally": {"wins": 12, "draws": 24, "losses": 5, "pairs": {"counts": [2, 3, 9, 4, 2]}},
            "rule": {"kind": "none"}, "pair_limit": 60, "opened_at": "2030-01-01T00:00:00Z",
        }))
        .unwrap();
        assert_eq!(info.standing(), "20 of 60 pairs in: +12 =24 -5");
        let llr = Some(1.298);
        info.in_order = Some(PairsInOrder { pairs: 17, llr });
        assert_eq!(
            info.standing(),
            "20 of 60 pairs in: +12 =24 -5; decided in order, 17 counted so far, LLR 1.30"
        );
    }
}
