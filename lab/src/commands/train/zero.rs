//! `train deltazero` and `train thesis`: from a random network to a trained one and its table, as one command.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rookery_analysis::arena::MatchPlan;
use rookery_analysis::matches::play::book;
use rookery_analysis::{Device, EngineReferee};
use rookery_cli::flags::{even, share};
use rookery_cli::{Screen, Shutdown, network_file};
use rookery_common::files::{create_folder, write_whole};
use rookery_common::ids::Seed;
use rookery_common::openings::OpeningBook;
use rookery_common::output;
use rookery_common::params::{MatchParams, SearchParams};
use rookery_common::puzzle::Puzzle;
use rookery_common::puzzle::table::{self, Filter, RatingRange};
use rookery_common::unpack::unpack;
use rookery_engine::{Judges, Referee};

use super::LengthArgs;
use crate::commands::flags::DeviceArgs;
use crate::lineage::zero::System;
use crate::lineage::zero::evaluation;
use crate::lineage::zero::rounds::{Settings, Training, WarmStart};
use crate::lineage::zero::trainer::TrainerProgram;

/// Games in hand at a time of the match at the end.
const CONCURRENCY: usize = 32;

/// Flags of `train deltazero`.
#[derive(Debug, clap::Args)]
pub struct DeltaZeroArgs {
    /// Games of people to begin with: PGN files, plain, gzip or zstd, with ratings.
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub pgn: Vec<PathBuf>,
    /// The share of --minutes that these games get, none of them with 0; without --minutes they are read once.
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share)]
    pub warm_share: f64,
    /// Take this as the rating of players without one. [default: such games are passed over]
    #[arg(long, value_name = "ELO")]
    pub assume_elo: Option<f64>,
    /// Begin games at the lines of this book, an EPD or PGN file. [default: the built-in book]
    #[arg(long, visible_alias = "book", value_name = "FILE")]
    pub openings: Option<PathBuf>,
    /// End games by this UCI engine, a path or a name such as stockfish: as won once it sees two pawns more, where both
    /// sides' searches agree with it. [default: none, games are played on]
    #[arg(long, value_name = "PROGRAM")]
    pub adjudicator: Option<PathBuf>,
    /// What both have.
    #[command(flatten)]
    pub zero: ZeroArgs,
}

/// Flags of `train thesis`.
#[derive(Debug, clap::Args)]
pub struct ThesisArgs {
    /// Play puzzles as well: mates in one and two of a table as Lichess has it (CSV, plain, gzip or zstd).
    #[arg(long, value_name = "FILE")]
    pub puzzles: Option<PathBuf>,
    /// Puzzles of each round.
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub round_puzzles: usize,
    /// What both have.
    #[command(flatten)]
    pub zero: ZeroArgs,
}

/// Flags of both.
#[derive(Debug, clap::Args)]
pub struct ZeroArgs {
    /// Keep everything in this folder: networks, games as chunks and games.pgn, losses.jsonl, losses.svg, and the table
    /// evaluation.md.
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Train a network of this shape, blocks x filters, with the published input, encoding of moves and kind of value, and
    /// heads of the usual size. [default: the published one]
    #[arg(long, value_name = "SHAPE")]
    pub shape: Option<String>,
    /// Visits of each move.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub visits: u32,
    /// Plies after which a game is a draw, those of its opening not counted.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(10..=1000))]
    pub ply_limit: u32,
    /// Games of each round, all played at once.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub round_games: u32,
    /// Optimiser steps after each round, on all games so far.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub round_steps: u64,
    /// Games of the match at the end, of the trained network against the random one that it was; 0 for none.
    #[arg(long, value_name = "N", default_value = "20", value_parser = none_or_even)]
    pub evaluation_games: u32,
    /// The program that trains. [default: rookery-trainer beside this program, or else on the PATH]
    #[arg(long, value_name = "PROGRAM")]
    pub trainer: Option<PathBuf>,
    /// Where it trains: auto, cpu, cuda, cuda:N or mps.
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub train_device: String,
    /// Where games are played.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// How long, and where to.
    #[command(flatten)]
    pub length: LengthArgs,
}

