//! What to start, and how long to wait for it.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// An engine to start.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program: a path, or a name for which [`locate`] looks.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Options to set, in this order, before the first search.
    pub options: Vec<(String, String)>,
    /// How long to wait.
    pub timeouts: Timeouts,
}

/// How long to wait for an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From the start of the program to `uciok`, and from any `isready` to `readyok`. Engines that
    /// load tables or networks need some seconds.
    pub ready: Duration,
    /// From `go` to `bestmove`, beyond the search's own time limit. When it is over the engine is
    /// told to stop, and killed if that does not help within [`stop`](Self::stop).
    pub search: Duration,
    /// From `stop` to `bestmove`, and from `quit` to the end of the process.
    pub stop: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            ready: Duration::from_secs(20),
            search: Duration::from_secs(60),
            stop: Duration::from_secs(2),
        }
    }
}

impl Launch {
    /// A program without arguments, with its own options and the default timeouts.
    pub fn new(program: impl AsRef<Path>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            arguments: Vec::new(),
            options: Vec::new(),
            timeouts: Timeouts::default(),
        }
    }

    /// The same with an option to set.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl std::fmt::Display) -> Self {
        self.options.push((name.into(), format!("{value}")));
        self
    }

    /// The same with other timeouts.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }
}

/// Where distributions put games, which is often not on a service's `PATH`.
const GAMES: [&str; 2] = ["/usr/games", "/usr/local/games"];

/// The file of a program given as a bare name: on the `PATH`, else in `/usr/games` or
/// `/usr/local/games`. A name that is not found, or that is a path, is given back as it is.
pub fn locate(program: &Path) -> PathBuf {
    if program.components().count() != 1 {
        return program.to_owned();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(GAMES.map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .unwrap_or_else(|| program.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_names_are_looked_up_and_paths_are_not() {
        assert!(locate(Path::new("sh")).is_absolute());
        for kept in ["./sh", "/no/such/engine", "no-such-engine-at-all"] {
            assert_eq!(locate(Path::new(kept)), Path::new(kept));
        }
    }
}
