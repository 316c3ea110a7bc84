//! `match`: let two networks play each other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rookery_cli::flags::even;
use rookery_cli::{Screen, Shutdown, network_file};
use rookery_common::output;
use rookery_common::params::{GumbelParams, RootSearch};
use rookery_common::rating::SprtParams;
use rookery_model::Weights;

use super::play::{PlayArgs, Watcher};
use crate::arena::report::{self, Contestant};
use crate::arena::{self, MatchPlan, Players};
use crate::device::Device;

/// Flags of `match`.
#[derive(Debug, clap::Args)]
pub struct MatchGames {
    /// The first network, whose wins are counted.
    #[arg(value_name = "A")]
    pub first: PathBuf,
    /// Its opponent.
    #[arg(value_name = "B")]
    pub second: PathBuf,
    /// Games to play, two from each opening with colours swapped.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = even)]
    pub games: u32,
    /// Visits of each move.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub visits: u32,
    /// How the root of the search spends its visits.
    #[arg(long, value_enum, default_value_t, conflicts_with = "params")]
    pub search: SearchKind,
    /// End as soon as a sequential test knows whether A is nearer ELO1 than ELO0 points stronger,
    /// for example 0,30, with errors of 5 %.
    #[arg(long, value_name = "ELO0,ELO1", value_parser = sprt, allow_hyphen_values = true)]
    pub sprt: Option<SprtParams>,
    /// Games in hand at a time.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub concurrency: usize,
    /// How games are played, and where they are kept.
    #[command(flatten)]
    pub play: PlayArgs,
}

/// The search at the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum SearchKind {
    /// As AlphaZero.
    #[default]
    Puct,
    /// Sequential halving, for few visits.
    Gumbel,
}

fn sprt(text: &str) -> Result<SprtParams, String> {
    let refuse = || "write two numbers, for example 0,30".to_owned();
    let (elo0, elo1) = text.split_once(',').ok_or_else(refuse)?;
    let number = |text: &str| text.trim().parse().map_err(|_| refuse());
    let params = SprtParams {
        elo0: number(elo0)?,
        elo1: number(elo1)?,
        ..SprtParams::default()
    };
    params.check().map_err(|error| error.to_string())?;
    Ok(params)
}

impl MatchGames {
    /// What is played.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or a parameter is out of range.
    pub fn plan(&self) -> anyhow::Result<MatchPlan> {
        let mut search = self.play.search(self.visits)?;
        search.visits = self.visits;
        if self.search == SearchKind::Gumbel {
            search.root = RootSearch::Gumbel(GumbelParams::default());
        }
        Ok(MatchPlan {
            sprt: self.sprt,
            ..self.play.plan(self.games, self.concurrency, search)?
        })
    }
}

fn read(path: &Path) -> anyhow::Result<(Contestant, Weights)> {
    let read = network_file::read_hashed(path);
    let (hash, weights) = read.map_err(|error| with_visits(path, error))?;
    Ok((
        Contestant {
            name: network_file::stem(path),
            hash,
        },
        weights,
    ))
}

/// Adds what helps somebody who wrote FILE@VISITS, as `ladder` takes it.
fn with_visits(path: &Path, error: anyhow::Error) -> anyhow::Error {
    let text = path.to_string_lossy();
    let Some((file, visits)) = text.rsplit_once('@') else {
        return error;
    };
    if visits.parse::<u32>().is_err() {
        return error;
    }
    error.context(format!(
        "a match has the same visits for both networks: write {file}, and --visits {visits}"
    ))
}

