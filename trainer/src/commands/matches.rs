//! `match`: let two networks play each other.

use rookery_analysis::matches::networks;
use rookery_cli::{Screen, Shutdown};

use super::flags::DeviceArgs;

/// Flags of `match`.
#[derive(Debug, clap::Args)]
pub struct MatchArgs {
    /// What is played.
    #[command(flatten)]
    pub games: networks::MatchGames,
    /// Where to compute.
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// Plays the match and prints its result.
///
/// # Errors
///
/// If the PGN file is there already, a file cannot be read or written, or a network cannot be computed.
pub fn execute(args: &MatchArgs, screen: &Screen, shutdown: &Shutdown) -> anyhow::Result<()> {
    networks::execute(&args.games, |_| args.device.players(), screen, shutdown)
}
