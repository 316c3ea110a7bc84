//! `chunk …`: chunk files.

use clap::Subcommand;

use crate::config::Settings;

/// Commands on chunk files.
#[derive(Debug, Subcommand)]
pub enum ChunkCommand {}

/// Does what the command says.
///
/// # Errors
///
/// Whatever went wrong, with its context.
pub async fn run(_settings: &Settings, command: ChunkCommand) -> anyhow::Result<()> {
    match command {}
}
