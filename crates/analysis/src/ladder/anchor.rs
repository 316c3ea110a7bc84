//! Opponents of known strength, as the command line names them.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use rookery_common::network::Program;
use rookery_common::network::program::ParseProgramError;
use rookery_common::params::SearchParams;
use rookery_engine::players::ProgramPlayer;
use rookery_uci::Launch;

use super::factory::PlayerFactory;
use crate::device::Device;

/// Nodes of each move of a Stockfish that is limited by Elo.
const STOCKFISH_NODES: u64 = 20_000;

/// An opponent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Anchor {
    /// A program that everybody has.
    BuiltIn(Program),
    /// Stockfish, limited by its own `UCI_Elo`.
    StockfishElo(u32),
    /// Stockfish at full strength, limited by nodes.
    StockfishNodes(u64),
    /// Another program that speaks UCI, limited by nodes.
    Program {
        /// The program.
        path: PathBuf,
        /// Nodes of each move.
        nodes: u64,
    },
    /// A network, ours or Lc0's.
    Network {
        /// Its file.
        path: PathBuf,
        /// Visits of each move.
        visits: u32,
    },
}

impl FromStr for Anchor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = |what: &str| Err(format!("{text:?}: {what}"));
        match text.parse::<Program>() {
            Ok(program) => return Ok(Self::BuiltIn(program)),
            Err(error @ (ParseProgramError::Depth(_) | ParseProgramError::Random(_))) => {
                return Err(error.to_string());
            }
            Err(ParseProgramError::Name(_)) => {}
        }
        if let Some(limit) = text.strip_prefix("stockfish:") {
            let nodes = limit.strip_prefix("nodes=").map(str::parse);
            return match (nodes, limit.parse()) {
                (Some(Ok(nodes)), _) if nodes > 0 => Ok(Self::StockfishNodes(nodes)),
                (None, Ok(elo)) => Ok(Self::StockfishElo(elo)),
                _ => refuse("write stockfish:ELO or stockfish:nodes=N"),
            };
        }
        let (path, number) = text
            .rsplit_once('@')
            .map_or((text, None), |(path, number)| {
                (path, Some(number.parse::<u32>()))
            });
        let program = path.strip_prefix("uci:");
        match (program, number) {
            (Some(path), Some(Ok(nodes))) if nodes > 0 && !path.is_empty() => Ok(Self::Program {
                path: path.into(),
                nodes: nodes.into(),
            }),
            (None, Some(Ok(visits))) if visits > 0 && !path.is_empty() => Ok(Self::Network {
                path: path.into(),
                visits,
            }),
            _ => refuse(
                "write random, alphabeta:DEPTH, alphabeta:DEPTH:PERCENT, stockfish:ELO, stockfish:nodes=N, \
                 uci:PROGRAM@NODES, or a network FILE@VISITS",
            ),
        }
    }
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(program) => write!(f, "{program}"),
            Self::StockfishElo(elo) => write!(f, "stockfish:{elo}"),
            Self::StockfishNodes(nodes) => write!(f, "stockfish:nodes={nodes}"),
            Self::Program { path, nodes } => write!(f, "uci:{}@{nodes}", path.display()),
            Self::Network { path, visits } => write!(f, "{}@{visits}", path.display()),
        }
    }
}

impl Anchor {
    /// What makes players of it, one for each thread. A network is loaded at once, and [searches for strength](SearchParams::for_strength).
    ///
    /// # Errors
    ///
    /// If a network cannot be read or computed.
    pub fn factory(&self, device: &Device) -> anyhow::Result<PlayerFactory> {
        let stockfish = || Launch::new("stockfish").option("Hash", 1);
        let name = self.to_string();
        Ok(match self {
            Self::BuiltIn(program) => {
                let program = *program;
                PlayerFactory::new(name, move |seed| {
                    Ok(Box::new(ProgramPlayer::new(program, seed)))
                })
            }
            Self::StockfishElo(elo) => {
                let limited = stockfish().option("UCI_LimitStrength", true);
                PlayerFactory::engine(name, limited.option("UCI_Elo", elo), STOCKFISH_NODES)
            }
            Self::StockfishNodes(nodes) => PlayerFactory::engine(name, stockfish(), *nodes),
            Self::Program { path, nodes } => PlayerFactory::engine(name, Launch::new(path), *nodes),
            Self::Network { path, visits } => {
                let search = (SearchParams::for_strength(), *visits);
                let mut factory = PlayerFactory::network(path, search, device)?;
                factory.name = name;
                factory
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_named_as_they_are_written() {
        for text in [
            "random",
            "alphabeta:3",
            "alphabeta:1:75",
            "stockfish:1500",
            "stockfish:nodes=100",
            "uci:/opt/a b/lc0@10",
            "maia-1100.pb.gz@1",
            "a@b.safetensors@64",
        ] {
            assert_eq!(text.parse::<Anchor>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_refused_with_what_there_is() {
        for text in [
            "",
            "rnd",
            "alphabeta",
            "alphabeta:0",
            "alphabeta:9",
            "alphabeta:1:100",
            "stockfish:x",
            "stockfish:nodes=0",
            "stockfish:nodes=",
            "x@0",
            "@3",
            "uci:@3",
            "uci:x",
            "net.safetensors",
        ] {
            let error = text.parse::<Anchor>().unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}
