//! `rookery-lab`: see the library for what it is made of.

use std::process::ExitCode;

use rookery_common::command_line;
use rookery_lab::commands;

fn main() -> ExitCode {
    match commands::execute(command_line::read()) {
        Ok(code) => code,
        Err(error) => command_line::failure("rookery-lab", &error),
    }
}
