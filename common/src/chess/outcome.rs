//! How games end.

use serde::{Deserialize, Serialize};
use shakmaty::Color;
use utoipa::ToSchema;

use crate::names::names;

names! {
    /// A finished game's result.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum GameResult {
        /// White won.
        WhiteWins = "white-wins",
        /// Black won.
        BlackWins = "black-wins",
        /// A draw.
        Draw = "draw",
    }
}

impl GameResult {
    /// The win of `color`.
    pub const fn win_of(color: Color) -> Self {
        match color {
            Color::White => Self::WhiteWins,
            Color::Black => Self::BlackWins,
        }
    }

    /// The result as `color` sees it: 1 for a win, 0 for a draw, -1 for a loss.
    pub const fn score_for(self, color: Color) -> i8 {
        match (self, color) {
            (Self::Draw, _) => 0,
            (Self::WhiteWins, Color::White) | (Self::BlackWins, Color::Black) => 1,
            _ => -1,
        }
    }

    /// The result as PGN writes it.
    pub const fn as_pgn(self) -> &'static str {
        match self {
            Self::WhiteWins => "1-0",
            Self::BlackWins => "0-1",
            Self::Draw => "1/2-1/2",
        }
    }
}

names! {
    /// Why a game ended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Termination {
        /// The side to move is mated.
        Checkmate = "checkmate",
        /// The side to move has no legal move and is not in check.
        Stalemate = "stalemate",
        /// The position occurred for the third time.
        Threefold = "threefold",
        /// One hundred plies without capture or pawn move.
        FiftyMove = "fifty-move",
        /// Neither side can mate.
        InsufficientMaterial = "insufficient-material",
        /// The loser gave up.
        Resignation = "resignation",
        /// A tablebase or another judge ended the game.
        Adjudication = "adjudication",
        /// The job's ply limit was reached: a draw.
        PlyLimit = "ply-limit",
    }
}

impl Termination {
    /// The reason in words, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Checkmate => "checkmate",
            Self::Stalemate => "stalemate",
            Self::Threefold => "threefold repetition",
            Self::FiftyMove => "fifty-move rule",
            Self::InsufficientMaterial => "insufficient material",
            Self::Resignation => "resignation",
            Self::Adjudication => "adjudication",
            Self::PlyLimit => "ply limit",
        }
    }
}

/// A result with its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct GameEnd {
    /// Who won.
    pub result: GameResult,
    /// Why.
    pub termination: Termination,
}

impl GameEnd {
    /// A draw for this reason.
    pub const fn draw(termination: Termination) -> Self {
        Self {
            result: GameResult::Draw,
            termination,
        }
    }
}
