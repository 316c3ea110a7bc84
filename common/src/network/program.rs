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

/// Most moves in a hundred that can be random.
pub const MOST_RANDOM: u32 = 99;

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
        /// Moves in a hundred that are any legal ones, 0 to 99: steps between the random mover and one ply.
        #[serde(default, skip_serializing_if = "is_zero")]
        random: u32,
    },
}

impl Program {
    /// Alpha-beta search that never moves at random.
    pub const fn alpha_beta(depth: u32) -> Self {
        Self::AlphaBeta { depth, random: 0 }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A text that names no program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseProgramError {
    /// No such program.
    #[error("{0:?} is no program: write random, alphabeta:DEPTH or alphabeta:DEPTH:PERCENT")]
    Name(String),
    /// No such depth.
    #[error("{0:?}: the depth is a number from 1 to {DEEPEST}")]
    Depth(String),
    /// No such share of random moves.
    #[error("{0:?}: the moves in a hundred that are random are a number from 1 to {MOST_RANDOM}")]
    Random(String),
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.write_str("random"),
            Self::AlphaBeta { depth, random: 0 } => write!(f, "alphabeta:{depth}"),
            Self::AlphaBeta { depth, random } => write!(f, "alphabeta:{depth}:{random}"),
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
        let numbers = text
            .strip_prefix("alphabeta:")
            .ok_or_else(|| ParseProgramError::Name(shown()))?;
        let (depth, random) = match numbers.split_once(':') {
            Some((depth, random)) => (depth, Some(random)),
            None => (numbers, None),
        };
        let depth = number(depth, DEEPEST).ok_or_else(|| ParseProgramError::Depth(shown()))?;
        let random = random.map(|percent| {
            number(percent, MOST_RANDOM).ok_or_else(|| ParseProgramError::Random(shown()))
        });
        Ok(Self::AlphaBeta {
            depth,
            random: random.transpose()?.unwrap_or(0),
        })
    }
}

/// A number from 1 to `most`.
fn number(text: &str, most: u32) -> Option<u32> {
    let number = text.parse().ok()?;
    (1..=most).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for text in ["random", "alphabeta:1", "alphabeta:8", "alphabeta:1:99"] {
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
        for text in [
            "alphabeta:1:",
            "alphabeta:1:0",
            "alphabeta:1:100",
            "alphabeta:1:5:5",
        ] {
            let error = text.parse::<Program>().unwrap_err();
            assert_eq!(error, ParseProgramError::Random(text.to_owned()));
            assert!(error.to_string().ends_with("1 to 99"), "{error}");
        }
    }

    #[test]
    fn one_that_is_never_random_is_written_as_before_there_were_others() {
        let never = serde_json::to_value(Program::alpha_beta(2)).unwrap();
        assert_eq!(
            never,
            serde_json::json!({"program": "alphabeta", "depth": 2})
        );
        assert_eq!(
            serde_json::from_value::<Program>(never).unwrap(),
            Program::alpha_beta(2)
        );
        let program = Program::AlphaBeta {
            depth: 1,
            random: 60,
        };
        let written = serde_json::to_value(program).unwrap();
        assert_eq!(serde_json::from_value::<Program>(written).unwrap(), program);
    }
}
