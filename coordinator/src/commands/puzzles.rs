//! `puzzles …`: puzzle sets for a run.

use clap::Subcommand;

use crate::config::Settings;

/// Commands on puzzle sets.
#[derive(Debug, Subcommand)]
pub enum PuzzlesCommand {}

/// Does what the command says.
///
/// # Errors
///
/// Whatever went wrong, with its context.
pub async fn run(_settings: &Settings, command: PuzzlesCommand) -> anyhow::Result<()> {
    match command {}
}
