//! Whatever makes players: one for each thread of a match.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rookery_cli::network_file;
use rookery_common::params::SearchParams;
use rookery_engine::players::{Player, SearchingPlayer};
use rookery_uci::{Launch, Limits};

use super::uci::UciPlayer;
use crate::device::Device;

type Made = anyhow::Result<Box<dyn Player + Send>>;

/// A player of a match, as often as there are threads.
pub struct PlayerFactory {
    /// How reports call it.
    pub name: String,
    make: Box<dyn Fn(u64) -> Made>,
}

impl fmt::Debug for PlayerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PlayerFactory").field(&self.name).finish()
    }
}

impl PlayerFactory {
    /// Players of this name, which `make` makes from a seed.
    pub fn new(name: String, make: impl Fn(u64) -> Made + 'static) -> Self {
        let make = Box::new(make);
        Self { name, make }
    }

    /// Another program, with this many nodes a move.
    pub fn engine(name: String, launch: Launch, nodes: u64) -> Self {
        Self::new(name, move |_| {
            let player = UciPlayer::start(&launch, Limits::nodes(nodes))?;
            Ok(Box::new(player))
        })
    }

    /// The network of a file, called after it, which searches each move with this many visits.
    ///
    /// # Errors
    ///
    /// If it cannot be read or computed.
    pub fn network(
        path: &Path,
        (search, visits): (SearchParams, u32),
        device: &Device,
    ) -> anyhow::Result<Self> {
        let name = network_file::stem(path);
        let network = device.load(&network_file::read(path)?)?;
        Ok(Self::new(name.clone(), move |_| {
            let evaluator = Arc::clone(&network).evaluator();
            let player = SearchingPlayer::new(name.clone(), evaluator, search.clone(), visits);
            Ok(Box::new(player))
        }))
    }

    /// A player.
    ///
    /// # Errors
    ///
    /// If a program does not start or lacks an option.
    pub fn player(&self, seed: u64) -> Made {
        (self.make)(seed)
    }
}
