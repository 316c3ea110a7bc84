//! `warm-start`: train a network on games of people and engines.

mod report;
mod session;

use std::path::PathBuf;

use super::flags::{DeviceArgs, TrainingArgs};
use crate::warm::Filter;
use crate::warm::stream::Plan;
use rookery_cli::Screen;
use rookery_cli::Shutdown;
use rookery_cli::flags::{OutputArgs, share};
use rookery_cli::network_file;
use rookery_cli::pgn::total_bytes;
use session::WarmSession;

/// Flags of `warm-start`.
#[derive(Debug, clap::Args)]
pub struct WarmStartArgs {
    /// PGN files, plain, gzip or zstd.
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub pgn: Vec<PathBuf>,
    /// The network to begin with.
    #[arg(long, value_name = "FILE")]
    pub network: PathBuf,
    /// Write the trained network to this file.
    #[arg(short, long, value_name = "FILE", required_unless_present = "dry_run")]
    pub output: Option<PathBuf>,
    /// Whether it may replace one; a warm start that goes on replaces its own, if --output is the same.
    #[command(flatten)]
    pub replace: OutputArgs,
    /// Keep checkpoints in this folder; a warm start that was stopped, in any way, resumes
    /// from there with the same batches. [default: none are kept]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Only read and encode the games, and say what they hold.
    #[arg(long)]
    pub dry_run: bool,
    /// End after this many optimiser steps. [default: when all games have been read]
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// Read the files this many times.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub epochs: u32,
    /// Pass over games in which a player is rated lower.
    #[arg(long, value_name = "ELO", default_value_t = 0.0)]
    pub min_elo: f64,
    /// Take this as the rating of players without one. [default: such games are passed over]
    #[arg(long, value_name = "ELO")]
    pub assume_elo: Option<f64>,
    /// Plies from the start of each game that are not trained on.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip_plies: u32,
    /// Train on at most this many positions of a game, chosen at random.
    #[arg(long, value_name = "N")]
    pub plies: Option<u32>,
    /// Hold this share of the games out of training, to measure on.
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, value_parser = share)]
    pub held_out: f64,
    /// Positions that are shuffled together; two such blocks are in memory, at about a kilobyte a
    /// position.
    #[arg(long, value_name = "POSITIONS", default_value_t = 65_536)]
    pub block: usize,
    /// The parameters of training.
    #[command(flatten)]
    pub training: TrainingArgs,
    /// Train on this share of the positions mirrored, files a to h as h to a, if neither side may
    /// castle. [default: the parameters' mirror-share]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub mirror: Option<f64>,
    /// The seed of all random draws.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Seconds between checkpoints.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub checkpoint_every: u64,
    /// Append losses to this file, a JSON object a line.
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Where to train.
    #[command(flatten)]
    pub device: DeviceArgs,
}

impl WarmStartArgs {
    fn plan(&self) -> anyhow::Result<Plan> {
        anyhow::ensure!(self.block > 0, "--block is a number above 0");
        Ok(Plan {
            files: self.pgn.clone(),
            epochs: self.epochs,
            filter: Filter {
                min_elo: self.min_elo,
                assumed_elo: self.assume_elo,
                skip_plies: self.skip_plies,
                positions_per_game: self.plies,
            },
            held_out: self.held_out,
            block: self.block,
            seed: self.seed,
        })
    }
}

/// Trains, or only reads.
///
/// # Errors
///
/// If a file cannot be read or written, there is nothing to train on, or training diverges.
pub fn execute(args: &WarmStartArgs, screen: &Screen, shutdown: &Shutdown) -> anyhow::Result<()> {
    let total = total_bytes(&args.pgn)?.saturating_mul(u64::from(args.epochs));
    let (parent, weights) = network_file::read_hashed(&args.network)?;
    let compute = args.device.open()?;
    let mut session = WarmSession::begin(args, shutdown, parent, &weights, compute)?;
    let stream = session.stream(weights.spec())?;
    let mut task = screen.task("bytes of PGN", total);
    let mut is_over = false;
    while !is_over && let Some(read) = stream.next_block()? {
        is_over = session.take(read, &stream, &mut task)?;
    }
    drop(task);
    drop(stream);
    session.finish(is_over)
}

#[cfg(test)]
mod tests;
