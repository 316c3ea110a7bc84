//! Programs that everybody has: opponents of known strength, told by their names.
//!
//! Where a run has one as an anchor, its file is that of a network without tensors, whose
//! specification names it. `rookery-engine` plays them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Deepest search that can be named: each ply more takes five to ten times as long.
pub const DEEPEST: u32 = 8;

/// Deepest search of an anchor in a run: a volunteer's other games wait for it.
pub const DEEPEST_IN_RUNS: u32 = 4;

/// A program that plays chess without a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(tag = "program", rename_all = "kebab-case")]
pub enum Program {
    /// Any legal move, each with the same probability.
    Random,
    /// Alpha-beta search over material and piece placement.
    #[serde(rename = "alphabeta")]
    AlphaBeta {
        /// Plies, after which captures are searched: 1 to 8, in a run 1 to 4.
        depth: u32,
    },
}

/// A text that names no program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseProgramError {
    /// No such program.
    #[error("{0:?} is no program: write random or alphabeta:DEPTH")]
    Name(String),
    /// No such depth.
    #[error("{0:?}: the depth is a number from 1 to {DEEPEST}")]
    Depth(String),
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.write_str("random"),
            Self::AlphaBeta { depth } => write!(f, "alphabeta:{depth}"),
        }
    }
}

impl FromStr for Program {
    type Err = ParseProgramError;

    fn from_str(text: &str) -> Result<Self, ParseProgramError> {
        let shown = || -> String { text.chars().take(40).collect() };
        if text == "random" {
            return Ok(Self::Random);
        }
        let depth = text
            .strip_prefix("alphabeta:")
            .ok_or_else(|| ParseProgramError::Name(shown()))?;
        match depth.parse() {
            Ok(depth) if (1..=DEEPEST).contains(&depth) => Ok(Self::AlphaBeta { depth }),
            _ => Err(ParseProgramError::Depth(shown())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for text in ["random", "alphabeta:1", "alphabeta:8"] {
            assert_eq!(text.parse::<Program>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_names_are_refused_with_what_there_is() {
        for text in ["", "Random", "alphabeta", "stockfish:1320", "random:1"] {
            let error = text.parse::<Program>().unwrap_err();
            assert_eq!(error, ParseProgramError::Name(text.to_owned()));
            assert!(error.to_string().contains("alphabeta:DEPTH"), "{error}");
        }
        for text in ["alphabeta:", "alphabeta:0", "alphabeta:9", "alphabeta:x"] {
            let error = text.parse::<Program>().unwrap_err();
            assert_eq!(error, ParseProgramError::Depth(text.to_owned()));
            assert!(error.to_string().ends_with("1 to 8"), "{error}");
        }
    }
}
