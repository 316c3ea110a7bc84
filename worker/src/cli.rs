//! The command line: what is written there, before it is merged with variables and file.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use rookery_analysis::{encode, evaluate};
use rookery_common::command_line::{LogFormat, SHARED};
use rookery_common::signing::RunKey;

use crate::api::Server;
use crate::priority::Priority;

/// The volunteer's program: plays chess games on this machine for a Rookery coordinator, so that
/// networks can be trained from them. Start with `setup`, then `run`.
#[derive(Debug, Parser)]
#[command(name = "rookery-worker", version)]
pub struct Cli {
    /// Settings that apply to every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Settings that apply to every command.
#[derive(Debug, Clone, Default, Args)]
pub struct GlobalArgs {
    /// Read settings from this TOML file. Without the flag, ~/.config/rookery/worker.toml is read
    /// if it is there.
    #[arg(long, global = true, help_heading = SHARED, env = "ROOKERY_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What to log: a level (error, warn, info, debug, trace) or a filter such as
    /// `info,hyper=warn`. [default: info]
    #[arg(long, global = true, help_heading = SHARED, env = "ROOKERY_LOG", value_name = "FILTER")]
    pub log: Option<String>,
    /// Log as plain lines or as one JSON object a line. [default: plain]
    #[arg(long, global = true, help_heading = SHARED, env = "ROOKERY_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// The file with the token of the device that `serve-device` offers or `--device remote://…` uses, 16 characters
    /// or more. [default: none, which serves this machine's programs only]
    #[arg(long, global = true, help_heading = SHARED, env = "ROOKERY_DEVICE_TOKEN_FILE", value_name = "FILE")]
    pub device_token_file: Option<PathBuf>,
    /// Trust the certificates in this PEM file of a device at `--device remotes://…`: its own certificate, or that of
    /// the authority that has signed it. [default: the system's authorities]
    #[arg(long, global = true, help_heading = SHARED, env = "ROOKERY_DEVICE_CA", value_name = "FILE")]
    pub device_ca: Option<PathBuf>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Play for a coordinator until stopped. The first Ctrl-C finishes and uploads the games in
    /// hand, the second stops at once.
    #[command(
        before_help = "Example: rookery-worker run --server https://rookery.example.org --name your-name"
    )]
    Run(RunArgs),
    /// Ask for the coordinator and a name, try both by registering there, and write the configuration file.
    Setup(SetupArgs),
    /// Measure how fast this machine evaluates and plays, find the best number of games at once and a GPU's fastest kernels,
    /// and keep them for `run`.
    ///
    /// `run` tunes a GPU's kernels by itself at the first use of a network's shape. `bench` tunes them anew, as after a change
    /// of the machine; a new driver or version is noticed without it. The results are in gpu-tuning.json in --dir.
    ///
    /// Games per hour = positions per second / mean game length. Until as many games have ended as are
    /// played at once, 100 positions a game are assumed.
    Bench(BenchArgs),
    /// Show what a network thinks of a position.
    Evaluate(EvaluateArgs),
    /// Be a chess engine for graphical interfaces, tournament managers and bots: speaks UCI on
    /// standard input and output.
    Uci(UciArgs),
    /// List what this machine can compute on, with the names that --device takes, the kernels of GPUs that were fastest,
    /// and the speeds that `bench` measured.
    Devices(DevicesArgs),
    /// Offer this machine's device to other machines, which use it with `--device remote://HOST:PORT`. One GPU serves
    /// the whole house. Only the greeting is protected by the token: for networks that you trust. With a certificate
    /// everything is encrypted, and the device is used with `--device remotes://HOST:PORT`.
    #[command(
        before_help = "Example: rookery-worker serve-device --listen 0.0.0.0:7750 --device-token-file token"
    )]
    ServeDevice(ServeDeviceArgs),
    /// Show how positions and moves are encoded. Reads one position a line: a FEN or `startpos`,
    /// and if wanted `moves` and moves in UCI.
    Encode(encode::EncodeArgs),
}

/// Which coordinator.
#[derive(Debug, Clone, Default, Args)]
pub struct ServerArgs {
    /// The coordinator's address, for example https://rookery.example.org.
    #[arg(
        long,
        env = "ROOKERY_SERVER",
        value_name = "URL",
        hide_env_values = true
    )]
    pub server: Option<Server>,
    /// The run to work for, or to take networks from. [default: what the coordinator chooses]
    #[arg(long, env = "ROOKERY_RUN", value_name = "NAME")]
    pub run: Option<String>,
    /// Keep the token, networks and unsent games in this folder. It is created if it is missing.
    /// [default: ~/.local/share/rookery]
    #[arg(long, env = "ROOKERY_WORKER_DIR", value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Where and how to compute.
