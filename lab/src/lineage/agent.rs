//! Agents as command lines name them, and as players.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use rookery_analysis::Device;
use rookery_analysis::ladder::PlayerFactory;
use rookery_common::chess::GameHistory;
use rookery_engine::players::{Choice, LiveGame, Player, PlayerError};
use shakmaty::Move;

use super::dqn::Dqn;
use super::neural;
use super::value_search::ValueSearch;
use super::zero::System;
use super::{mcts, minimax};

/// Positions that a value network looks into for a move, unless its name says how many.
const LOOKS: u32 = 20;
/// Visits of a move of a network that searches as AlphaZero, unless its name says how many.
const VISITS: u32 = 100;
/// Deepest minimax, and most playouts: what more would cost is no game any more.
const MOST: [u32; 2] = [6, 1_000_000];

/// Chooses a move by the game and a seed; none where the game is over.
type Chooser = Arc<dyn Fn(&GameHistory, u64) -> Option<Move> + Send + Sync>;

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agent {
    /// A Q-learner's file.
    Dqn(PathBuf),
    /// A value network's file, and how many positions it looks into for a move.
    ValueSearch(PathBuf, u32),
    /// A network's file that searches as one of AlphaZero's line, and its visits of a move.
    Zero(System, PathBuf, u32),
    /// Plain minimax of this depth in plies.
    Minimax(u32),
    /// Tree search with this number of random playouts for a move.
    Mcts(u32),
}

impl Agent {
    /// What can be written.
    pub const NAMES: &'static str = "dqn:FILE, value-search:FILE, value-search:FILE@POSITIONS, deltazero:FILE, \
         deltazero:FILE@VISITS, thesis:FILE, thesis:FILE@VISITS, minimax:DEPTH or mcts:PLAYOUTS";

    /// Reads the agent, if the text begins as one; none for other players.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(text: &str) -> Option<Result<Self, String>> {
        let (kind, rest) = text.split_once(':')?;
        let refuse = || Err(format!("{text:?}: write {}", Self::NAMES));
        let number = |text: &str, most: u32| {
            text.parse()
                .ok()
                .filter(|number| (1..=most).contains(number))
        };
        let counted = |usual| match rest.rsplit_once('@') {
            None => Some((rest.into(), usual)),
            Some((path, count)) => number(count, MOST[1]).map(|count| (path.into(), count)),
        };
        let agent = match kind {
            "dqn" | "value-search" | "deltazero" | "thesis" if rest.is_empty() => None,
            "dqn" => Some(Self::Dqn(rest.into())),
            "value-search" => counted(LOOKS).map(|(path, looks)| Self::ValueSearch(path, looks)),
            "minimax" => number(rest, MOST[0]).map(Self::Minimax),
            "mcts" => number(rest, MOST[1]).map(Self::Mcts),
            _ => {
                let system = System::from_name(kind)?;
                counted(VISITS).map(|(path, visits)| Self::Zero(system, path, visits))
            }
        };
        Some(agent.map_or_else(refuse, Ok))
    }

    /// What makes players of it.
    ///
    /// # Errors
    ///
    /// If its file cannot be read, or the device does not compute its network.
    pub fn factory(&self, device: &Device) -> anyhow::Result<PlayerFactory> {
        let name = self.to_string();
        let choose: Chooser = match self {
            Self::Zero(system, path, visits) => {
                let search = (system.search(), *visits);
                let mut factory = PlayerFactory::network(path, search, device)?;
                factory.name = name;
                return Ok(factory);
            }
            Self::Dqn(path) => {
                let agent: Dqn = neural::read(path)?;
                Arc::new(move |game, _| agent.best(game))
            }
            Self::ValueSearch(path, looks) => {
                let (agent, looks): (ValueSearch, _) = (neural::read(path)?, *looks);
                Arc::new(move |game, _| agent.best(game, looks))
            }
            Self::Minimax(depth) => {
                let depth = *depth;
                Arc::new(move |game, _| minimax::best(game, depth))
            }
            Self::Mcts(playouts) => {
                let playouts = *playouts;
                Arc::new(move |game, seed| mcts::best(game, playouts, seed))
            }
        };
        Ok(PlayerFactory::new(name.clone(), move |seed| {
            Ok(Box::new(AgentPlayer {
                name: name.clone(),
                seed,
                choose: Arc::clone(&choose),
            }))
        }))
    }
}

impl FromStr for Agent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text).unwrap_or_else(|| Err(format!("{text:?}: write {}", Self::NAMES)))
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dqn(path) => write!(f, "dqn:{}", path.display()),
            Self::ValueSearch(path, looks) => write!(f, "value-search:{}@{looks}", path.display()),
            Self::Zero(system, path, visits) => {
                write!(f, "{}:{}@{visits}", system.name(), path.display())
            }
            Self::Minimax(depth) => write!(f, "minimax:{depth}"),
            Self::Mcts(playouts) => write!(f, "mcts:{playouts}"),
        }
    }
}

struct AgentPlayer {
    name: String,
    seed: u64,
    choose: Chooser,
}

impl Player for AgentPlayer {
    fn choose(&mut self, games: &[&LiveGame]) -> Result<Vec<Choice>, PlayerError> {
        let choose = |game: &&LiveGame| {
            let m = (self.choose)(game.history(), self.seed).ok_or_else(|| PlayerError {
                player: self.name.clone(),
                reason: "the game is over".to_owned(),
            })?;
            Ok(Choice { m, value: None })
        };
        games.iter().map(choose).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_named_as_they_are_written() {
        for text in [
            "dqn:a b.json",
            "value-search:x@y.json@5",
            "deltazero:a b.safetensors@1",
            "thesis:x@800",
            "minimax:2",
            "mcts:100",
        ] {
            assert_eq!(text.parse::<Agent>().unwrap().to_string(), text);
        }
        assert_eq!(
            "value-search:x".parse(),
            Ok(Agent::ValueSearch("x".into(), LOOKS))
        );
        assert_eq!(
            "thesis:x".parse(),
            Ok(Agent::Zero(System::Thesis, "x".into(), VISITS))
        );
        assert!(Agent::parse("alphabeta:2").is_none() && Agent::parse("net.pb.gz@1").is_none());
        for text in [
            "dqn:",
            "value-search:",
            "value-search:x@0",
            "deltazero:",
            "thesis:x@y",
            "minimax:7",
            "mcts:x",
            "random",
        ] {
            let error = text.parse::<Agent>().unwrap_err();
            assert!(
                error.contains(text) && error.contains("mcts:PLAYOUTS"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_file_of_another_kind_is_refused_with_what_writes_the_right_one() {
        let dir = tempfile::tempdir().unwrap();
        let device = crate::commands::flags::testing::device();
        let path = dir.path().join("agent.json");
        for text in [
            "{}",
            "no text",
            "{\"network\":{\"layers\":[],\"parameters\":[]}}",
        ] {
            std::fs::write(&path, text).unwrap();
            for agent in [
                Agent::Dqn(path.clone()),
                Agent::ValueSearch(path.clone(), 1),
                Agent::Zero(System::Thesis, path.clone(), 1),
            ] {
                let error = format!("{:#}", agent.factory(&device).unwrap_err());
                assert!(error.contains("agent.json"), "{error}");
            }
        }
    }
}
