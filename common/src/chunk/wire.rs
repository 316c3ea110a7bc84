//! The protobuf messages, and how their enumerations translate.

#![expect(
    missing_docs,
    reason = "generated from proto/chunk.proto, which explains every field"
)]

use crate::chess;
use crate::protocol::jobs::WorkKind;

include!(concat!(env!("OUT_DIR"), "/rookery.chunk.v1.rs"));

impl From<WorkKind> for Kind {
    fn from(kind: WorkKind) -> Self {
        match kind {
            WorkKind::SelfPlay => Self::SelfPlay,
            WorkKind::Puzzles => Self::Puzzle,
            WorkKind::Match => Self::Match,
            WorkKind::Audit => Self::Audit,
        }
    }
}

impl Kind {
    pub(super) const fn known(self) -> Option<WorkKind> {
        match self {
            Self::Unspecified => None,
            Self::SelfPlay => Some(WorkKind::SelfPlay),
            Self::Puzzle => Some(WorkKind::Puzzles),
            Self::Match => Some(WorkKind::Match),
            Self::Audit => Some(WorkKind::Audit),
        }
    }
}

impl From<chess::GameResult> for Result {
    fn from(result: chess::GameResult) -> Self {
        match result {
            chess::GameResult::WhiteWins => Self::WhiteWins,
            chess::GameResult::BlackWins => Self::BlackWins,
            chess::GameResult::Draw => Self::Draw,
        }
    }
}

impl Result {
    pub(super) const fn known(self) -> Option<chess::GameResult> {
        match self {
            Self::Unspecified => None,
            Self::WhiteWins => Some(chess::GameResult::WhiteWins),
            Self::BlackWins => Some(chess::GameResult::BlackWins),
            Self::Draw => Some(chess::GameResult::Draw),
        }
    }
}

macro_rules! terminations {
    ($($name:ident),*) => {
        impl From<chess::Termination> for Termination {
            fn from(termination: chess::Termination) -> Self {
                match termination { $(chess::Termination::$name => Self::$name),* }
            }
        }

        impl Termination {
            pub(super) const fn known(self) -> Option<chess::Termination> {
                match self {
                    Self::Unspecified => None,
                    $(Self::$name => Some(chess::Termination::$name)),*
                }
            }
        }
    };
}

terminations!(
    Checkmate,
    Stalemate,
    Threefold,
    FiftyMove,
    InsufficientMaterial,
    Resignation,
    Adjudication,
    PlyLimit
);
