//! `match`: let two networks or agents play each other.

use std::path::Path;

use rookery_analysis::Device;
use rookery_analysis::arena::report;
use rookery_analysis::ladder::PlayerFactory;
use rookery_analysis::matches::ladder::{self, Field, LadderGames};
use rookery_analysis::matches::networks;
use rookery_cli::{Screen, Shutdown};
use rookery_common::output;
use rookery_common::params::SearchParams;

use super::flags::DeviceArgs;
use super::opponent::Opponent;

/// Flags of `match`. Each player is a network, an agent or an anchor, as in `ladder`.
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
    let named = players.map(|path| path.to_str().and_then(Opponent::parse_named).transpose());
    let [first, second] = named.map(|player| player.map_err(anyhow::Error::msg));
    match (first?, second?) {
        (None, None) => {
            let open = |weights: &_| args.device.open_for(weights);
            networks::execute(&args.games, open, screen, shutdown)
        }
        (first, second) => named_match(args, [first, second], screen, shutdown),
    }
}

/// A match with an agent or an anchor is a ladder with one opponent.
fn named_match(
    args: &MatchArgs,
    [first, second]: [Option<Opponent>; 2],
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
    let standings = ladder::execute(&ladder, &plan, &field, screen, shutdown)?;
    match standings.first() {
        Some(standing) if !games.play.json => {
            let table = report::table(&field.challenger.name, standing);
            output::print_line(table.trim_end())
        }
        _ => Ok(()),
    }
}

fn player(
    named: Option<Opponent>,
    path: &Path,
    search: &SearchParams,
    device: &Device,
) -> anyhow::Result<PlayerFactory> {
    match named {
        Some(player) => player.factory(device),
        None => PlayerFactory::network(path, (search.clone(), search.visits), device),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::num::NonZeroUsize;
    use std::sync::Arc;

    use rookery_backend_cpu::CpuBackend;
    use rookery_backend_remote::{DeviceToken, Server, ServerOptions};
    use rookery_common::network::NetworkSpec;
    use rookery_engine::Precision;
    use rookery_model::Weights;

    use super::*;

    /// The processor, offered to who knows the token.
    fn serve(token: &str) -> Server {
        let backend = Arc::new(CpuBackend::new(Precision::F32).unwrap());
        let options = ServerOptions {
            token: Some(DeviceToken::parse(token).unwrap()),
            ..ServerOptions::default()
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Server::start(listener, backend, NonZeroUsize::MIN, options).unwrap()
    }

    #[test]
    fn a_match_on_another_programs_device_is_the_same_as_on_the_processor() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &[u8]| std::fs::write(dir.path().join(name), text).unwrap();
        for (name, seed) in [("a", 1), ("b", 2)] {
            let weights = Weights::random(NetworkSpec::resnet(1, 8), seed).unwrap();
            write(name, &weights.to_bytes().unwrap());
        }
        let play = |device: &str| {
            let line = format!(
                "match DIR/a DIR/b --games 4 --visits 8 --ply-limit 40 --threads 1 --pgn DIR/games.pgn --force {device}"
            );
            let args: MatchArgs = rookery_cli::testing::flags(dir.path(), &line).unwrap();
            execute(&args, &Screen::hidden(), &Shutdown::default())?;
            anyhow::Ok(std::fs::read_to_string(dir.path().join("games.pgn"))?)
        };
        let server = serve("correct horse battery");
        let remote = format!(
            "--device remote://{} --device-token-file DIR/token",
            server.address()
        );
        write("token", b"correct horse battery\n");
        let games = play(&remote).unwrap();
        assert_eq!(games.matches("[Event ").count(), 4, "{games}");
        assert!(server.statistics().positions > 0);
        assert_eq!(games, play("--device cpu").unwrap());
        write("token", b"wrong horse battery\n");
        let error = format!("{:#}", play(&remote).unwrap_err());
        assert!(error.contains("the token is wrong"), "{error}");
    }

    #[test]
    fn agents_and_anchors_play_a_match_and_a_wrong_name_is_refused() {
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
        play("alphabeta:1 random").unwrap();
        let games = std::fs::read_to_string(dir.path().join("games.pgn")).unwrap();
        assert_eq!(games.matches("\"alphabeta:1\"").count(), 2, "{games}");
        for (players, expected) in [
            ("minimax:1 thesis:", "thesis:FILE"),
            ("alphabeta:99 random", "alphabeta"),
            ("stockfish random", "stockfish:ELO"),
            ("random.safetensors random", "random.safetensors"),
        ] {
            let error = format!("{:#}", play(players).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
