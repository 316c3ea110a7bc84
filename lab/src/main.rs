//! `rookery-lab`: see the library for what it is made of.

use std::process::ExitCode;

use rookery_common::command_line;
use rookery_lab::commands;

#[expect(
    unsafe_code,
    reason = "the environment is changed before any thread runs"
)]
fn main() -> ExitCode {
    // SAFETY: the program has no other thread yet.
    unsafe { rookery_backends::leave_the_desktop_alone() };
    match commands::execute(command_line::read()) {
        Ok(code) => code,
        Err(error) => command_line::failure("rookery-lab", &error),
    }
}
