//! One module for each command: its flags, and what it does.

pub mod annotate;
pub mod bench;
pub mod export;
pub mod import;
pub mod init;
pub mod judge;
pub mod ladder;
pub mod matches;
pub mod run;
pub mod submit;
pub mod train;
pub mod warm_start;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_common::ids::RunName;
use rookery_common::params::RunParams;
use rookery_nn::{DeviceChoice, Precision};

use crate::api::{Client, Token};
use crate::cli::{Cli, Command};
use crate::config::ConfigFile;
use crate::learner::Place;
use crate::screen::Screen;
use crate::shutdown::Shutdown;

/// Where a coordinator on the same machine listens.
const DEFAULT_SERVER: &str = "http://127.0.0.1:8080";

/// The run that the guides create.
const DEFAULT_RUN: &str = "main";

/// Runs the command that the user asked for.
///
/// # Errors
///
/// What went wrong, for people.
pub fn execute(cli: Cli) -> anyhow::Result<()> {
    let screen = Screen::set_up(&cli.log, cli.log_format)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start the threads for the network")?;
    let result = runtime.block_on(async {
        let shutdown = Shutdown::on_signals();
        match cli.command {
            Command::Run(args) => run::execute(args, screen, shutdown).await,
            Command::Init(args) => init::execute(args, shutdown).await,
            Command::Train(args) => train::execute(&args, &screen, &shutdown),
            Command::WarmStart(args) => warm_start::execute(&args, &screen, &shutdown),
            Command::Annotate(args) => annotate::execute(&args, &screen, &shutdown),
            Command::Match(args) => matches::execute(&args, &screen, &shutdown),
            Command::Ladder(args) => ladder::execute(&args, &screen, &shutdown),
            Command::Judge(args) => judge::execute(&args, &screen, &shutdown),
            Command::Bench(args) => bench::execute(&args),
            Command::Import(args) => import::execute(&args),
            Command::Submit(args) => submit::execute(args, shutdown).await,
            Command::Export(args) => export::execute(&args),
        }
    });
    // Whatever still waits for a coordinator must not hold the end up.
    runtime.shutdown_background();
    result
}

/// Where to compute.
#[derive(Debug, Clone, clap::Args)]
pub struct DeviceArgs {
    /// Compute on this device: auto, cpu, cuda, cuda:N or mps.
    #[arg(long, env = "ROOKERY_DEVICE", default_value = "auto")]
    pub device: DeviceChoice,
    /// Compute in these numbers: auto, f32, bf16 or f16. In training, auto is bf16 on GPUs and on
    /// processors with instructions for it.
    #[arg(long, default_value = "auto")]
    pub precision: Precision,
    /// Let libtorch use this many processor threads. [default: all]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

impl DeviceArgs {
    /// Opens the device.
    ///
    /// # Errors
    ///
    /// If it is not there or does not work.
    pub fn open(&self) -> anyhow::Result<Place> {
        if let Some(threads) = self.threads {
            rookery_nn::use_threads(threads);
        }
        let device = self.device.open()?;
        Ok(Place {
            device,
            precision: self.precision,
        })
    }
}

impl DeviceArgs {
    /// Threads that play `games` side by side, and libtorch set up for them: on a processor each
    /// computes by itself, which is faster than all of them on one batch; a GPU gets one thread
    /// with large batches.
    fn playing_threads(&self, place: Place, games: usize) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if place.device.is_cpu() {
            self.threads.unwrap_or_else(cores)
        } else {
            1
        };
        rookery_nn::use_threads(1);
        threads.clamp(1, games.max(1))
    }
}

/// What becomes of a file that is already where a network is to be written.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct OutputArgs {
    /// Replace the file that is to be written, if there is one already.
    #[arg(long)]
    pub force: bool,
}

impl OutputArgs {
    /// Whether the file may be written; asked before the work that it is to hold is done.
    ///
    /// # Errors
    ///
    /// If there is such a file, and `--force` is not given.
    pub fn check(self, path: &Path) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.force || std::fs::symlink_metadata(path).is_err(),
            "{} is there already; name another file, or give --force to replace it",
            path.display()
        );
        Ok(())
    }
}

/// The parameters of a run, from its file.
///
/// # Errors
///
/// If it cannot be read, or what it says is not valid.
fn run_params(path: &Path) -> anyhow::Result<RunParams> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read the parameters {}", path.display()))?;
    RunParams::from_text(&text)
        .with_context(|| format!("the parameters in {} are not valid", path.display()))
}

/// A network file's name without folder and ending.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let endings = [".pb.gz", ".pb", ".safetensors"];
    let bare = endings.iter().find_map(|ending| name.strip_suffix(ending));
    bare.unwrap_or(&name).to_owned()
}

/// Which coordinator and run.
#[derive(Debug, Clone, clap::Args)]
pub struct ServerArgs {
    /// Read settings from this TOML file: server, token-file, run and dir. Without the flag,
    /// trainer.toml in the working directory is read if it is there.
    #[arg(long, env = "ROOKERY_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The coordinator's address, for example https://chess.example.org.
    /// [default: http://127.0.0.1:8080]
    #[arg(long, env = "ROOKERY_SERVER", value_name = "URL")]
    pub server: Option<String>,
    /// A token with the scope `train`; better given as ROOKERY_TOKEN, where other users of the
    /// machine do not see it.
    #[arg(
        long,
        env = "ROOKERY_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub token: Option<String>,
    /// The run's name. [default: main]
    #[arg(long, env = "ROOKERY_RUN", value_name = "NAME")]
    pub run: Option<RunName>,
}

impl ServerArgs {
    /// The configuration file.
    ///
    /// # Errors
    ///
    /// If it was named and cannot be read, or is not valid.
    pub fn file(&self) -> anyhow::Result<ConfigFile> {
        ConfigFile::load(self.config.as_deref())
    }

    /// A client for the coordinator that flags, environment and file name.
    ///
    /// # Errors
    ///
    /// If the address is none, or there is no token or it cannot be read: every command that asks a
    /// coordinator needs one, and it is better said before the work than after.
    pub fn client(&self, file: &ConfigFile, shutdown: Shutdown) -> anyhow::Result<Client> {
        let server = self.server.as_ref().or(file.server.as_ref());
        let server = server.map_or(DEFAULT_SERVER, String::as_str);
        let token = match self.token.as_ref().filter(|token| !token.is_empty()) {
            Some(token) => Some(token.clone()),
            None => file.token()?,
        };
        let token = token.context(
            "there is no token: set ROOKERY_TOKEN to one with the scope `train`, which the \
             coordinator's operator makes (rookery-coordinator user create NAME --scope train)",
        )?;
        let run = match self.run.as_ref().or(file.run.as_ref()) {
            Some(run) => run.clone(),
            None => DEFAULT_RUN.parse()?,
        };
        Client::new(server, Some(Token::from(token)), run, shutdown)
    }
}

/// A number from 0 to 1.
///
/// # Errors
///
/// If the text is none.
pub fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write a number from 0 to 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_token_is_said_at_once_and_how_to_get_one() {
        for token in [None, Some(String::new())] {
            let args = ServerArgs {
                config: None,
                server: None,
                token,
                run: None,
            };
            let client = args.client(&ConfigFile::default(), Shutdown::default());
            let error = client.unwrap_err().to_string();
            assert!(error.contains("ROOKERY_TOKEN"), "{error}");
            assert!(error.contains("--scope train"), "{error}");
        }
    }
}
