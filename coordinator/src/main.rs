//! The server program: parses its command line and hands over to the library.

use std::process::ExitCode;

use clap::Parser as _;
use rookery_coordinator::{cli::Cli, commands};

#[tokio::main]
async fn main() -> ExitCode {
    match commands::run(Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => commands::report(&error),
    }
}
