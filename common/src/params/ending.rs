//! When games are ended from outside before the rules end them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::range::{ParamsError, inside, within};

/// When a game counts as won: the searches of both sides agree for some plies and, if wanted, a
/// strong chess engine with them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct AdjudicationParams {
    /// Both sides give the same side at least this value, 0.5 to 1.
    pub win_value: f32,
    /// For this many plies in a row, 2 to 100.
    pub plies: u32,
    /// The engine that must agree. Workers without one play on.
    pub engine: Option<EngineParams>,
}

impl Default for AdjudicationParams {
    fn default() -> Self {
        Self {
            win_value: 0.95,
            plies: 8,
            engine: None,
        }
    }
}

/// What an external UCI engine is asked, once the searches have agreed and again after as many
/// plies for as long as they do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct EngineParams {
    /// Nodes that it may search, 1 to 10,000,000.
    pub nodes: u32,
    /// Its score for the winner in hundredths of a pawn, 1 to 10,000, or a mate.
    pub centipawns: u32,
}

impl Default for EngineParams {
    fn default() -> Self {
        Self {
            nodes: 20_000,
            centipawns: 500,
        }
    }
}

/// Endgame tables: a game ends, with the result that they give, at the first capture or pawn move
/// that leads to a position which they hold. Just then they are exact: the fifty-move counter is at
/// 0, and no position can repeat an earlier one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct TableParams {
    /// Most pieces on the board, kings and pawns included, 3 to 7. Workers whose tables hold less
    /// play on.
    pub pieces: u32,
}

impl Default for TableParams {
    fn default() -> Self {
        Self { pieces: 5 }
    }
}

/// Checks every parameter of both tables against its range.
pub(super) fn check(
    adjudication: Option<&AdjudicationParams>,
    tables: Option<&TableParams>,
) -> Result<(), ParamsError> {
    if let Some(adjudication) = adjudication {
        inside("adjudication", adjudication.check())?;
    }
    match tables {
        Some(tables) => within("tables.pieces", tables.pieces, 3.0, 7.0),
        None => Ok(()),
    }
}

impl AdjudicationParams {
    fn check(&self) -> Result<(), ParamsError> {
        within("win_value", self.win_value, 0.5, 1.0)?;
        within("plies", self.plies, 2.0, 100.0)?;
        if let Some(engine) = &self.engine {
            within("engine.nodes", engine.nodes, 1.0, 1e7)?;
            within("engine.centipawns", engine.centipawns, 1.0, 1e4)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_range_is_named() {
        let engine = |nodes| AdjudicationParams {
            engine: Some(EngineParams {
                nodes,
                ..EngineParams::default()
            }),
            ..AdjudicationParams::default()
        };
        assert!(check(Some(&engine(1)), Some(&TableParams { pieces: 7 })).is_ok());
        let error = check(Some(&engine(0)), None).unwrap_err();
        assert_eq!(error.path, "adjudication.engine.nodes");
        let error = check(None, Some(&TableParams { pieces: 8 })).unwrap_err();
        assert_eq!(error.path, "tables.pieces");
    }
}
