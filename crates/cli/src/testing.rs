//! Flags as tests write them.

use std::path::Path;

use clap::{Args, Command};

/// The flags of a command line, whose first word is the command; `DIR` in it stands for a folder.
///
/// # Errors
///
/// What clap says of them.
pub fn flags<A: Args>(dir: &Path, line: &str) -> Result<A, clap::Error> {
    let line = line.replace("DIR", &dir.display().to_string());
    let command = A::augment_args(Command::new("rookery"));
    A::from_arg_matches(&command.try_get_matches_from(line.split_whitespace())?)
}
