//! `play`: an agent's move in each position.

use std::io::BufWriter;
use std::process::ExitCode;

use anyhow::Context as _;
use rookery_analysis::lines::answer_lines;
use rookery_analysis::position_line::Notation;
use serde_json::json;

use crate::lineage::Agent;

/// Flags of `play`.
#[derive(Debug, clap::Args)]
pub struct PlayArgs {
    /// The agent: dqn:FILE, value-search:FILE, value-search:FILE@POSITIONS, minimax:DEPTH or mcts:PLAYOUTS.
    #[arg(value_name = "AGENT")]
    pub agent: Agent,
    /// The seed of an agent that plays by chance.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Answers standard input, line by line.
///
/// # Errors
///
/// If the agent's file cannot be read, or standard input or output fails.
pub fn execute(args: &PlayArgs) -> anyhow::Result<ExitCode> {
    let choose = args.agent.open()?;
    let output = BufWriter::new(std::io::stdout().lock());
    answer_lines(std::io::stdin().lock(), output, |game| {
        let m = choose(game, args.seed).context("the game is over")?;
        Ok(json!({"move": Notation::ByPosition.write(game, m)}))
    })
}
