//! `evaluate`: what a network thinks of a position, with or without search.

use std::path::Path;
use std::process::ExitCode;

use rookery_analysis::evaluate;
use rookery_cli::network_file;

use super::flags::DeviceArgs;

/// Flags of `evaluate`.
#[derive(Debug, clap::Args)]
pub struct EvaluateArgs {
    /// The network: a file of Rookery or of Lc0 (.pb.gz), `small`, which comes with Rookery, or a shape such as 6x64
    /// (random weights).
    #[arg(long, value_name = "NETWORK", default_value = rookery_model::included::NAME)]
    pub network: String,
    /// Which position, and what is shown of it.
    #[command(flatten)]
    pub question: evaluate::Question,
    /// Where to compute.
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// Answers the position of the flags, or those on standard input.
///
/// # Errors
///
/// If the network or the position cannot be used.
pub fn execute(args: &EvaluateArgs) -> anyhow::Result<ExitCode> {
    let weights = network_file::read_or_random(Path::new(&args.network))?;
    let evaluator = args.device.open_for(&weights)?.load(&weights)?.evaluator();
    evaluate::run(&args.question, &args.network, evaluator)
}
