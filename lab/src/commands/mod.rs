//! One module for each command: its flags, and what it does; [`flags`] that several have, and players as
//! they are named ([`opponent`]).

pub mod annotate;
pub mod evaluate;
pub mod flags;
pub mod ladder;
pub mod matches;
pub mod opponent;
pub mod play;
pub mod policy_eval;
pub mod probe;
pub mod train;

use std::process::ExitCode;

use anyhow::Context as _;
use rookery_analysis::encode;
use rookery_cli::{Screen, Shutdown};

use crate::cli::{Cli, Command};

/// Runs the command that the user asked for.
///
/// # Errors
///
/// What went wrong, for people.
pub fn execute(cli: Cli) -> anyhow::Result<ExitCode> {
    let screen = Screen::set_up(&cli.logging.log, cli.logging.log_format)?;
    // Commands compute on the main thread; this one listens to Ctrl-C, for those that ask whether it has come. The
    // others end by it as programs do.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start a thread that listens to Ctrl-C")?;
    let shutdown = if cli.command.heeds_shutdown() {
        runtime.block_on(async { Shutdown::on_signals() })
    } else {
        Shutdown::default()
    };
    match cli.command {
        Command::Match(args) => matches::execute(&args, &screen, &shutdown)?,
        Command::Ladder(args) => ladder::execute(&args, &screen, &shutdown)?,
        Command::PolicyEval(args) => policy_eval::execute(&args, &screen, &shutdown)?,
        Command::Annotate(args) => annotate::execute(&args, &screen, &shutdown)?,
        Command::Probe(args) => probe::execute(&args, &screen, &shutdown)?,
        Command::Train(command) => train::execute(&command, &screen, &shutdown)?,
        Command::Play(args) => return play::execute(&args),
        Command::Evaluate(args) => return evaluate::execute(&args),
        Command::Encode(args) => return encode::run(&args),
    }
    Ok(ExitCode::SUCCESS)
}
