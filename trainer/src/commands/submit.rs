//! `submit`: hand a network's file to the coordinator, or the name of a program as an anchor.

use std::path::PathBuf;

use anyhow::Context as _;
use rookery_common::ids::AnchorName;
use rookery_common::network::{Program, program_file};
use rookery_common::output;
use rookery_common::protocol::networks::{NetworkName, NetworkReceipt};
use rookery_common::rating::AnchorElo;

use super::flags::ServerArgs;
use crate::api::Client;
use crate::exports;
use rookery_cli::Shutdown;
use rookery_cli::network_file;

/// Flags of `submit`.
#[derive(Debug, clap::Args)]
pub struct SubmitArgs {
    /// The network: a file of Rookery (.safetensors) or of Lc0 (.pb.gz).
    #[arg(
        value_name = "FILE",
        required_unless_present = "program",
        conflicts_with = "program"
    )]
    pub file: Option<PathBuf>,
    /// Instead of a network, a program that all workers have, as an anchor: random, any legal move; or
    /// alphabeta:N, alpha-beta search of N plies (1 to 4) over material and piece placement; or
    /// alphabeta:N:P, the same with P random legal moves in a hundred.
    #[arg(long, value_name = "PROGRAM", requires = "anchor")]
    pub program: Option<Program>,
    /// Bring it in as an anchor of this name, for example maia-1100: it never becomes best, and plays
    /// rating matches with the run's networks, which shows how strong they are. It needs a
    /// token with the scope `operate`. [default: it is a candidate]
    #[arg(long, value_name = "NAME")]
    pub anchor: Option<AnchorName>,
    /// The anchor's Elo on a scale that others know, -10000 to 10000, for example 1100: once it has
    /// played, the run's ratings are counted from it. [default: it is rated as any other network]
    #[arg(
        long,
        value_name = "ELO",
        requires = "anchor",
        allow_negative_numbers = true
    )]
    pub elo: Option<AnchorElo>,
    /// The coordinator.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Submits the network.
///
/// # Errors
///
/// If the file is not a network, no run may have the program, or the coordinator refuses it.
pub async fn execute(args: SubmitArgs, shutdown: Shutdown) -> anyhow::Result<()> {
    let client = args.server.client(&args.server.file()?, shutdown)?;
    let weights = args.file.as_deref().map(network_file::read).transpose()?;
    let bytes = match (&weights, args.program) {
        (Some(weights), _) => weights.to_bytes()?,
        (None, Some(program)) => {
            let refuse = || format!("{program} can be no anchor of a run");
            program_file(program).with_context(refuse)?
        }
        (None, None) => anyhow::bail!("there is nothing to submit: give a FILE or a --program"),
    };
    let receipt = match &args.anchor {
        Some(anchor) => client.submit_anchor(bytes, anchor, args.elo).await?,
        None => client.submit(bytes).await?,
    };
    let (number, status) = (receipt.number, receipt.status.name());
    if receipt.duplicate {
        tracing::info!("the coordinator has it already, as network {number} ({status})");
    } else {
        tracing::info!("submitted it as network {number} ({status})");
    }
    if let Some(weights) = &weights {
        exports::offer(&client, receipt.hash, weights).await?;
    }
    if let Some(elo) = args.elo {
        ensure_given(&client, &receipt, elo).await?;
    }
    output::print_line(&receipt.hash.to_string())
}

/// Makes sure that an anchor has the Elo that it was submitted with: one that was there before keeps
/// what it had.
async fn ensure_given(
    client: &Client,
    receipt: &NetworkReceipt,
    elo: AnchorElo,
) -> anyhow::Result<()> {
    let there = client.network(NetworkName::Hash(receipt.hash)).await?;
    let (run, number) = (client.run_name(), receipt.number);
    anyhow::ensure!(
        there.anchor_elo == Some(elo),
        "run {run} has it as network {number}, but not with {elo} Elo: its operator changes that by \
         `rookery-coordinator run anchor {run} {number} --elo {elo}`"
    );
    Ok(())
}
