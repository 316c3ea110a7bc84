//! `play`: an agent's move in each position.

use std::io::BufWriter;
use std::process::ExitCode;

use anyhow::Context as _;
use rookery_analysis::lines::answer_lines;
use rookery_analysis::position_line::Notation;
use rookery_engine::players::LiveGame;
use serde_json::json;

use super::flags::DeviceArgs;
use crate::lineage::Agent;

/// Flags of `play`.
#[derive(Debug, clap::Args)]
pub struct PlayArgs {
    /// The agent: dqn:FILE, value-search:FILE, value-search:FILE@POSITIONS, deltazero:FILE, deltazero:FILE@VISITS,
    /// thesis:FILE, thesis:FILE@VISITS, minimax:DEPTH or mcts:PLAYOUTS.
    #[arg(value_name = "AGENT")]
    pub agent: Agent,
    /// The seed of an agent that plays by chance.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where to compute.
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// Answers standard input, line by line.
///
/// # Errors
///
/// If the agent's file cannot be read or computed, or standard input or output fails.
pub fn execute(args: &PlayArgs) -> anyhow::Result<ExitCode> {
    let factory = args.agent.factory(&args.device.open()?)?;
    let mut player = factory.player(args.seed)?;
    let output = BufWriter::new(std::io::stdout().lock());
    answer_lines(std::io::stdin().lock(), output, |game| {
        anyhow::ensure!(game.end().is_none(), "the game is over");
        let choices = player.choose(&[&LiveGame::from_history(game.clone())])?;
        let choice = choices.first().context("the agent chose no move")?;
        Ok(json!({"move": Notation::ByPosition.write(game, choice.m)}))
    })
}