impl DeltaZeroArgs {
    /// The games of people, unless no time is for them.
    fn warm_start(&self) -> Option<WarmStart<'_>> {
        (self.warm_share > 0.0).then(|| WarmStart {
            pgn: &self.pgn,
            assumed_elo: self.assume_elo,
            share: self.warm_share,
        })
    }
}

fn none_or_even(text: &str) -> Result<u32, String> {
    if text == "0" { Ok(0) } else { even(text) }
}

/// Trains `DeltaZero`.
///
/// # Errors
///
/// If a file cannot be read or written, a program does not start, or training fails.
pub(super) fn deltazero(
    args: &DeltaZeroArgs,
    screen: &Screen,
    shutdown: &Shutdown,
) -> anyhow::Result<()> {
    let settings = Settings {
        book: Some(match &args.openings {
            Some(path) => book(path)?,
            None => OpeningBook::built_in(),
        }),
        ..args.zero.settings(System::DeltaZero)
    };
    let adjudicator = args.adjudicator.as_deref();
    let program = adjudicator.map(EngineReferee::try_out).transpose()?;
    let referee = program.as_deref().map(EngineReferee::new);
    let judges = Judges {
        referee: referee.map(|referee| Arc::new(referee) as Arc<dyn Referee>),
        ..Judges::default()
    };
    args.zero
        .run((settings, judges), args.warm_start(), screen, shutdown)
}

/// Trains the thesis's network.
///
/// # Errors
///
/// As [`deltazero`].
pub(super) fn thesis(
    args: &ThesisArgs,
    screen: &Screen,
    shutdown: &Shutdown,
) -> anyhow::Result<()> {
    let settings = args.zero.settings(System::Thesis);
    let settings = match &args.puzzles {
        Some(path) => Settings {
            puzzles: args.round_puzzles,
            set: puzzles(path)?,
            ..settings
        },
        None => settings,
    };
    args.zero
        .run((settings, Judges::default()), None, screen, shutdown)
}

/// The mates in one and two of a table.
fn puzzles(path: &Path) -> anyhow::Result<Vec<Puzzle>> {
    let cannot = || format!("cannot read the puzzles {}", path.display());
    let file = File::open(path).with_context(cannot)?;
    let filter = Filter {
        themes: ["mateIn1", "mateIn2"].map(str::to_owned).to_vec(),
        rating: RatingRange {
            low: 0,
            high: u32::MAX,
        },
        count: 100_000,
    };
    let input = unpack(path, BufReader::new(file)).with_context(cannot)?;
    let found = table::read(input, &filter).with_context(cannot)?;
    anyhow::ensure!(
        !found.puzzles.is_empty(),
        "{} has no mate in one or two; give a table with the themes mateIn1 and mateIn2",
        path.display()
    );
    Ok(found.puzzles)
}

impl ZeroArgs {
    fn settings(&self, system: System) -> Settings {
        let seconds = |minutes: f64| Duration::from_secs_f64(60.0 * minutes);
        Settings {
            system,
            shape: self.shape.clone(),
            visits: self.visits,
            ply_limit: self.ply_limit,
            games: self.round_games,
            puzzles: 0,
            steps: self.round_steps,
            rate: self.length.learning_rate,
            seed: self.length.seed,
            book: None,
            set: Vec::new(),
            limit: self.length.minutes.map(seconds),
        }
    }

