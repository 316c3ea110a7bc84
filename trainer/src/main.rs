//! `rookery-trainer`: see the library for what it is made of.

use std::process::ExitCode;

use rookery_common::command_line;
use rookery_trainer::commands;

fn main() -> ExitCode {
    rookery_backend_torch::keep_freed_memory();
    match commands::execute(command_line::read()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => command_line::failure("rookery-trainer", &error),
    }
}
