//! The server program: parses its command line and hands over to the library.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use rookery_common::command_line;
use rookery_coordinator::cli;

/// Chunks are much memory for a moment, on many threads: a sixth of the time of taking them in went to glibc's allocator. Without huge pages: emptying one of 2 MiB holds up everybody.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    match cli::run(command_line::read()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => command_line::failure("rookery-coordinator", &error),
    }
}
