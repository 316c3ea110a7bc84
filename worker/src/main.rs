//! The program `rookery-worker`: reads the command line and prints errors, in one place.

use std::process::ExitCode;

use rookery_common::command_line;

fn main() -> ExitCode {
    leave_the_desktop_alone();
    #[cfg(feature = "torch")]
    rookery_backend_torch::keep_freed_memory();
    match rookery_worker::commands::run(command_line::read()) {
        Ok(code) => code,
        Err(error) => command_line::failure("rookery-worker", &error),
    }
}

/// Mesa sorts GPUs by what the desktop prefers, and prints an error on machines without one. `NODEVICE_SELECT` leaves that out.
#[expect(
    unsafe_code,
    reason = "the environment is changed before any thread runs"
)]
fn leave_the_desktop_alone() {
    if std::env::var_os("WAYLAND_DISPLAY").is_none() {
        // SAFETY: the program has no other thread yet, which could read the environment meanwhile.
        unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    }
}
