//! The configuration file, `worker.toml`.

use std::path::{Path, PathBuf};

use rookery_backends::{RemoteAccess, home_folder};
use rookery_common::command_line::LogFormat;
use rookery_common::config;
use rookery_common::signing::RunKey;
use serde::{Deserialize, Serialize};

use crate::api::{Server, Token};
use crate::priority::Priority;

/// The file's entries; every one may be left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ConfigFile {
    /// The coordinator's address.
    pub server: Option<Server>,
    /// A token made by the operator; without it the worker registers.
    pub token: Option<Token>,
    /// A file that holds such a token.
    pub token_file: Option<PathBuf>,
    /// The invitation with which the worker registers.
    pub invitation: Option<String>,
    /// The key that the run's networks must be signed with.
    pub run_key: Option<RunKey>,
    /// The contributor's name.
    pub name: Option<String>,
    /// This worker's name.
    pub worker: Option<String>,
    /// The run to work for.
    pub run: Option<String>,
    /// Where to compute.
    pub device: Option<String>,
    /// A file that holds the token of a remote device.
    pub device_token_file: Option<PathBuf>,
    /// A file that holds the certificates that are trusted of a remote device.
    pub device_ca: Option<PathBuf>,
    /// In what numbers to compute.
    pub precision: Option<String>,
    /// Threads that play.
    pub threads: Option<usize>,
    /// Games at once.
    pub games: Option<usize>,
    /// Share of the time for which GPUs compute at most.
    pub gpu_share: Option<f64>,
    /// Whether GPUs may use cooperative matrices.
    pub gpu_matrices: Option<String>,
    /// Where the spool and the networks are kept.
    pub dir: Option<PathBuf>,
    /// Whether other programs have the processor first.
    pub priority: Option<Priority>,
    /// Minutes between uploads of a long job.
    pub chunk_minutes: Option<f64>,
    /// Whether people may watch a game while it is played.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub share_live: bool,
    /// Folders of Syzygy endgame tables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub syzygy: Vec<PathBuf>,
    /// A UCI engine that adjudicates.
    pub adjudicator: Option<PathBuf>,
    /// What to log.
    pub log: Option<String>,
    /// How to log.
    pub log_format: Option<LogFormat>,
}

impl ConfigFile {
    /// Reads the file that was named, or else the usual one if it is there.
    ///
    /// # Errors
    ///
    /// If a named file is missing, or an entry is not known or not valid.
    pub fn load(named: Option<&Path>) -> anyhow::Result<Self> {
        config::load(named, default_path().as_deref())
    }

    /// What is needed to use a remote device, or to offer one.
    pub fn remote_access(&self) -> RemoteAccess {
        RemoteAccess {
            token_file: self.device_token_file.clone(),
            trusted_certificates: self.device_ca.clone(),
        }
    }
}

/// Where the file is looked for: `$XDG_CONFIG_HOME/rookery/worker.toml`, or under `~/.config`.
pub fn default_path() -> Option<PathBuf> {
    Some(home_folder("XDG_CONFIG_HOME", ".config")?.join("rookery/worker.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_and_a_bad_address_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.toml");
        for (text, named) in [
            ("thread = 2", "thread"),
            ("server = \"nowhere\"", "nowhere"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = format!("{:#}", ConfigFile::load(Some(&path)).unwrap_err());
            assert!(error.contains("w.toml") && error.contains(named), "{error}");
        }
        assert!(ConfigFile::load(Some(&folder.path().join("missing.toml"))).is_err());
    }

    #[test]
    fn a_token_without_quotes_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.toml");
        std::fs::write(&path, "threads = 2\ntoken = rk_secret\n").unwrap();
        let error = format!("{:#}", ConfigFile::load(Some(&path)).unwrap_err());
        assert!(error.contains("line 2"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let config = ConfigFile {
            server: Some("http://localhost:1".parse().unwrap()),
            threads: Some(2),
            ..ConfigFile::default()
        };
        let text = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<ConfigFile>(&text).unwrap(), config);
    }
}
