//! `ladder`: let a player play opponents that everyone knows.

use rookery_cli::flags::even;
use rookery_cli::{Screen, Shutdown};
use rookery_common::output;
use serde_json::{Value, json};

use super::play::{PlayArgs, Watcher};
use super::rated::{KnownRating, RatedPerformance, check_names, rating_of};
use crate::arena::{MatchPlan, Standing, report};
use crate::ladder::{self, PlayerFactory, Seats};

/// Flags of `ladder`, but for who plays and where.
#[derive(Debug, clap::Args)]
pub struct LadderGames {
    /// Games with each, two from each opening with colours swapped.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = even)]
    pub games: u32,
    /// Visits of each move of the network.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub visits: u32,
    /// Games in hand at a time.
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub concurrency: usize,
    /// An opponent's rating, as in maia-1100.pb.gz@1=1100; may be given several times. stockfish:ELO has its own. By games
    /// with rated opponents the player gets a performance rating, their mean rating + 400 (wins - losses) / games, and one
    /// by Bradley-Terry.
    #[arg(long, value_name = "NAME=ELO")]
    pub rating: Vec<KnownRating>,
    /// How games are played, and where they are kept.
    #[command(flatten)]
    pub play: PlayArgs,
}

/// Who plays.
#[derive(Debug)]
pub struct Field {
    /// The player that is measured.
    pub challenger: PlayerFactory,
    /// Its opponents, one after the other.
    pub anchors: Vec<PlayerFactory>,
    /// Threads of each match.
    pub threads: usize,
}

impl LadderGames {
    /// What is played with each anchor.
    ///
    /// # Errors
    ///
    /// If the PGN file is there already, a file cannot be read, or a parameter is out of range.
    pub fn plan(&self) -> anyhow::Result<MatchPlan> {
        self.play.check()?;
        let search = self.play.search(self.visits)?;
        self.play.plan(self.games, self.concurrency, search)
    }
}

impl Field {
    /// The challenger and an anchor, for each thread.
    fn seats(&self, anchor: &PlayerFactory, seed: u64) -> anyhow::Result<Vec<Seats<'static>>> {
        let seat = |_| Ok([self.challenger.player(seed)?, anchor.player(seed)?]);
        (0..self.threads).map(seat).collect()
    }
}

/// Plays the matches and prints their results; how each of them went.
///
/// # Errors
///
/// If a file cannot be written, an opponent does not start, or a player fails.
pub fn execute(
    args: &LadderGames,
    plan: &MatchPlan,
    field: &Field,
    screen: &Screen,
    shutdown: &Shutdown,
) -> anyhow::Result<Vec<Standing>> {
    let name = &field.challenger.name;
    let anchors: Vec<&str> = field.anchors.iter().map(|one| &*one.name).collect();
    check_names(&args.rating, &anchors)?;
    let (mut pgn, mut standings, mut rated) = (None, Vec::new(), Vec::new());
    for anchor in &field.anchors {
        let seats = field.seats(anchor, args.play.seed)?;
        // Only now that a match can begin is a file replaced.
        if standings.is_empty() {
            pgn = args.play.create_pgn()?;
        }
        let opponent = &anchor.name;
        let mut watcher = Watcher {
            task: screen.task(opponent, u64::from(args.games)),
            pgn: pgn.as_mut(),
            names: [name, opponent],
            shutdown,
        };
        let standing = ladder::play(plan, seats, |game, standing| watcher.see(game, standing))?;
        drop(watcher);
        if !args.play.json {
            let line = report::line(&standing);
            output::print_line(&format!("{name} - {opponent}: {line}"))?;
        }
        if let Some(elo) = rating_of(opponent, &args.rating) {
            rated.push((elo, standing.tally));
        }
        standings.push(standing);
        if shutdown.is_requested() {
            break;
        }
    }
    let rating = RatedPerformance::new(&rated)?;
    if args.play.json {
        let network = json!({"name": name, "visits": args.visits});
        let results = anchors.iter().zip(&standings);
        let results: Vec<Value> = results.map(|(name, one)| result(name, one)).collect();
        output::print_json(&json!({"network": network, "anchors": results, "rating": rating}))?;
    } else if let Some(rating) = rating {
        output::print_line(&format!("{name}: {}", rating.line()))?;
    }
    Ok(standings)
}

fn result(anchor: &str, standing: &Standing) -> Value {
    let mut result = report::tally(standing);
    result["anchor"] = anchor.into();
    result
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::ladder::Anchor;
    use crate::testing::{device, network};

    fn ladder(dir: &Path, anchors: &str, flags: &str) -> anyhow::Result<()> {
        let line =
            format!("ladder --pgn DIR/games.pgn --games 2 --visits 2 --ply-limit 40 {flags}");
        let args: LadderGames = rookery_cli::testing::flags(dir, &line)?;
        let plan = args.plan()?;
        let anchors = anchors.replace("DIR", &dir.display().to_string());
        let factory = |text: &str| -> anyhow::Result<PlayerFactory> {
            let anchor: Anchor = text.parse().map_err(anyhow::Error::msg)?;
            anchor.factory(&device())
        };
        let search = (plan.params.search.clone(), args.visits);
        let field = Field {
            challenger: PlayerFactory::network(&dir.join("net.safetensors"), search, &device())?,
            anchors: anchors
                .split(',')
                .map(factory)
                .collect::<anyhow::Result<_>>()?,
            threads: 1,
        };
        execute(
            &args,
            &plan,
            &field,
            &Screen::hidden(),
            &Shutdown::default(),
        )
        .map(drop)
    }

    #[test]
    fn games_are_replaced_only_with_force_and_once_a_match_can_begin() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("net.safetensors");
        network().write(&path).unwrap();
        let pgn = dir.path().join("games.pgn");
        std::fs::write(&pgn, "mine").unwrap();
        for (anchors, flags, problem) in [
            ("random", "", "--force"),
            (
                "random",
                "--force --params DIR/missing.toml",
                "missing.toml",
            ),
            ("random,DIR/missing.pb.gz@1", "--force", "missing.pb.gz"),
            ("uci:DIR/missing-engine@1", "--force", "missing-engine"),
        ] {
            let error = format!("{:#}", ladder(dir.path(), anchors, flags).unwrap_err());
            assert!(error.contains(problem), "{error}");
            assert_eq!(std::fs::read(&pgn).unwrap(), b"mine", "{flags}");
        }
        // Enough visits in the file, too few on the command line.
        let stop = "[matches.search]\nvisits = 120\nkld_stop = { interval = 60 }\n";
        std::fs::write(dir.path().join("run.toml"), stop).unwrap();
        let flags = "--force --params DIR/run.toml";
        let error = format!("{:#}", ladder(dir.path(), "random", flags).unwrap_err());
        assert!(error.contains("kld_stop.interval is 60"), "{error}");
        assert_eq!(std::fs::read(&pgn).unwrap(), b"mine");
        ladder(dir.path(), "random,alphabeta:1", "--force").unwrap();
        let games = std::fs::read_to_string(&pgn).unwrap();
        assert_eq!(games.matches("[Event ").count(), 4, "{games}");
    }
}