#[derive(Debug, Clone, Default, Args)]
pub struct ComputeArgs {
    /// Compute on this device: cpu, gpu or gpu:N (`devices` lists them), several GPUs as gpu:0,gpu:1 or gpu:all, auto (the
    /// fastest single one, or a GPU and the processor together if both gain, measured once and remembered), remote://HOST:PORT (what `serve-device` offers there; remotes:// by TLS), and with
    /// libtorch cuda, cuda:N or mps. [default: auto]
    #[arg(long, env = "ROOKERY_DEVICE", value_name = "DEVICE")]
    pub device: Option<String>,
    /// Compute in this precision: f32, f16 on a GPU that has it, auto (the fastest, measured once and remembered),
    /// measure (the same, measured again), and with libtorch bf16. [default: auto]
    #[arg(long, env = "ROOKERY_PRECISION", value_name = "KIND")]
    pub precision: Option<String>,
    /// Play with this many threads, at least one for each GPU. [default: all cores on a CPU, 2 on each GPU]
    #[arg(long, env = "ROOKERY_THREADS", value_name = "N")]
    pub threads: Option<usize>,
    /// Play this many games at once, all threads together. [default: what `bench` found best here;
    /// without that 64 a thread on a CPU, 512 a thread on a GPU]
    #[arg(long, env = "ROOKERY_GAMES", value_name = "N")]
    pub games: Option<usize>,
    /// Let each GPU compute for at most this share of the time, 0.01 to 1. It idles between batches, which leaves
    /// the card to other programs. [default: 1]
    #[arg(long, env = "ROOKERY_GPU_SHARE", value_name = "SHARE")]
    pub gpu_share: Option<f64>,
    /// Let GPUs use cooperative matrices (tensor cores) in 16 bits: auto (only with NVIDIA's own driver, tested
    /// on one card), on (with every driver that has them) or off. [default: auto]
    #[arg(long, env = "ROOKERY_GPU_MATRICES", value_name = "WHEN")]
    pub gpu_matrices: Option<String>,
}

/// Flags of `run`.
#[derive(Debug, Clone, Default, Args)]
pub struct RunArgs {
    /// Which coordinator.
    #[command(flatten)]
    pub server: ServerArgs,
    /// Where and how to compute.
    #[command(flatten)]
    pub compute: ComputeArgs,
    /// Use this token instead of registering. Other users of the machine see a command line: better give
    /// --token-file or ROOKERY_TOKEN.
    #[arg(
        long,
        env = "ROOKERY_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub token: Option<String>,
    /// Use the token in this file instead of registering.
    #[arg(long, env = "ROOKERY_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Register with this invitation, where the coordinator takes contributors by invitation only.
    #[arg(
        long,
        env = "ROOKERY_INVITATION",
        value_name = "CODE",
        hide_env_values = true
    )]
    pub invitation: Option<String>,
    /// Play only with networks that are signed by this key (the coordinator's `run key show`), or
    /// by one that follows it. [default: the first key that the coordinator names]
    #[arg(long, env = "ROOKERY_RUN_KEY", value_name = "KEY")]
    pub run_key: Option<RunKey>,
    /// Be known by this name on the coordinator's pages: 1 to 32 letters, digits, `_` and `-`.
    /// It is registered at the first start. [default: anonymous and six digits]
    #[arg(long, env = "ROOKERY_NAME", value_name = "NAME")]
    pub name: Option<String>,
    /// The worker's name on the pages, to tell your machines apart. [default: the machine's name]
    #[arg(long, env = "ROOKERY_WORKER", value_name = "NAME")]
    pub worker: Option<String>,
    /// Upload the finished games of a long job at this interval, and those of a match at least every
    /// minute. [default: 5]
    #[arg(long, env = "ROOKERY_CHUNK_MINUTES", value_name = "MINUTES")]
    pub chunk_minutes: Option<f64>,
    /// Let people watch: send the moves of one game of each job with the heartbeats. The run's page shows it
    /// with your name, while it is played.
    #[arg(long, env = "ROOKERY_SHARE_LIVE")]
    pub share_live: bool,
    /// End after this many jobs. [default: never]
    #[arg(long, value_name = "N")]
    pub max_jobs: Option<u32>,
    /// Play for this many minutes; then finish the games in hand, upload them and end, as after Ctrl-C.
    /// [default: until stopped]
    #[arg(long, value_name = "MINUTES")]
    pub minutes: Option<f64>,
    /// The priority of the threads that play. [default: low]
    #[arg(long, env = "ROOKERY_PRIORITY", value_name = "PRIORITY")]
    pub priority: Option<Priority>,
    /// What may end games early.
    #[command(flatten)]
    pub judges: JudgeArgs,
}

