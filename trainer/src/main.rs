//! `rookery-trainer`: see the library for what it is made of.

use std::io::Write;
use std::process::ExitCode;

use rookery_common::causes::explain;
use rookery_common::command_line;
use rookery_trainer::commands;

fn main() -> ExitCode {
    rookery_nn::keep_freed_memory();
    match commands::execute(command_line::read()) {
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
