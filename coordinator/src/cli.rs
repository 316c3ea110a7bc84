//! The command line: what is written there, before it is merged with environment and file.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use rookery_common::command_line::{LogFormat, SHARED};

use crate::commands::{chunk, ledger, log, puzzles, run, serve, store, user, worker};

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

/// Settings that apply to every command.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct GlobalArgs {
    /// Read settings from this TOML file. Without the flag, coordinator.toml in the working
    /// directory is read if it is there.
    #[arg(long, global = true, help_heading = SHARED, env = "ROOKERY_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Keep the database and the files in this folder. It is created if it is missing.
    /// [default: rookery-data]
    #[arg(long, global = true, help_heading = SHARED, env = "ROOKERY_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Keep the ledger in this database: sqlite:PATH for a file, or
    /// postgres://USER@HOST/DATABASE, which several coordinators may share.
    /// [default: sqlite:DATA_DIR/ledger.db]
    #[arg(long, global = true, help_heading = SHARED, env = "ROOKERY_DATABASE", value_name = "URL", hide_env_values = true)]
    pub database: Option<String>,
    /// Keep networks and chunks in this store: a folder, or s3://BUCKET/PREFIX, gs://BUCKET/PREFIX
    /// or az://CONTAINER/PREFIX with credentials, region and endpoint from the environment
    /// (AWS_…, GOOGLE_…, AZURE_…). [default: DATA_DIR/blobs]
    #[arg(long, global = true, help_heading = SHARED, env = "ROOKERY_STORE", value_name = "URL", hide_env_values = true)]
    pub store: Option<String>,
    /// What to log: a level (error, warn, info, debug, trace) or a filter such as
    /// `info,sqlx=warn`. [default: info]
    #[arg(long, global = true, help_heading = SHARED, env = "ROOKERY_LOG", value_name = "FILTER")]
    pub log: Option<String>,
    /// Log as plain lines or as one JSON object a line. [default: plain]
    #[arg(long, global = true, help_heading = SHARED, env = "ROOKERY_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API and the pages until stopped.
    Serve(Box<serve::ServeArgs>),
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
    /// Compare the store of networks and chunks with the ledger, pack old chunks together, take over a store that
    /// was another ledger's.
    #[command(subcommand)]
    Store(store::StoreCommand),
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
