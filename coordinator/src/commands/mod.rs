//! The commands: each opens what it needs, does one thing and returns.

pub mod chunk;
pub mod ledger;
pub mod puzzles;
pub mod run;
pub mod serve;
pub mod user;

use std::io::Write as _;
use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::config::Settings;

/// Does what the command line asks for.
///
/// # Errors
///
/// Whatever went wrong, with the context in which it did.
pub async fn run(cli: Cli) -> anyhow::Result<()> {
    let settings = Settings::load(&cli.global)?;
    match cli.command {
        Command::Serve(args) => serve::run(&settings, args).await,
        Command::Migrate => serve::migrate(&settings).await,
        Command::User(command) => user::run(&settings, command).await,
        Command::Run(command) => run::run(&settings, command).await,
        Command::Puzzles(command) => puzzles::run(&settings, command).await,
        Command::Chunk(command) => chunk::run(&settings, command).await,
        Command::Ledger(command) => ledger::run(&settings, command).await,
    }
}

/// Writes an error and its causes to standard error.
pub fn report(error: &anyhow::Error) -> ExitCode {
    // Standard error may be closed; there is nobody left to tell then.
    let _ = writeln!(std::io::stderr(), "rookery-coordinator: {error:#}");
    ExitCode::FAILURE
}
