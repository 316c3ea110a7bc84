//! Settings of `run` that a file may hold: flags win over `ROOKERY_*` variables, which win over the
//! file, which wins over the defaults.

use std::path::{Path, PathBuf};

use rookery_common::config;
use rookery_common::ids::RunName;
use serde::Deserialize;

/// The file that is read when no other is named, if it is there.
const DEFAULT_FILE: &str = "trainer.toml";

/// The file; every entry may be left out.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ConfigFile {
    /// The coordinator's address.
    pub server: Option<String>,
    /// A file that holds the token.
    pub token_file: Option<PathBuf>,
    /// The run's name.
    pub run: Option<RunName>,
    /// The trainer's folder.
    pub dir: Option<PathBuf>,
}

impl ConfigFile {
    /// Reads the file that was named, or else `trainer.toml` in the working directory.
    ///
    /// # Errors
    ///
    /// If it was named and cannot be read, or has an entry that is not known.
    pub fn load(named: Option<&Path>) -> anyhow::Result<Self> {
        config::load(named, Some(Path::new(DEFAULT_FILE)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_and_typos_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.toml");
        let text = "run = \"side\"\ntoken-file = \"token\"\n";
        std::fs::write(&path, text).unwrap();
        let file = ConfigFile::load(Some(&path)).unwrap();
        assert_eq!(file.run, Some("side".parse().unwrap()));
        assert_eq!(file.token_file, Some(PathBuf::from("token")));
        for (text, named) in [
            ("serve = 1", "serve"),
            ("run = \"A B\"", "not a run's name"),
            ("server = \"s\"\ntoken-file = /secret", "line 2"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = format!("{:#}", ConfigFile::load(Some(&path)).unwrap_err());
            assert!(error.contains(named) && error.contains("t.toml"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(ConfigFile::load(Some(&dir.path().join("missing"))).is_err());
    }
}
