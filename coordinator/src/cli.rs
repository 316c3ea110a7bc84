//! The command line: what is written there, and the command that it asks for.

use clap::{Parser, Subcommand};
use rookery_common::command_line::keep_files_private;

use crate::commands::{
    self, chunk, ledger, log, openings, puzzles, run, serve, storage, user, worker,
};
use crate::config::{GlobalArgs, ServeArgs, Settings};

/// The server of a Rookery training effort: it hands out jobs, checks and keeps what workers play,
/// decides matches and shows it all on web pages.
#[derive(Debug, Parser)]
#[command(name = "rookery-coordinator", version)]
pub struct Cli {
    /// Settings that apply to every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API and the pages until stopped.
    Serve(Box<ServeArgs>),
    /// Bring the database to this version's schema and stop. `serve` does the same when it starts.
    Migrate,
    /// Create users, list them, block them, say how far they are trusted; make and revoke their tokens and
    /// invitations.
    #[command(subcommand)]
    User(user::UserCommand),
    /// Block a single machine of a contributor, or end that.
    #[command(subcommand)]
    Worker(worker::WorkerCommand),
    /// Create runs, show them, change them, sign their networks.
    #[command(subcommand)]
    Run(run::RunCommand),
    /// Give runs opening books of their own.
    #[command(subcommand)]
    Openings(openings::OpeningsCommand),
    /// Import puzzle sets, or mine puzzles from a run's own games.
    #[command(subcommand)]
    Puzzles(puzzles::PuzzlesCommand),
    /// Look into chunk files, check them, convert them.
    #[command(subcommand)]
    Chunk(chunk::ChunkCommand),
    /// Check the ledger's sums against its facts; back it up; copy it into another database; write a run's chunks as
    /// a dataset.
    #[command(subcommand)]
    Ledger(ledger::LedgerCommand),
    /// Show what operators did, and what changed by it.
    Log(log::LogArgs),
    /// Compare the storage of networks and chunks with the ledger, pack old chunks together, take over a storage that
    /// was another ledger's.
    #[command(subcommand, alias = "store")]
    Storage(storage::StorageCommand),
}

/// Does what the command line asks for.
pub async fn run(cli: Cli) -> anyhow::Result<()> {
    // What these write is for others.
    if !matches!(
        cli.command,
        Command::Chunk(_) | Command::Ledger(ledger::LedgerCommand::Export(_))
    ) {
        keep_files_private();
    }
    let settings = Settings::load(&cli.global)?;
    match cli.command {
        Command::Serve(args) => serve::run(&settings, *args).await,
        Command::Migrate => commands::migrate(&settings).await,
        Command::User(command) => user::run(&settings, command).await,
        Command::Worker(command) => worker::run(&settings, command).await,
        Command::Run(command) => run::run(&settings, command).await,
        Command::Openings(command) => openings::run(&settings, command).await,
        Command::Puzzles(command) => puzzles::run(&settings, command).await,
        Command::Chunk(command) => chunk::run(command),
        Command::Ledger(command) => ledger::run(&settings, command).await,
        Command::Log(args) => log::run(&settings, args).await,
        Command::Storage(command) => storage::run(&settings, command).await,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn help_begins_with_what_is_the_commands_own() {
        let mut program = super::Cli::command();
        program.build();
        let serve = program.find_subcommand_mut("serve").unwrap();
        let help = serve.render_long_help().to_string();
        let places = [
            "--listen",
            "--public-url",
            "--create-run",
            "\nLimits:",
            "--trusted-proxies",
            "\nOptions of every command:",
            "--data-dir",
            "--log-format",
        ]
        .map(|text| help.find(text).unwrap_or_else(|| panic!("{text}: {help}")));
        assert!(places.is_sorted(), "{places:?}: {help}");
    }
}
