//! `rookery-trainer`: see the library for what it is made of.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use rookery_common::causes::explain;
use rookery_trainer::cli::Cli;
use rookery_trainer::commands;

fn main() -> ExitCode {
    rookery_nn::keep_freed_memory();
    match commands::execute(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is gone, the exit status still tells.
            drop(writeln!(
                std::io::stderr(),
                "rookery-trainer: {}",
                explain(error.chain())
            ));
            ExitCode::FAILURE
        }
    }
}
