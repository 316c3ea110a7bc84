//! The program `rookery-worker`: reads the command line and prints errors, in one place.

use std::process::ExitCode;

use rookery_common::command_line;

fn main() -> ExitCode {
    #[cfg(feature = "torch")]
    rookery_backend_torch::keep_freed_memory();
    match rookery_worker::commands::run(command_line::read()) {
        Ok(code) => code,
        Err(error) => command_line::failure("rookery-worker", &error),
    }
}