/// Plays the match on the device that `open` opens for the first network, and prints its result.
///
/// # Errors
///
/// If the PGN file is there already, a file cannot be read or written, or a network cannot be computed.
pub fn execute(
    args: &MatchGames,
    open: impl FnOnce(&Weights) -> anyhow::Result<Device>,
    screen: &Screen,
    shutdown: &Shutdown,
) -> anyhow::Result<()> {
    args.play.check()?;
    let plan = args.plan()?;
    let (first, a) = read(&args.first)?;
    let (second, b) = read(&args.second)?;
    let device = open(&a)?;
    let networks = [device.load(&a)?, device.load(&b)?];
    let seats = || -> Players<'static> { [0, 1].map(|i| Arc::clone(&networks[i]).evaluator()) };
    let players = (0..device.playing_threads(args.games)).map(|_| seats());
    let players = players.collect();
    let mut pgn = args.play.create_pgn()?;
    let mut watcher = Watcher {
        task: screen.task("match", u64::from(args.games)),
        pgn: pgn.as_mut(),
        names: [&first.name, &second.name],
        shutdown,
    };
    let standing = arena::play(&plan, players, |game, standing| watcher.see(game, standing))?;
    drop(watcher);
    if args.play.json {
        output::print_json(&report::json(&first, &second, &standing))
    } else {
        output::print_line(&format!(
            "{} - {}: {}",
            first.name,
            second.name,
            report::line(&standing)
        ))?;
        output::print_line(report::table(&first.name, &standing).trim_end())
    }
}

#[cfg(test)]
mod tests {
    use rookery_cli::testing;

    use super::*;
    use crate::testing::{device, network};

    fn play(dir: &Path, flags: &str) -> anyhow::Result<()> {
        let line = format!(
            "match DIR/net.safetensors DIR/net.safetensors --games 2 \
             --visits 2 --ply-limit 40 {flags}"
        );
        let args: MatchGames = testing::flags(dir, &line)?;
        execute(
            &args,
            |_| Ok(device()),
            &Screen::hidden(),
            &Shutdown::default(),
        )
    }

    #[test]
    fn games_that_are_there_are_replaced_only_with_force() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("net.safetensors");
        network().write(&path).unwrap();
        let pgn = dir.path().join("games.pgn");
        std::fs::write(&pgn, "mine").unwrap();
        let error = play(dir.path(), "--pgn DIR/games.pgn").unwrap_err();
        assert!(error.to_string().contains("--force"), "{error}");
        assert_eq!(std::fs::read(&pgn).unwrap(), b"mine");
        play(dir.path(), "--pgn DIR/games.pgn --force").unwrap();
        let games = std::fs::read_to_string(&pgn).unwrap();
        assert_eq!(games.matches("[Event ").count(), 2, "{games}");
    }

    #[test]
    fn visits_behind_a_file_are_led_to_their_flag() {
        let dir = tempfile::tempdir().unwrap();
        let missing = || anyhow::anyhow!("cannot read it");
        let of = |name: &str| with_visits(&dir.path().join(name), missing()).to_string();
        assert!(of("net.safetensors@50").contains("net.safetensors, and --visits 50"));
        assert_eq!(of("me@home.safetensors"), "cannot read it");
        assert_eq!(of("net.safetensors"), "cannot read it");
    }

    #[test]
    fn networks_search_as_a_runs_file_says_but_for_its_visits() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("run.toml");
        let plan = |flags: &str| {
            let line = format!("match a b --params DIR/run.toml {flags}");
            testing::flags::<MatchGames>(dir.path(), &line)?.plan()
        };
        let puct = "[matches.search]\nvisits = 700\npuct = { c_init = 2.5 }\n";
        std::fs::write(&file, puct).unwrap();
        let search = plan("--visits 30").unwrap().params.search;
        assert_eq!((search.visits, search.puct.c_init), (30, 2.5));
        let error = plan("--search gumbel").unwrap_err().to_string();
        assert!(error.contains("--params"), "{error}");
        let stop = "[matches.search]\nvisits = 120\nkld_stop = { interval = 60 }\n";
        std::fs::write(&file, stop).unwrap();
        let error = format!("{:#}", plan("--visits 30").unwrap_err());
        assert!(error.contains("kld_stop.interval is 60"), "{error}");
        std::fs::remove_file(&file).unwrap();
        let error = format!("{:#}", plan("").unwrap_err());
        assert!(error.contains("run.toml"), "{error}");
    }

    #[test]
    fn a_sequential_test_has_two_hypotheses() {
        assert_eq!(sprt("-10, 5").unwrap().elo0, -10.0);
        for text in ["5", "5,", "5,0", "nan,1", "0,9999"] {
            assert!(sprt(text).is_err(), "{text}");
        }
    }
}
