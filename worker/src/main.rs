//! The program `rookery-worker`: reads the command line and prints errors, in one place.

use std::process::ExitCode;

use rookery_common::command_line;

#[expect(
    unsafe_code,
    reason = "the environment is changed before any thread runs"
)]
fn main() -> ExitCode {
    // SAFETY: the program has no other thread yet.
    unsafe { rookery_backends::leave_the_desktop_alone() };
    #[cfg(feature = "torch")]
    rookery_backend_torch::keep_freed_memory();
    match rookery_worker::commands::run(command_line::read()) {
        Ok(code) => code,
        Err(error) => command_line::failure("rookery-worker", &error),
    }
}
