//! `annotate`: let an engine evaluate every position of games.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Context as _;
use rookery_cli::flags::{OutputArgs, share, threads_or_cores};
use rookery_cli::pgn::{BytesRead, Ended, each_game, total_bytes};
use rookery_cli::{Screen, Shutdown};
use rookery_common::files;
use rookery_common::pgn::{PgnGame, Skipped};
use rookery_common::text::quantity;
use rookery_uci::Launch;

use crate::analyst::side_by_side;
use crate::annotator::{AnnotatedGames, Annotator};

/// Games that each engine gets before what all have done is written.
const ROUND: usize = 16;

/// Flags of `annotate`.
#[derive(Debug, clap::Args)]
pub struct AnnotateArgs {
    /// PGN files, plain, gzip or zstd.
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub pgn: Vec<PathBuf>,
    /// Write the annotated games to this file. Until all are done they are in FILE.part, and the same command
    /// resumes from it.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Whether it may replace one.
    #[command(flatten)]
    pub replace: OutputArgs,
    /// The engine, a program that speaks UCI.
    #[arg(long, value_name = "PROGRAM", default_value = "stockfish")]
    pub engine: PathBuf,
    /// Nodes that it searches in each position.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub nodes: u64,
    /// Add a stray after this share of the moves: a position one or two random moves away, with the engine's
    /// answer and evaluation. Strays teach what good players never let happen.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub strays: f64,
    /// End after this many games. [default: all]
    #[arg(long, value_name = "N")]
    pub games: Option<u64>,
    /// Engines at work, each on a processor core of its own. [default: one a core]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

/// Annotates.
///
/// # Errors
///
/// If a file cannot be read or written, or the engine does not start or fails.
pub fn execute(args: &AnnotateArgs, screen: &Screen, shutdown: &Shutdown) -> anyhow::Result<()> {
    args.replace.check(&args.output)?;
    let total = total_bytes(&args.pgn)?;
    let launch = Launch::new(&args.engine);
    let engines: anyhow::Result<Vec<_>> = (0..threads_or_cores(args.threads))
        .map(|_| Annotator::start(&launch, args.nodes, args.strays))
        .collect();
    let engines = engines?;
    let part = part_of(&args.output);
    let output = AnnotatedGames::open(&part, engines[0].name())?;
    let done = output.games();
    if done > 0 {
        tracing::info!("going on after game {done}");
    }
    let mut work = Work {
        engines,
        output,
        waiting: Vec::new(),
        passed: done,
        skipped: BTreeMap::new(),
        most: args.games.unwrap_or(u64::MAX),
    };
    let (read, begun) = (BytesRead::default(), Instant::now());
    let mut task = screen.task("bytes of PGN", total);
    for path in &args.pgn {
        let ended = each_game(path, &read, |game| {
            let flow = work.take(game)?;
            let (games, positions) = (work.output.games(), work.positions());
            let rate = positions as f64 / begun.elapsed().as_secs_f64();
            let (games, evaluated) = (quantity(games, "game"), quantity(positions, "position"));
            task.at(
                read.load(Ordering::Relaxed),
                &format!("{games}; {evaluated} evaluated, {rate:.0}/s"),
            );
            Ok(match flow {
                ControlFlow::Continue(()) => shutdown.flow(),
                end => end,
            })
        })?;
        if ended == Ended::Stopped || shutdown.is_requested() {
            break;
        }
    }
    drop(task);
    if shutdown.is_requested() {
        tracing::info!(
            "stopped after {}; the same command goes on from there",
            quantity(work.output.games(), "game")
        );
        return Ok(());
    }
    work.round()?;
    for (reason, count) in &work.skipped {
        tracing::info!("{}", reason.line(*count));
    }
    files::finish(&part, &args.output)
        .with_context(|| format!("cannot write {}", args.output.display()))?;
    tracing::info!(
        "wrote {} to {}; {} evaluated",
        quantity(work.output.games(), "game"),
        args.output.display(),
        quantity(work.positions(), "position")
    );
    Ok(())
}

/// Where games are written before all are done.
fn part_of(output: &Path) -> PathBuf {
    let mut name = OsString::from(output);
    name.push(".part");
    name.into()
}

/// Engines at work, a round of games at a time.
struct Work {
    engines: Vec<Annotator>,
    output: AnnotatedGames,
    waiting: Vec<PgnGame>,
    /// Games that an earlier session has done and this one has not met yet.
    passed: u64,
    skipped: BTreeMap<Skipped, u64>,
    most: u64,
}

impl Work {
    fn take(&mut self, game: Result<PgnGame, Skipped>) -> anyhow::Result<ControlFlow<()>> {
        match game {
            Ok(_) if self.passed > 0 => self.passed -= 1,
            Ok(_) if self.output.games() + self.waiting.len() as u64 >= self.most => {
                return Ok(ControlFlow::Break(()));
            }
            Ok(game) => self.waiting.push(game),
            Err(reason) => *self.skipped.entry(reason).or_default() += 1,
        }
        if self.waiting.len() >= ROUND * self.engines.len() {
            self.round()?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Positions that were evaluated in this session, those of strays among them.
    fn positions(&self) -> u64 {
        self.engines.iter().map(Annotator::positions).sum()
    }

    /// Annotates the games that wait, and writes them in their order.
    fn round(&mut self) -> anyhow::Result<()> {
        let games = std::mem::take(&mut self.waiting);
        let texts = side_by_side(&mut self.engines, &games, Annotator::annotate)?;
        self.output.add(&texts)
    }
}

#[cfg(test)]
mod tests;
