//! Networks and puzzle scores.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::{AnchorName, ContentHash, MatchId, NetworkNumber, RunName};
use crate::names::names;
use crate::network::NetworkSpec;
use crate::rating::{AnchorElo, Performance};

/// A network as addresses of the API name it: `best`, its number in the run, or its file's
/// SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkName {
    /// The run's best.
    Best,
    /// By its number in the run.
    Number(NetworkNumber),
    /// By its file's SHA-256.
    Hash(ContentHash),
}

/// A text that names no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no network: give a number, `best` or a SHA-256")]
pub struct ParseNetworkNameError(String);

impl fmt::Display for NetworkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Best => f.write_str("best"),
            Self::Number(number) => number.fmt(f),
            Self::Hash(hash) => hash.fmt(f),
        }
    }
}

impl FromStr for NetworkName {
    type Err = ParseNetworkNameError;

    fn from_str(text: &str) -> Result<Self, ParseNetworkNameError> {
        if text == "best" {
            return Ok(Self::Best);
        }
        let number = || text.parse().ok().map(Self::Number);
        let name = text.parse().ok().map(Self::Hash).or_else(number);
        name.ok_or_else(|| ParseNetworkNameError(text.chars().take(80).collect()))
    }
}

/// A network as the API and the pages show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NetworkInfo {
    /// The run it belongs to.
    pub run: RunName,
    /// Its number in the run.
    pub number: NetworkNumber,
    /// The name that an operator gave it, if it is an anchor.
    #[serde(default)]
    pub anchor: Option<AnchorName>,
    /// Its Elo on a scale that others know, if it is an anchor for which an operator set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor_elo: Option<AnchorElo>,
    /// Its file's SHA-256.
    pub hash: ContentHash,
    /// Its file's size in bytes.
    pub bytes: u64,
    /// Its architecture, and how it was made.
    pub spec: NetworkSpec,
    /// Whether it may become best, is or was best, or was rejected.
    pub status: NetworkStatus,
    /// The gate match that decides whether it becomes best; absent if it needs none.
    #[serde(default)]
    pub gate: Option<MatchId>,
    /// Its rating; absent until games tie it to the networks from which ratings are counted.
    #[serde(default)]
    pub rating: Option<Rating>,
    /// Its puzzle score, if it has played puzzles.
    #[serde(default)]
    pub puzzles: Option<PuzzleScore>,
    /// Games that it played for training, without those of held chunks.
    pub training_games: u64,
    /// Training positions that the run had when it was submitted; absent if an old coordinator did not count them.
    #[serde(default)]
    pub positions: Option<u64>,
    /// When it was submitted, RFC 3339.
    pub submitted_at: String,
    /// The URL path of its file on this coordinator.
    pub file: String,
    /// The same network in the formats of other programs.
    #[serde(default)]
    pub exports: Vec<NetworkExport>,
}

/// A network in the format of another program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NetworkExport {
    /// The format.
    pub format: ExportFormat,
    /// The file's SHA-256.
    pub hash: ContentHash,
    /// The file's size in bytes.
    pub bytes: u64,
    /// The URL path of the file on this coordinator.
    pub file: String,
}

names! {
    /// A format of another program; `docs/formats.md` describes them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum ExportFormat {
        /// Lc0's `.pb.gz`.
        Lc0 = "lc0",
        /// An ONNX model.
        Onnx = "onnx",
    }
}

impl ExportFormat {
    /// How its files' names end, without the first dot.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Lc0 => "pb.gz",
            Self::Onnx => "onnx",
        }
    }

    /// Whether bytes begin as its files do: gzip's two bytes, or the version with which an ONNX
    /// model's protobuf begins. Nothing else is checked.
    pub fn begins(self, bytes: &[u8]) -> bool {
        match self {
            Self::Lc0 => bytes.starts_with(&[0x1f, 0x8b]),
            Self::Onnx => bytes.starts_with(&[0x08]),
        }
    }
}

/// The answer to a network's export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExportReceipt {
    /// The format.
    pub format: ExportFormat,
    /// The file's SHA-256.
    pub hash: ContentHash,
    /// Whether the coordinator had the file already.
    pub duplicate: bool,
}

names! {
    /// Where a network stands.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum NetworkStatus {
        /// The run's first network.
        Initial = "initial",
        /// In its gate match.
        Candidate = "candidate",
        /// It won its gate match, or needed none.
        Promoted = "promoted",
        /// It did not win its gate match.
        Rejected = "rejected",
        /// It was promoted, but later matches made it likely that an earlier network is stronger.
        Demoted = "demoted",
        /// An operator brought it in to compare with: it plays rating matches and is never best.
        Anchor = "anchor",
    }
}

/// A rating in Elo with its 95 % interval. An anchor with a given Elo keeps it, and its interval has no width. All other
/// ratings are counted from such anchors; without one, the run's first network has 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Rating {
    /// The rating, in Elo.
    pub elo: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// Match games from which it was computed.
    pub games: u64,
}

/// How many puzzles a network solved.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct PuzzleScore {
    /// Puzzle games: a puzzle that was tried twice counts twice.
    pub tried: u64,
    /// Puzzle games in which the puzzle was solved.
    pub solved: u64,
    /// The same by theme.
    pub themes: Vec<PuzzleGroup>,
    /// The same by the puzzles' rating, in bands of 200 points.
    pub ratings: Vec<PuzzleGroup>,
    /// The performance rating that follows from these games, on the scale of the puzzles' ratings; absent without rated
    /// puzzles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance: Option<Performance>,
}

/// A part of a puzzle score.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PuzzleGroup {
    /// The theme, or the band as `1000-1199`.
    pub name: String,
    /// Puzzle games.
    pub tried: u64,
    /// Puzzle games in which the puzzle was solved.
    pub solved: u64,
}

/// The answer to a submitted network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NetworkReceipt {
    /// Its file's SHA-256.
    pub hash: ContentHash,
    /// Its number in the run.
    pub number: NetworkNumber,
    /// Whether it is a candidate now, became best, or was rejected.
    pub status: NetworkStatus,
    /// The gate match that was opened; absent if it needs none, or waits for its turn.
    #[serde(default)]
    pub gate: Option<MatchId>,
    /// Whether the coordinator had the network already.
    pub duplicate: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_networks_name_round_trips_and_other_texts_are_refused() {
        let hash = NetworkName::Hash(ContentHash::of(b"abc"));
        let digits = NetworkName::Hash(ContentHash::from_bytes([0x11; 32]));
        for name in [
            NetworkName::Best,
            NetworkName::Number(NetworkNumber(12)),
            hash,
            digits,
        ] {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        for text in ["", "Best", "-1", "1.0", "4294967296", &"a".repeat(63)] {
            let error = text.parse::<NetworkName>().unwrap_err();
            assert!(error.to_string().contains("SHA-256"), "{text}");
        }
    }
}
