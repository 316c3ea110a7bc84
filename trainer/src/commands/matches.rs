//! `match`: let two networks play each other.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_common::chunk::export::pgn::{self, PgnTags};
use rookery_common::ids::Seed;
use rookery_common::openings::OpeningBook;
use rookery_common::params::{GumbelParams, MatchParams, RootSearch};
use rookery_common::rating::SprtParams;
use rookery_engine::Evaluator;
use rookery_nn::{NetworkEvaluator, Weights};

use super::flags::{DeviceArgs, OutputArgs, even};
use crate::arena::report::{self, Contestant};
use crate::arena::{self, MatchPlan, Players};
use crate::network_file;
use crate::screen::Screen;
use crate::shutdown::Shutdown;

/// Flags of `match`.
#[derive(Debug, clap::Args)]
pub struct MatchArgs {
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
    #[arg(long, value_enum, default_value_t)]
    pub search: SearchKind,
    /// Plies after which a game is a draw.
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub ply_limit: u32,
    /// Begin games at the positions of an EPD file, or the moves of a PGN file. [default: the
    /// built-in book]
    #[arg(long, visible_alias = "book", value_name = "FILE")]
    pub openings: Option<PathBuf>,
    /// End as soon as a sequential test knows whether A is nearer ELO1 than ELO0 points stronger,
    /// for example 0,30, with errors of 5 %.
    #[arg(long, value_name = "ELO0,ELO1", value_parser = sprt, allow_hyphen_values = true)]
    pub sprt: Option<SprtParams>,
    /// The seed of the order of openings.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Games in hand at a time.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub concurrency: usize,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Write the games to this PGN file.
    #[arg(long, value_name = "FILE")]
    pub pgn: Option<PathBuf>,
    /// Whether it may replace one.
    #[command(flatten)]
    pub replace: OutputArgs,
    /// Where to compute.
    #[command(flatten)]
    pub device: DeviceArgs,
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

impl MatchArgs {
    fn plan(&self) -> anyhow::Result<MatchPlan> {
        let mut params = MatchParams {
            ply_limit: self.ply_limit,
            ..MatchParams::default()
        };
        params.search.visits = self.visits;
        if self.search == SearchKind::Gumbel {
            params.search.root = RootSearch::Gumbel(GumbelParams::default());
        }
        params.check()?;
        Ok(MatchPlan {
            pairs: self.games / 2,
            params,
            book: self
                .openings
                .as_deref()
                .map_or_else(|| Ok(OpeningBook::built_in()), book)?,
            seed: Seed(self.seed),
            sprt: self.sprt,
            concurrency: self.concurrency,
        })
    }

    /// Evaluators of both networks for each thread.
    fn players(&self, networks: [&Weights; 2]) -> anyhow::Result<Vec<Players<'static>>> {
        let compute = self.device.open()?;
        let threads = self
            .device
            .playing_threads(compute, self.games as usize / 2);
        let evaluator = |weights: &Weights| -> anyhow::Result<Box<dyn Evaluator + Send>> {
            Ok(Box::new(NetworkEvaluator::new(
                weights,
                compute.device,
                compute.precision,
            )?))
        };
        let [a, b] = networks;
        (0..threads)
            .map(|_| Ok([evaluator(a)?, evaluator(b)?]))
            .collect()
    }
}

fn read(path: &Path) -> anyhow::Result<(Contestant, Weights)> {
    let (verified, weights) = network_file::read_ours(path)?;
    Ok((
        Contestant {
            name: network_file::stem(path),
            hash: verified.hash,
        },
        weights,
    ))
}

pub(super) fn book(path: &Path) -> anyhow::Result<OpeningBook> {
    let bytes = std::fs::read(path)
        .with_context(|| format!("cannot read the openings {}", path.display()))?;
    OpeningBook::from_file(path, &bytes)
        .with_context(|| format!("in the openings {}", path.display()))
}

/// Plays the match and prints its result.
///
/// # Errors
///
/// If the PGN file is there already, a file cannot be read or written, or a network cannot be computed.
pub fn execute(args: &MatchArgs, screen: &Screen, shutdown: &Shutdown) -> anyhow::Result<()> {
    if let Some(path) = &args.pgn {
        args.replace.check(path)?;
    }
    let plan = args.plan()?;
    let (first, a) = read(&args.first)?;
    let (second, b) = read(&args.second)?;
    let players = args.players([&a, &b])?;
    let mut pgn = args.pgn.as_deref().map(PgnFile::create).transpose()?;
    let mut task = screen.task("match", u64::from(args.games));
    let standing = arena::play(&plan, players, |game, standing| {
        task.at(standing.tally.games(), &report::line(standing));
        if let Some(pgn) = &mut pgn {
            pgn.write(game, &first.name, &second.name)?;
        }
        Ok(shutdown.flow())
    })?;
    drop(task);
    if args.json {
        println!("{}", report::json(&first, &second, &standing));
    } else {
        println!(
            "{} - {}: {}",
            first.name,
            second.name,
            report::line(&standing)
        );
    }
    Ok(())
}

/// A PGN file that grows with the match.
pub(super) struct PgnFile {
    path: PathBuf,
    file: std::fs::File,
}

impl PgnFile {
    pub(super) fn create(path: &Path) -> anyhow::Result<Self> {
        let file = std::fs::File::create(path);
        let file = file.with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    pub(super) fn write(
        &mut self,
        game: &rookery_common::chunk::GameRecord,
        first: &str,
        second: &str,
    ) -> anyhow::Result<()> {
        let tags = PgnTags {
            event: "Rookery match".to_owned(),
            round: (game.index + 1).to_string(),
            first: first.to_owned(),
            second: second.to_owned(),
            ..PgnTags::default()
        };
        let text = pgn::game(game, &tags)?;
        let written = self.file.write_all(text.as_bytes());
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rookery_common::network::NetworkSpec;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        game: MatchArgs,
    }

    fn play(dir: &Path, flags: &str) -> anyhow::Result<()> {
        rookery_nn::use_threads(1);
        let line = format!(
            "match --device cpu --threads 1 DIR/net.safetensors DIR/net.safetensors --games 2 \
             --visits 2 --ply-limit 40 {flags}"
        );
        let line = line.replace("DIR", &dir.display().to_string());
        let args = Flags::try_parse_from(line.split_whitespace())?;
        execute(&args.game, &Screen::hidden(), &Shutdown::default())
    }

    #[test]
    fn games_that_are_there_are_replaced_only_with_force() {
        let dir = tempfile::tempdir().unwrap();
        let network = Weights::random(NetworkSpec::resnet(1, 8), 1).unwrap();
        network.write(&dir.path().join("net.safetensors")).unwrap();
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
    fn a_sequential_test_has_two_hypotheses() {
        assert_eq!(sprt("-10, 5").unwrap().elo0, -10.0);
        for text in ["5", "5,", "5,0", "nan,1", "0,9999"] {
            assert!(sprt(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_bad_book_is_named_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.epd");
        std::fs::write(&path, "# mine\n8/8 w - -\n").unwrap();
        let error = format!("{:#}", book(&path).unwrap_err());
        assert!(
            error.contains("book.epd") && error.contains("line 2"),
            "{error}"
        );
    }
}
