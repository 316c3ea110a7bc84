//! `ladder`: let a network or an agent play opponents that everyone knows.

use rookery_analysis::ladder::PlayerFactory;
use rookery_analysis::matches::ladder::{self, Field};
use rookery_cli::{Screen, Shutdown, network_file};

use super::flags::DeviceArgs;
use super::opponent::{Challenger, Opponent};

/// Flags of `ladder`.
#[derive(Debug, clap::Args)]
pub struct LadderArgs {
    /// The player to measure: a network as a file of Rookery or of Lc0 (.pb.gz), or an agent: dqn:FILE,
    /// value-search:FILE, value-search:FILE@POSITIONS (POSITIONS are expanded for each move), deltazero:FILE@VISITS,
    /// thesis:FILE@VISITS, minimax:DEPTH, mcts:PLAYOUTS.
    #[arg(long, value_name = "PLAYER")]
    pub network: Challenger,
    /// Opponents, separated by commas: random, alphabeta:DEPTH, alphabeta:DEPTH:PERCENT (PERCENT of the moves
    /// are random legal ones), stockfish:ELO (limited by its own UCI_Elo and 20,000 nodes a move),
    /// stockfish:nodes=N, uci:PROGRAM@NODES, an agent as above, or a network FILE@VISITS, for example
    /// maia-1100.pb.gz@1.
    #[arg(long, value_name = "LIST", value_delimiter = ',', required = true)]
    pub anchors: Vec<Opponent>,
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
    let (device, challenger) = match &args.network {
        Challenger::Agent(agent) => {
            let device = args.device.open()?;
            let challenger = agent.factory(&device)?;
            (device, challenger)
        }
        Challenger::Network(path) => {
            let device = args.device.open_for(&network_file::read(path)?)?;
            let search = (plan.params.search.clone(), args.games.visits);
            let network = PlayerFactory::network(path, search, &device)?;
            (device, network)
        }
    };
    let anchors = args.anchors.iter().map(|anchor| anchor.factory(&device));
    let field = Field {
        challenger,
        anchors: anchors.collect::<anyhow::Result<_>>()?,
        threads: device.playing_threads(args.games.games),
    };
    ladder::execute(&args.games, &plan, &field, screen, shutdown).map(drop)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn agents_stand_on_both_sides_of_a_ladder() {
        let dir = tempfile::tempdir().unwrap();
        let line = "ladder --network minimax:1 --anchors mcts:2,random --games 2 --ply-limit 20 --device cpu \
                    --threads 1 --pgn DIR/games.pgn";
        let args: LadderArgs = rookery_cli::testing::flags(dir.path(), line).unwrap();
        execute(&args, &Screen::hidden(), &Shutdown::default()).unwrap();
        let games = std::fs::read_to_string(dir.path().join("games.pgn")).unwrap();
        assert_eq!(games.matches("[Event ").count(), 4, "{games}");
        assert_eq!(games.matches("\"minimax:1\"").count(), 4, "{games}");
    }

    #[test]
    fn unknown_opponents_are_refused_with_what_there_is() {
        let line = "ladder --network a --anchors dqm:x";
        let error = rookery_cli::testing::flags::<LadderArgs>(Path::new(""), line).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("stockfish:ELO") && error.contains("dqn:FILE"),
            "{error}"
        );
    }
}
