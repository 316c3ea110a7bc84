//! `worker …`: single machines of contributors.

use clap::{Args, Subcommand};

use super::{command_line, say, with_database};
use crate::api::trust::check_reason;
use crate::config::Settings;

/// Commands on workers.
#[derive(Debug, Subcommand)]
pub enum WorkerCommand {
    /// Give a worker no more jobs. Its owner sees the reason; the owner's other workers play on.
    Block {
        /// Which one.
        #[command(flatten)]
        worker: WorkerArgs,
        /// The reason, which the contributor sees.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Give a worker jobs again.
    Unblock(WorkerArgs),
}

/// A worker of a contributor.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// The contributor's name.
    pub name: String,
    /// The worker's name, as the contributor's page shows it.
    pub worker: String,
}

pub async fn run(settings: &Settings, command: WorkerCommand) -> anyhow::Result<()> {
    with_database(settings, async |db| match command {
        WorkerCommand::Block {
            worker: WorkerArgs { name, worker },
            reason,
        } => {
            let reason = check_reason(&reason).map_err(anyhow::Error::msg)?;
            db.block_worker(&name, &worker, reason, command_line())
                .await?;
            say(&format!("The worker {worker:?} of {name} is blocked."))
        }
        WorkerCommand::Unblock(WorkerArgs { name, worker }) => {
            db.unblock_worker(&name, &worker, command_line()).await?;
            say(&format!("The worker {worker:?} of {name} is not blocked."))
        }
    })
    .await
}