    fn run(
        &self,
        (settings, judges): (Settings, Judges),
        warm: Option<WarmStart<'_>>,
        screen: &Screen,
        shutdown: &Shutdown,
    ) -> anyhow::Result<()> {
        self.prepare()?;
        let device = self.device.open()?;
        let threads = self.device.threads;
        let program = TrainerProgram::find(self.trainer.as_deref(), &self.train_device, threads);
        let search = SearchParams {
            visits: self.visits,
            ..settings.system.search()
        };
        let mut training = Training::begin(settings, &self.dir, &program, (&device, judges))?;
        let mut warm = warm;
        self.length.run(screen, shutdown, |is_over, _| {
            match warm.take() {
                Some(warm) => training.warm_start(&warm)?,
                None => training.round(is_over)?,
            }
            let losses = training.plot()?.unwrap_or_default();
            let note = format!("policy loss {:.3}, value loss {:.3}", losses[0], losses[1]);
            Ok((training.games() as u32, note))
        })?;
        let trained = training.network();
        let bytes = std::fs::read(trained);
        let bytes = bytes.with_context(|| format!("cannot read {}", trained.display()))?;
        write_whole(&self.length.output, &bytes)
            .with_context(|| format!("cannot write {}", self.length.output.display()))?;
        if self.evaluation_games == 0 || shutdown.is_requested() {
            return Ok(());
        }
        let random = training.random();
        let [new, random] = [trained, random.as_path()].map(network_file::read);
        let table = self.evaluate(search, [&new?, &random?], &device, shutdown)?;
        let path = self.dir.join("evaluation.md");
        let written = std::fs::write(&path, &table);
        written.with_context(|| format!("cannot write {}", path.display()))?;
        output::print_line(table.trim_end())
    }

    /// Creates the folder, in which the output may be, and asks whether both may be written.
    fn prepare(&self) -> anyhow::Result<()> {
        let dir = self.dir.display();
        create_folder(&self.dir).with_context(|| format!("cannot create {dir}"))?;
        let mut files =
            std::fs::read_dir(&self.dir).with_context(|| format!("cannot read {dir}"))?;
        anyhow::ensure!(
            self.length.replace.force || files.next().is_none(),
            "{dir} is not empty; name another folder with --dir, or give --force to replace its files"
        );
        self.length.replace.check(&self.length.output)
    }

    fn evaluate(
        &self,
        search: SearchParams,
        networks: [&rookery_model::Weights; 2],
        device: &Device,
        shutdown: &Shutdown,
    ) -> anyhow::Result<String> {
        let plan = MatchPlan {
            pairs: self.evaluation_games / 2,
            params: MatchParams {
                search,
                ply_limit: self.ply_limit,
                ..MatchParams::default()
            },
            book: OpeningBook::built_in(),
            seed: Seed(self.length.seed),
            sprt: None,
            concurrency: CONCURRENCY,
        };
        let standing = evaluation::play(&plan, networks, device, shutdown)?;
        Ok(evaluation::table(&standing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_may_be_left_out_but_not_be_odd() {
        assert_eq!(none_or_even("0"), Ok(0));
        assert_eq!(none_or_even("20"), Ok(20));
        assert!(none_or_even("3").is_err());
    }

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: DeltaZeroArgs,
    }

    fn args(dir: &Path, flags: &str) -> DeltaZeroArgs {
        let dir = dir.display();
        let line = format!("deltazero --pgn a.pgn --dir {dir}/run -o {dir}/run/out {flags}");
        <Line as clap::Parser>::parse_from(line.split_whitespace()).args
    }

    #[test]
    fn games_of_people_are_left_out_where_no_time_is_for_them() {
        let dir = tempfile::tempdir().unwrap();
        assert!(args(dir.path(), "").warm_start().is_some());
        assert!(args(dir.path(), "--warm-share 0").warm_start().is_none());
    }

    #[test]
    fn a_folder_with_files_is_used_with_force_only_and_may_hold_the_output() {
        let dir = tempfile::tempdir().unwrap();
        let prepare = |flags: &str| args(dir.path(), flags).zero.prepare();
        prepare("").unwrap();
        std::fs::write(dir.path().join("run/out"), "x").unwrap();
        let error = prepare("").unwrap_err().to_string();
        assert!(
            error.contains("is not empty") && error.contains("--force"),
            "{error}"
        );
        prepare("--force").unwrap();
    }

    #[test]
    fn puzzles_that_are_no_short_mates_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("puzzles.csv");
        let ladder = "k7/8/8/8/8/8/6R1/K6R b - - 0 1,a8b8 h1h7 b8a8 g2g8";
        let row = |theme: &str| {
            std::fs::write(&path, format!("a,{ladder},900,80,90,10,{theme},u,\n")).unwrap();
            puzzles(&path)
        };
        assert_eq!(row("mateIn2 short").unwrap().len(), 1);
        let error = row("fork").unwrap_err().to_string();
        assert!(error.contains("mateIn1"), "{error}");
    }
}
