//! `ladder`: let a network play opponents that everyone knows.

use std::path::PathBuf;

use rookery_analysis::ladder::{Anchor, PlayerFactory};
use rookery_analysis::matches::ladder::{self, Field};
use rookery_cli::{Screen, Shutdown};

use super::flags::DeviceArgs;

/// Flags of `ladder`.
#[derive(Debug, clap::Args)]
pub struct LadderArgs {
    /// The network, as a file of Rookery or of Lc0 (.pb.gz).
    #[arg(long, value_name = "FILE")]
    pub network: PathBuf,
    /// Its opponents, separated by commas: random, alphabeta:DEPTH, alphabeta:DEPTH:PERCENT (PERCENT of
    /// the moves are random legal ones), stockfish:ELO (limited by its own UCI_Elo and 20,000
    /// nodes a move), stockfish:nodes=N, uci:PROGRAM@NODES, or a network FILE@VISITS, for example
    /// maia-1100.pb.gz@1.
    #[arg(long, value_name = "LIST", value_delimiter = ',', required = true)]
    pub anchors: Vec<Anchor>,
    /// How games are played.
    #[command(flatten)]
    pub games: ladder::LadderGames,
    /// Where to compute.
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// Plays the matches and prints their results.
///
/// # Errors
///
/// If the PGN file is there already, a file cannot be read or written, an opponent does not start, or a
/// player fails.
pub fn execute(args: &LadderArgs, screen: &Screen, shutdown: &Shutdown) -> anyhow::Result<()> {
    let plan = args.games.plan()?;
    let device = args.device.players()?;
    let search = (plan.params.search.clone(), args.games.visits);
    let challenger = PlayerFactory::network(&args.network, search, &device)?;
    let anchors = args.anchors.iter().map(|anchor| anchor.factory(&device));
    let field = Field {
        challenger,
        anchors: anchors.collect::<anyhow::Result<_>>()?,
        threads: device.playing_threads(args.games.games),
    };
    ladder::execute(&args.games, &plan, &field, screen, shutdown).map(drop)
}
