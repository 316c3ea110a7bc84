//! From the command line to the commands.

use std::process::ExitCode;

use anyhow::Context as _;
use rookery_common::command_line::keep_files_private;
use rookery_common::logging;
use rookery_common::terminal::progress_bars;

use crate::cli::{Cli, Command};
use crate::config::{ConfigFile, Settings};
use crate::{bench, devices, evaluate, run, serve_device, setup, uci};

/// Does what the command line says.
///
/// # Errors
///
/// What the user has to know, with its causes.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    // What these write is where the user says, for whom the user says.
    if !matches!(cli.command, Command::Encode(_) | Command::Evaluate(_)) {
        keep_files_private();
    }
    let screen = progress_bars();
    let named = cli.global.config.as_deref();
    let mut file = match cli.command {
        // These need no settings: a broken file does not stop them.
        Command::Devices(_) | Command::Encode(_) | Command::Setup(_) => ConfigFile::default(),
        _ => ConfigFile::load(named)?,
    };
    if let Some(path) = cli.global.device_token_file.clone() {
        file.device_token_file = Some(path);
    }
    if let Some(path) = cli.global.device_ca.clone() {
        file.device_ca = Some(path);
    }
    let log = cli.global.log.clone().or_else(|| file.log.clone());
    let format = cli
        .global
        .log_format
        .or(file.log_format)
        .unwrap_or_default();
    // Chess programs show what an engine logs as if it were a failure.
    let quiet = matches!(cli.command, Command::Uci(_));
    let level = if quiet { "warn" } else { "info" };
    logging::start(log.as_deref().unwrap_or(level), format, &screen)?;
    match cli.command {
        Command::Run(args) => {
            let settings = Settings::resolve(args, &file)?;
            runtime()?.block_on(run::run(settings, screen))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Setup(args) => {
            runtime()?.block_on(setup::run(args, named))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Bench(args) => {
            bench::run(&args, &file, &runtime()?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Evaluate(args) => evaluate::run(&args, &file, &runtime()?),
        Command::Uci(args) => {
            uci::run(args, file, runtime()?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Devices(args) => {
            devices::run(args)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::ServeDevice(args) => {
            serve_device::run(args, &file, &runtime()?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Encode(args) => rookery_analysis::encode::run(&args),
    }
}

/// The threads that talk to the network; playing has its own.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("the program cannot start its network threads")
}
