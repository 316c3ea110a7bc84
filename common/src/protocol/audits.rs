//! Audits: searches of games that others have played, made again.
//!
//! An auditor is told what the player knew before its search (the position with its history, the
//! seed, the parameters) and which moves were played, and nothing of what the player found.

use serde::{Deserialize, Serialize};
use shakmaty::Move;
use utoipa::ToSchema;

use super::jobs::{Opening, OpeningError, Work, play};
use crate::chunk::{GameStart, Side};
use crate::ids::{ContentHash, Seed};
use crate::params::{MatchParams, ParamsError, PuzzleParams, SearchParams, SelfPlayParams};

/// The networks and parameters with which the games of an audit were played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum AuditedRules {
    /// Self-play.
    SelfPlay {
        /// The SHA-256 of the network's file.
        network: ContentHash,
        /// How the games were played.
        params: SelfPlayParams,
    },
    /// Puzzles.
    Puzzles {
        /// The SHA-256 of the network's file.
        network: ContentHash,
        /// How the games were played.
        params: PuzzleParams,
    },
    /// A match.
    Match {
        /// The SHA-256 of the candidate's file.
        candidate: ContentHash,
        /// The SHA-256 of the opponent's file.
        opponent: ContentHash,
        /// How the games were played.
        params: MatchParams,
    },
}

impl AuditedRules {
    /// The rules of this work's games; none if it is an audit itself.
    pub fn of(work: &Work) -> Option<Self> {
        match work {
            Work::SelfPlay {
                network, params, ..
            } => Some(Self::SelfPlay {
                network: *network,
                params: params.clone(),
            }),
            Work::Puzzles {
                network, params, ..
            } => Some(Self::Puzzles {
                network: *network,
                params: params.clone(),
            }),
            Work::Match {
                candidate,
                opponent,
                params,
                ..
            } => Some(Self::Match {
                candidate: *candidate,
                opponent: *opponent,
                params: params.clone(),
            }),
            Work::Audit { .. } => None,
        }
    }

    /// The networks, the candidate first.
    pub fn networks(&self) -> Vec<ContentHash> {
        match self {
            Self::SelfPlay { network, .. } | Self::Puzzles { network, .. } => vec![*network],
            Self::Match {
                candidate,
                opponent,
                ..
            } => vec![*candidate, *opponent],
        }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    ///
    /// [`ParamsError`], the first thing that is wrong.
    pub fn check(&self) -> Result<(), ParamsError> {
        match self {
            Self::SelfPlay { params, .. } => params.check(),
            Self::Puzzles { params, .. } => params.check(),
            Self::Match { params, .. } => params.check(),
        }
    }

    /// How each move is searched.
    pub const fn search(&self) -> &SearchParams {
        match self {
            Self::SelfPlay { params, .. } => &params.search,
            Self::Puzzles { params, .. } => &params.search,
            Self::Match { params, .. } => &params.search,
        }
    }
}

/// Consecutive searches of one game, to be made again with the moves that followed them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditTask {
    /// The game's own seed.
    pub seed: Seed,
    /// The game's start, and its moves before the first of these searches.
    pub start: Opening,
    /// How many of the start's moves were searched when the game was played. It is the number of the first ply, from 0,
    /// by which random numbers are drawn from the seed.
    pub first_ply: u32,
    /// How many of the start's last moves were drawn from the network's policy without a search; the auditor draws them
    /// again. 0 unless the first of these searches is the game's first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub drawn: u32,
    /// The moves that were played after the searches, in UCI: one search for each.
    pub moves: Vec<String>,
    /// The candidate's side, if it is a game of a match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Side>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl AuditTask {
    /// The start, and the moves after it.
    ///
    /// # Errors
    ///
    /// [`OpeningError`] if a position or a move is not legal.
    pub fn parse(&self) -> Result<(GameStart, Vec<Move>), OpeningError> {
        let start = self.start.start()?;
        let moves = play(start.history()?, &self.moves)?;
        Ok((start, moves))
    }
}
