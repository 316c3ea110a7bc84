//! The server program: parses its command line and hands over to the library.

use std::process::ExitCode;

use rookery_common::command_line;
use rookery_coordinator::commands;

#[tokio::main]
async fn main() -> ExitCode {
    match commands::run(command_line::read()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => command_line::failure("rookery-coordinator", &error),
    }
}