/// What may end games early, in runs that want it.
#[derive(Debug, Clone, Default, Args)]
pub struct JudgeArgs {
    /// Use the Syzygy endgame tables in these folders, separated by commas: runs that want it end
    /// games by them. [default: none, games are played on]
    #[arg(
        long,
        env = "ROOKERY_SYZYGY",
        value_delimiter = ',',
        value_name = "FOLDERS"
    )]
    pub syzygy: Vec<PathBuf>,
    /// Ask this UCI engine, a path or a name such as stockfish, about games that seem decided: runs
    /// that want it end them if it agrees. [default: none, games are played on]
    #[arg(long, env = "ROOKERY_ADJUDICATOR", value_name = "PROGRAM")]
    pub adjudicator: Option<PathBuf>,
}

/// Flags of `setup`; what is not given is asked for.
#[derive(Debug, Clone, Default, Args)]
pub struct SetupArgs {
    /// The coordinator's address, for example rookery.example.org, or that of one of its pages.
    #[arg(
        long,
        env = "ROOKERY_SERVER",
        value_name = "URL",
        hide_env_values = true
    )]
    pub server: Option<String>,
    /// Keep the token, networks and unsent games in this folder. [default: ~/.local/share/rookery]
    #[arg(long, env = "ROOKERY_WORKER_DIR", value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The name to be known by on the coordinator's pages.
    #[arg(long, env = "ROOKERY_NAME", value_name = "NAME")]
    pub name: Option<String>,
    /// Register with this invitation, where the coordinator takes contributors by invitation only.
    #[arg(
        long,
        env = "ROOKERY_INVITATION",
        value_name = "CODE",
        hide_env_values = true
    )]
    pub invitation: Option<String>,
    /// Take defaults instead of asking.
    #[arg(long)]
    pub yes: bool,
}

/// Flags of `bench`.
#[derive(Debug, Clone, Default, Args)]
pub struct BenchArgs {
    /// The network: a file, `small` (comes with Rookery), a shape such as 6x64 (random weights), or, with a
    /// coordinator, a number, `best` or a SHA-256.
    #[arg(long, default_value = "6x64", value_name = "NETWORK")]
    pub network: String,
    /// Which coordinator.
    #[command(flatten)]
    pub server: ServerArgs,
    /// Where and how to compute.
    #[command(flatten)]
    pub compute: ComputeArgs,
    /// Visits of each move in self-play. [default: 100, or what --params says]
    #[arg(long, value_name = "N")]
    pub visits: Option<u32>,
    /// Play as the `selfplay` section of this file says, a run's parameters in TOML or JSON.
    #[arg(long, value_name = "FILE")]
    pub params: Option<PathBuf>,
    /// Seconds for each measurement.
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    pub seconds: f64,
    /// Batch sizes of the bare measurement, separated by commas. With this or with --games nothing
    /// is remembered. [default: powers of two as far as they are worth trying]
    #[arg(long, value_delimiter = ',', value_name = "SIZES")]
    pub batches: Vec<usize>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// Flags of `evaluate`.
#[derive(Debug, Clone, Default, Args)]
pub struct EvaluateArgs {
    /// The network: a file, `small` (comes with Rookery), a shape such as 6x64 (random weights), or, with a
    /// coordinator, a number, `best` or a SHA-256.
    /// [default: best where a coordinator is given or in the configuration file, else small]
    #[arg(long, value_name = "NETWORK")]
    pub network: Option<String>,
    /// Which coordinator.
    #[command(flatten)]
    pub server: ServerArgs,
    /// Compute on this device: auto, cpu, gpu, gpu:N, remote://HOST:PORT (what `serve-device` offers there; remotes:// by TLS), and with
    /// libtorch cuda, cuda:N or mps. [default: auto]
    #[arg(long, env = "ROOKERY_DEVICE", value_name = "DEVICE")]
    pub device: Option<String>,
    /// Compute in this precision: auto (the fastest), f32, f16 on a GPU that has it, and with libtorch bf16.
    #[arg(
        long,
        env = "ROOKERY_PRECISION",
        default_value = "f32",
        value_name = "KIND"
    )]
    pub precision: String,
    /// Which position, and what is shown of it.
    #[command(flatten)]
    pub question: evaluate::Question,
}

