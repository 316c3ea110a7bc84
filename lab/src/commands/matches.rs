//! `match`: let two networks or agents play each other.

use std::path::Path;

use rookery_analysis::Device;
use rookery_analysis::ladder::PlayerFactory;
use rookery_analysis::matches::ladder::{self, Field, LadderGames};
use rookery_analysis::matches::networks;
use rookery_cli::{Screen, Shutdown};
use rookery_common::params::SearchParams;

use super::flags::DeviceArgs;
use crate::lineage::Agent;

/// Flags of `match`. Each player is a network or an agent, as in `ladder`.
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
    let players = [&args.games.first, &args.games.second];
    let agents = players.map(|path| path.to_str().and_then(Agent::parse).transpose());
    let [first, second] = agents.map(|agent| agent.map_err(anyhow::Error::msg));
    match (first?, second?) {
        (None, None) => {
            let open = |weights: &_| args.device.open_for(weights);
            networks::execute(&args.games, open, screen, shutdown)
        }
        (first, second) => agents_match(args, [first, second], screen, shutdown),
    }
}

/// A match with an agent is a ladder with one opponent.
fn agents_match(
    args: &MatchArgs,
    [first, second]: [Option<Agent>; 2],
    screen: &Screen,
    shutdown: &Shutdown,
) -> anyhow::Result<()> {
    let MatchArgs { games, device } = args;
    let (plan, device) = (games.plan()?, device.open()?);
    let search = &plan.params.search;
    let ladder = LadderGames {
        games: games.games,
        visits: games.visits,
        concurrency: games.concurrency,
        rating: Vec::new(),
        play: games.play.clone(),
    };
    // Whether the games may be written.
    ladder.plan()?;
    let field = Field {
        challenger: player(first, &games.first, search, &device)?,
        anchors: vec![player(second, &games.second, search, &device)?],
        threads: device.playing_threads(games.games),
    };
    ladder::execute(&ladder, &plan, &field, screen, shutdown)
}

fn player(
    agent: Option<Agent>,
    path: &Path,
    search: &SearchParams,
    device: &Device,
) -> anyhow::Result<PlayerFactory> {
    match agent {
        Some(agent) => agent.factory(device),
        None => PlayerFactory::network(path, (search.clone(), search.visits), device),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_play_a_match_and_a_wrong_name_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let play = |players: &str| {
            let line = format!(
                "match {players} --games 2 --ply-limit 10 --device cpu --threads 1 --pgn DIR/games.pgn --force"
            );
            let args: MatchArgs = rookery_cli::testing::flags(dir.path(), &line).unwrap();
            execute(&args, &Screen::hidden(), &Shutdown::default())
        };
        play("minimax:1 mcts:2").unwrap();
        let games = std::fs::read_to_string(dir.path().join("games.pgn")).unwrap();
        assert_eq!(games.matches("\"minimax:1\"").count(), 2, "{games}");
        let error = play("minimax:1 thesis:").unwrap_err().to_string();
        assert!(error.contains("thesis:FILE"), "{error}");
    }
}
