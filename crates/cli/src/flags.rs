//! Values that several commands read alike.

use std::path::Path;

use anyhow::Context as _;
use rookery_common::params::RunParams;

/// As many threads as a flag says, at least one, or one for each processor core.
pub fn threads_or_cores(threads: Option<usize>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    threads.unwrap_or_else(cores).max(1)
}

/// What becomes of a file that is already where a command is to write one.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct OutputArgs {
    /// Replace the file that is to be written, if there is one already.
    #[arg(long)]
    pub force: bool,
}

impl OutputArgs {
    /// Whether the file may be written; asked before the work that it is to hold is done.
    ///
    /// # Errors
    ///
    /// If there is such a file, and `--force` is not given.
    pub fn check(self, path: &Path) -> anyhow::Result<()> {
        Ok(rookery_common::files::check_output(path, self.force)?)
    }
}

/// The parameters of a run, from its file.
///
/// # Errors
///
/// If it cannot be read, or what it says is not valid.
pub fn run_params(path: &Path) -> anyhow::Result<RunParams> {
    RunParams::from_text(&read_params(path)?).with_context(|| invalid_params(path))
}

/// The text of a file of parameters.
///
/// # Errors
///
/// If it cannot be read.
pub fn read_params(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path)
        .with_context(|| format!("RK-0006: cannot read the parameters {}", path.display()))
}

/// What is said of a file whose parameters are not valid.
pub fn invalid_params(path: &Path) -> String {
    format!(
        "RK-0005: the parameters in {} are not valid",
        path.display()
    )
}

/// Reads a number from 0 to 1.
///
/// # Errors
///
/// What to write instead.
pub fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write a number from 0 to 1".to_owned()),
    }
}

/// Reads a number above 0.
///
/// # Errors
///
/// What to write instead.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if number > 0.0 && number < 1e6 => Ok(number),
        _ => Err("write a number above 0".to_owned()),
    }
}

/// Reads a number of games, two from each opening.
///
/// # Errors
///
/// What to write instead.
pub fn even(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(games) if games > 0 && games % 2 == 0 => Ok(games),
        _ => Err("write an even number: each opening is played with both colours".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn games_come_in_pairs() {
        assert_eq!(even("200"), Ok(200));
        for text in ["0", "3", "-2", "x"] {
            assert!(even(text).is_err(), "{text}");
        }
    }
}