/// Flags of `uci`; a chess program can change all but the coordinator by options.
#[derive(Debug, Clone, Args)]
pub struct UciArgs {
    /// The network: a file, `small` (comes with Rookery), a shape such as 6x64 (random weights), or, with a
    /// coordinator, a number, `best` or a SHA-256.
    /// [default: best where a coordinator is given or in the configuration file, else small]
    #[arg(long, value_name = "NETWORK")]
    pub network: Option<String>,
    /// Which coordinator.
    #[command(flatten)]
    pub server: ServerArgs,
    /// Compute on this device: auto, cpu, gpu, gpu:N, remote://HOST:PORT (what `serve-device` offers there; remotes:// by TLS), and with
    /// libtorch cuda, cuda:N or mps. [default: auto]
    #[arg(long, env = "ROOKERY_DEVICE", value_name = "DEVICE")]
    pub device: Option<String>,
    /// Compute in this precision: auto (the fastest), f32, f16 on a GPU that has it, and with libtorch bf16.
    /// [default: auto]
    #[arg(long, env = "ROOKERY_PRECISION", value_name = "KIND")]
    pub precision: Option<String>,
    /// Without a GPU, compute a batch with this many processor threads. [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: Option<u32>,
}

/// Flags of `devices`.
#[derive(Debug, Clone, Default, Args)]
pub struct DevicesArgs {
    /// Show what was measured for the worker that keeps its files in this folder. [default: ~/.local/share/rookery]
    #[arg(long, env = "ROOKERY_WORKER_DIR", value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Flags of `serve-device`.
#[derive(Debug, Clone, Args)]
pub struct ServeDeviceArgs {
    /// Listen on this address. Another than this machine's own needs a token.
    #[arg(
        long,
        env = "ROOKERY_DEVICE_LISTEN",
        default_value = "127.0.0.1:7750",
        value_name = "ADDRESS"
    )]
    pub listen: SocketAddr,
    /// Speak TLS with the certificates in this PEM file. It is read again when it changes and on SIGHUP.
    /// [default: plain TCP]
    #[arg(long, env = "ROOKERY_DEVICE_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the certificate, a PEM file.
    #[arg(long, env = "ROOKERY_DEVICE_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Offer this device: cpu, gpu or gpu:N (`devices` lists them), auto (the fastest of these, measured now), and with
    /// libtorch cuda, cuda:N or mps. [default: auto]
    #[arg(long, env = "ROOKERY_DEVICE", value_name = "DEVICE")]
    pub device: Option<String>,
    /// Compute in this precision: f32, f16 on a GPU that has it, auto, and with libtorch bf16. [default: auto]
    #[arg(long, env = "ROOKERY_PRECISION", value_name = "KIND")]
    pub precision: Option<String>,
    /// Compute each batch by this many threads of a processor, or this many batches at once on a GPU. [default: all
    /// cores of a processor, 2 on a GPU]
    #[arg(long, env = "ROOKERY_THREADS", value_name = "N")]
    pub threads: Option<usize>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_flag_has_a_sentence_of_help() {
        for command in Cli::command().get_subcommands() {
            for flag in command.get_arguments() {
                let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.len() > 10, "{} {}", command.get_name(), flag.get_id());
            }
        }
    }

    #[test]
    fn help_begins_with_what_is_the_commands_own() {
        let mut program = Cli::command();
        program.build();
        for command in program.get_subcommands_mut() {
            let name = command.get_name().to_owned();
            if name == "help" {
                continue;
            }
            let help = command.render_long_help().to_string();
            let (own, shared) = help.split_once("\nOptions of every command:").unwrap();
            for flag in ["--config", "--log", "--log-format"] {
                let line = format!("      {flag} <");
                assert!(
                    !own.contains(&line) && shared.contains(&line),
                    "{name} {flag}: {help}"
                );
            }
        }
    }

    #[test]
    fn unknown_encodings_list_the_known_ones() {
        let error = Cli::try_parse_from(["rookery-worker", "encode", "--input", "x"]).unwrap_err();
        assert!(error.to_string().contains("classic-19"), "{error}");
    }
}
