//! One module for each command: its flags, and what it does; [`flags`] that several have.

pub mod bench;
pub mod export;
pub mod flags;
pub mod grow;
pub mod import;
pub mod init;
pub mod ladder;
pub mod matches;
pub mod run;
pub mod submit;
pub mod train;
pub mod warm_start;

use anyhow::Context as _;
use rookery_common::command_line::keep_files_private;

use crate::cli::{Cli, Command};
use rookery_cli::Screen;
use rookery_cli::Shutdown;

/// Runs the command that the user asked for.
///
/// # Errors
///
/// What went wrong, for people.
pub fn execute(cli: Cli) -> anyhow::Result<()> {
    // Other commands write networks and games where the user says, for whom the user says.
    if matches!(cli.command, Command::Run(_) | Command::Submit(_)) {
        keep_files_private();
    }
    let screen = Screen::set_up(&cli.logging.log, cli.log_lines())?;
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
            Command::Match(args) => matches::execute(&args, &screen, &shutdown),
            Command::Ladder(args) => ladder::execute(&args, &screen, &shutdown),
            Command::Bench(args) => bench::execute(&args),
            Command::Import(args) => import::execute(&args),
            Command::Submit(args) => submit::execute(args, shutdown).await,
            Command::Export(args) => export::execute(&args),
            Command::Grow(args) => grow::execute(&args),
        }
    });
    // Whatever still waits for a coordinator must not hold the end up.
    runtime.shutdown_background();
    result
}
