//! Values that several commands read alike.

use std::path::Path;

use rookery_common::command_line::{LogFormat, SHARED};

/// As many threads as a flag says, at least one, or one for each processor core.
pub fn threads_or_cores(threads: Option<usize>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    threads.unwrap_or_else(cores).max(1)
}

/// What is logged, and how.
#[derive(Debug, Clone, clap::Args)]
pub struct LogArgs {
    /// What to log: a level (error, warn, info, debug, trace) or a filter such as `info,rookery_engine=debug`.
    #[arg(
        long,
        global = true,
        help_heading = SHARED,
        env = "ROOKERY_LOG",
        value_name = "FILTER",
        default_value = "info"
    )]
    pub log: String,
    /// Log as plain lines, with progress bars on a terminal, or as one JSON object a line.
    #[arg(
        long,
        global = true,
        help_heading = SHARED,
        env = "ROOKERY_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "plain"
    )]
    pub log_format: LogFormat,
}

/// What becomes of a file that is already where a command is to write one.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct OutputArgs {
    /// Replace the output file if it exists.
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

/// A reader of the names of an enum, which on others says what to write instead.
pub fn named<T, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: Copy,
{
    move |text: &str| {
        let known = all.into_iter().find(|one| name(*one) == text);
        known.ok_or_else(|| format!("write one of {}", all.map(name).join(", ")))
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
