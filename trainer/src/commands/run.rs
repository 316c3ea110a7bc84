//! `run`: train candidates for a coordinator until stopped.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use rookery_common::signing::SigningKey;

use super::flags::{DeviceArgs, ServerArgs};
use crate::session::{self, FirstNetwork, OnRejection, SessionContext, Settings};
use crate::warm::{Filter, Library};
use rookery_cli::Screen;
use rookery_cli::Shutdown;
use rookery_cli::flags::{positive, share};

/// The folder, unless another is named.
const DEFAULT_DIR: &str = "rookery-trainer";

/// Flags of `run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The coordinator.
    #[command(flatten)]
    pub server: ServerArgs,
    /// Keep chunks, checkpoints, candidates and the log in this folder. A trainer that was stopped,
    /// in whatever way, goes on from there. [default: rookery-trainer]
    #[arg(long, env = "ROOKERY_TRAINER_DIR", value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// If the run has no network yet, begin it with random weights of this shape, blocks x filters,
    /// for example 6x64.
    #[arg(long, value_name = "SHAPE", conflicts_with = "network")]
    pub init: Option<String>,
    /// If the run has no network yet, begin it with this file, of Rookery or of Lc0 (.pb.gz).
    #[arg(long, value_name = "FILE")]
    pub network: Option<PathBuf>,
    /// Sign the networks with the secret key in this file (`rookery-coordinator run key create
    /// --secret FILE`). Only where the coordinator does not sign by itself.
    #[arg(long, env = "ROOKERY_SIGNING_KEY", value_name = "FILE")]
    pub signing_key: Option<PathBuf>,
    /// Train on from these weights after a candidate was rejected, or demoted because an earlier
    /// network is stronger.
    #[arg(long, value_enum, default_value_t)]
    pub on_rejection: OnRejection,
    /// The seed of the first network and of all sampling.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Hold this share of the chunks out of training, to measure losses on them.
    #[arg(long, value_name = "SHARE", default_value_t = 0.03, value_parser = share)]
    pub held_out: f64,
    /// Train on no position more often than this, on average; candidates get fewer steps where too
    /// few new positions arrive.
    #[arg(long, value_name = "TIMES", default_value_t = 20.0, value_parser = positive)]
    pub max_reuse: f64,
    /// Train on chunks only when they are this many minutes old, so that audits come first. Where an operator's
    /// auditor works, 10 minutes keep out nearly all false chunks; where volunteers alone audit, 60. 0 trains on every chunk
    /// at once.
    #[arg(
        long,
        env = "ROOKERY_CHUNK_DELAY",
        value_name = "MINUTES",
        default_value_t = 0
    )]
    pub chunk_delay: u32,
    /// Mix the games of these PGN files, plain, gzip or zstd, into every batch. They are read once and
    /// kept in the trainer's folder.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub pgn: Vec<PathBuf>,
    /// The share of every batch that the games of --pgn get.
    #[arg(long, value_name = "SHARE", default_value_t = 0.2, value_parser = share)]
    pub pgn_share: f64,
    /// Pass over games of --pgn in which a player is rated lower.
    #[arg(long, value_name = "ELO", default_value_t = 0.0)]
    pub pgn_min_elo: f64,
    /// Take this as the rating of players without one. [default: such games are passed over]
    #[arg(long, value_name = "ELO")]
    pub pgn_assume_elo: Option<f64>,
    /// Threads that encode positions ahead of the device.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub encode_threads: usize,
    /// Seconds between checkpoints while training.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub checkpoint_every: u64,
    /// Seconds between questions to the coordinator while waiting.
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0, value_parser = positive)]
    pub poll_every: f64,
    /// End after this many verdicts of gates. [default: go on until stopped]
    #[arg(long, value_name = "N")]
    pub candidates: Option<u32>,
    /// Serve the newest measurements for Prometheus at http://ADDRESS/metrics, for example
    /// 127.0.0.1:9101. [default: not served]
    #[arg(long, env = "ROOKERY_TRAINER_METRICS", value_name = "ADDRESS")]
    pub metrics_listen: Option<std::net::SocketAddr>,
    /// Log as --log-format json does.
    #[arg(long)]
    pub json: bool,
    /// Where to train.
    #[command(flatten)]
    pub device: DeviceArgs,
}

fn read_key(path: &Path) -> anyhow::Result<SigningKey> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("RK-0711: cannot read the signing key {shown}"))?;
    SigningKey::from_text(&text).with_context(|| format!("RK-0712: {shown} is no secret key"))
}

/// Runs the trainer.
///
/// # Errors
///
/// What ended it, unless the user did.
pub async fn execute(args: RunArgs, screen: Screen, shutdown: Shutdown) -> anyhow::Result<()> {
    let file = args.server.file()?;
    let mut client = args.server.client(&file, shutdown.clone())?;
    if let Some(path) = &args.signing_key {
        client = client.with_signing_key(read_key(path)?);
    }
    let compute = args.device.open()?;
    tracing::info!(
        "training on {} for run {}",
        compute.device,
        client.run_name()
    );
    let settings = Settings {
        first: match (args.init, args.network) {
            (Some(shape), _) => FirstNetwork::Shape(shape),
            (None, Some(path)) => FirstNetwork::File(path),
            (None, None) => FirstNetwork::Existing,
        },
        dir: args
            .dir
            .or(file.dir)
            .unwrap_or_else(|| PathBuf::from(DEFAULT_DIR)),
        on_rejection: args.on_rejection,
        seed: args.seed,
        held_out: args.held_out,
        max_reuse: args.max_reuse,
        chunk_delay: Duration::from_secs(60 * u64::from(args.chunk_delay)),
        library: (!args.pgn.is_empty()).then_some(Library {
            files: args.pgn,
            filter: Filter {
                min_elo: args.pgn_min_elo,
                assumed_elo: args.pgn_assume_elo,
                skip_plies: 0,
                positions_per_game: None,
            },
            share: args.pgn_share,
        }),
        encode_threads: args.encode_threads,
        checkpoint_every: Duration::from_secs(args.checkpoint_every),
        poll_every: Duration::from_secs_f64(args.poll_every),
        candidates: args.candidates,
        metrics_listen: args.metrics_listen,
        compute,
    };
    session::run(
        settings,
        SessionContext {
            client,
            screen,
            shutdown,
        },
    )
    .await
}
