//! `ladder`: let a network play opponents that everyone knows.

use std::path::PathBuf;

use rookery_common::output;
use rookery_model::Weights;
use serde_json::{Value, json};

use super::flags::even;
use super::play::{PlayArgs, Watcher};
use crate::arena::{MatchPlan, Standing, report};
use crate::ladder::anchor::{self, ReadyAnchor};
use crate::ladder::{self, Anchor, Seats};
use crate::network_file;
use crate::screen::Screen;
use crate::shutdown::Shutdown;

/// Flags of `ladder`.
#[derive(Debug, clap::Args)]
pub struct LadderArgs {
    /// The network, as a file of ours or of Lc0 (.pb.gz).
    #[arg(long, value_name = "FILE")]
    pub network: PathBuf,
    /// Its opponents, separated by commas: random, alphabeta:DEPTH, alphabeta:DEPTH:PERCENT (so many
    /// moves in a hundred are any legal ones), stockfish:ELO (limited by its own UCI_Elo and 20,000
    /// nodes a move), stockfish:nodes=N, uci:PROGRAM@NODES, or a network FILE@VISITS, for example
    /// maia-1100.pb.gz@1.
    #[arg(long, value_name = "LIST", value_delimiter = ',', required = true)]
    pub anchors: Vec<Anchor>,
    /// Games with each, two from each opening with colours swapped.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = even)]
    pub games: u32,
    /// Visits of each move of the network.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub visits: u32,
    /// Games in hand at a time.
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub concurrency: usize,
    /// How games are played, and where they are kept.
    #[command(flatten)]
    pub play: PlayArgs,
}

impl LadderArgs {
    fn plan(&self) -> anyhow::Result<MatchPlan> {
        let search = self.play.search(self.visits)?;
        self.play.plan(self.games, self.concurrency, search)
    }

    /// The network, which searches as the plan says, and an anchor, for each thread.
    fn seats(
        &self,
        plan: &MatchPlan,
        weights: &Weights,
        anchor: &ReadyAnchor,
    ) -> anyhow::Result<Vec<Seats<'static>>> {
        self.play.on_each_thread(self.games, |compute| {
            let search = (plan.params.search.clone(), self.visits);
            Ok([
                anchor::network_player("the network", weights, search, compute)?,
                anchor.player(compute, self.play.seed)?,
            ])
        })
    }
}

/// Plays the matches and prints their results.
///
/// # Errors
///
/// If the PGN file is there already, a file cannot be read or written, an opponent does not start, or a
/// player fails.
pub fn execute(args: &LadderArgs, screen: &Screen, shutdown: &Shutdown) -> anyhow::Result<()> {
    args.play.check()?;
    let plan = args.plan()?;
    let weights = network_file::read(&args.network)?;
    let name = network_file::stem(&args.network);
    let opened: anyhow::Result<Vec<_>> = args.anchors.iter().map(Anchor::open).collect();
    let (mut pgn, mut results) = (None, Vec::new());
    for (anchor, ready) in args.anchors.iter().zip(&opened?) {
        let seats = args.seats(&plan, &weights, ready)?;
        // Only now that a match can begin is a file replaced.
        if results.is_empty() {
            pgn = args.play.create_pgn()?;
        }
        let opponent = anchor.to_string();
        let mut watcher = Watcher {
            task: screen.task(&opponent, u64::from(args.games)),
            pgn: pgn.as_mut(),
            names: [&name, &opponent],
            shutdown,
        };
        let standing = ladder::play(&plan, seats, |game, standing| watcher.see(game, standing))?;
        drop(watcher);
        if !args.play.json {
            let line = report::line(&standing);
            output::print_line(&format!("{name} - {opponent}: {line}"))?;
        }
        results.push(result(&opponent, &standing));
        if shutdown.is_requested() {
            break;
        }
    }
    if args.play.json {
        let network = json!({"name": name, "visits": args.visits});
        output::print_json(&json!({"network": network, "anchors": results}))?;
    }
    Ok(())
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
    use crate::testing;

    fn ladder(dir: &Path, flags: &str) -> anyhow::Result<()> {
        rookery_backend_torch::use_threads(1);
        let line = format!(
            "ladder --device cpu --threads 1 --network DIR/net.safetensors --pgn DIR/games.pgn \
             --games 2 --visits 2 --ply-limit 40 {flags}"
        );
        let args: LadderArgs = testing::flags(dir, &line)?;
        execute(&args, &Screen::hidden(), &Shutdown::default())
    }

    #[test]
    fn games_are_replaced_only_with_force_and_once_a_match_can_begin() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("net.safetensors");
        testing::network().write(&path).unwrap();
        let pgn = dir.path().join("games.pgn");
        std::fs::write(&pgn, "mine").unwrap();
        for (flags, problem) in [
            ("--anchors random", "--force"),
            (
                "--anchors random --force --params DIR/missing.toml",
                "missing.toml",
            ),
            (
                "--anchors random,DIR/missing.pb.gz@1 --force",
                "missing.pb.gz",
            ),
            (
                "--anchors uci:DIR/missing-engine@1 --force",
                "missing-engine",
            ),
        ] {
            let error = format!("{:#}", ladder(dir.path(), flags).unwrap_err());
            assert!(error.contains(problem), "{error}");
            assert_eq!(std::fs::read(&pgn).unwrap(), b"mine", "{flags}");
        }
        // Enough visits in the file, too few on the command line.
        let stop = "[matches.search]\nvisits = 120\nkld_stop = { interval = 60 }\n";
        std::fs::write(dir.path().join("run.toml"), stop).unwrap();
        let flags = "--anchors random --force --params DIR/run.toml";
        let error = format!("{:#}", ladder(dir.path(), flags).unwrap_err());
        assert!(error.contains("kld_stop.interval is 60"), "{error}");
        assert_eq!(std::fs::read(&pgn).unwrap(), b"mine");
        ladder(dir.path(), "--anchors random,alphabeta:1 --force").unwrap();
        let games = std::fs::read_to_string(&pgn).unwrap();
        assert_eq!(games.matches("[Event ").count(), 4, "{games}");
    }
}
