//! Players as the lab's command lines name them: agents besides what every ladder knows.

use std::path::PathBuf;
use std::str::FromStr;

use rookery_analysis::Device;
use rookery_analysis::ladder::{Anchor, PlayerFactory};

use crate::lineage::Agent;

/// How the names of anchors begin that are no networks.
const ANCHORS: [&str; 4] = ["random", "alphabeta", "stockfish", "uci"];

/// An opponent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opponent {
    /// An agent.
    Agent(Agent),
    /// An anchor.
    Anchor(Anchor),
}

impl FromStr for Opponent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(agent) = Agent::parse(text) {
            return agent.map(Self::Agent);
        }
        let anchor = text.parse().map(Self::Anchor);
        anchor.map_err(|error: String| format!("{error}; or {}", Agent::NAMES))
    }
}

impl Opponent {
    /// Reads an agent or an anchor, if the text begins as one; none for the file of a network.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse_named(text: &str) -> Option<Result<Self, String>> {
        if let Some(agent) = Agent::parse(text) {
            return Some(agent.map(Self::Agent));
        }
        let kind = text.split(':').next();
        let is_anchor = kind.is_some_and(|kind| ANCHORS.contains(&kind));
        is_anchor.then(|| text.parse())
    }

    /// What makes players of it.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or a network cannot be computed.
    pub fn factory(&self, device: &Device) -> anyhow::Result<PlayerFactory> {
        match self {
            Self::Agent(agent) => agent.factory(device),
            Self::Anchor(anchor) => anchor.factory(device),
        }
    }
}

/// Who is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenger {
    /// An agent.
    Agent(Agent),
    /// A network's file.
    Network(PathBuf),
}

impl FromStr for Challenger {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match Agent::parse(text) {
            Some(agent) => agent.map(Self::Agent),
            None => Ok(Self::Network(text.into())),
        }
    }
}
