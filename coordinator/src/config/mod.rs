//! Settings after flags, environment and file have been merged: flags win over `ROOKERY_*`
//! variables, which win over the file, which wins over the defaults.

mod addresses;
mod serve;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use axum::http::HeaderValue;
use rookery_common::command_line::{LogFormat, SHARED};
use rookery_common::config;
use rookery_common::protocol::server::Presentation;
use serde::{Deserialize, Serialize};

use crate::limits::Limits;
use crate::signing::KeyFolder;

#[cfg(test)]
pub(crate) use addresses::NAME_BYTES;
pub use addresses::{PageUrl, SiteUrl, System, WorkerSources};
pub(crate) use addresses::{is_host, is_web_address};
pub use rookery_common::protocol::server::Registration;
pub use serve::ServeArgs;

/// The file that is read when no other is named.
const DEFAULT_FILE: &str = "coordinator.toml";

/// Other sites whose pages may read the API from a browser.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Origins {
    #[default]
    None,
    Any,
    These(Vec<HeaderValue>),
}

impl Origins {
    /// Reads `*`, or origins such as `https://example.org`.
    pub fn read(texts: &[String]) -> anyhow::Result<Self> {
        let origin = |text: &String| {
            let host = text
                .strip_prefix("https://")
                .or_else(|| text.strip_prefix("http://"))
                .filter(|host| !host.is_empty() && !host.contains(['/', '*', ' ']));
            host.and_then(|_| text.parse().ok()).with_context(|| {
                format!("{text:?} is no origin: write https://example.org, without a path")
            })
        };
        match texts {
            [] => Ok(Self::None),
            [all] if all == "*" => Ok(Self::Any),
            these => these
                .iter()
                .map(origin)
                .collect::<Result<_, _>>()
                .map(Self::These),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DatasetConfig {
    /// The folder that holds the folder of each.
    pub folder: Option<PathBuf>,
    /// Where people get what is in that folder.
    pub url: Option<PageUrl>,
    /// When the next one comes.
    pub schedule: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetricsAddress {
    /// At a listener of their own, or not at all.
    #[default]
    Own,
    /// Beside the API, for whoever reaches it.
    WithApi,
}

/// Who may come in, by what, and how much each may have.
#[derive(Debug, Default)]
pub struct AccessConfig {
    pub registration: Registration,
    pub limits: Arc<Limits>,
    /// Other sites whose pages may read.
    pub origins: Origins,
    /// Where volunteers get the worker, if the operator says so.
    pub worker_sources: WorkerSources,
    /// Where people get Rookery's source code, if the operator says so.
    pub source: Option<PageUrl>,
    pub datasets: DatasetConfig,
    /// Where the coordinator is reached, if the operator says so.
    pub site: Option<SiteUrl>,
    pub metrics_address: MetricsAddress,
    pub keys: KeyFolder,
    /// What the coordinator is called, whom to write to, where else to look.
    pub presentation: Presentation,
}

impl From<Registration> for AccessConfig {
    fn from(registration: Registration) -> Self {
        Self {
            registration,
            ..Self::default()
        }
    }
}

/// How clients get files from an object store.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    Serialize,
    Deserialize,
    clap::ValueEnum,
    utoipa::ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum DownloadPath {
    /// From the store itself, by addresses that it signs.
    #[default]
    Direct,
    /// Through the coordinator.
    Through,
}

/// Settings that apply to every command.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct GlobalArgs {
    /// Read settings from this TOML file. Without the flag, coordinator.toml in the working
    /// directory is read if it is there.
    #[arg(long, global = true, help_heading = SHARED, env = "ROOKERY_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Keep the database and the files in this folder. It is created if it is missing.
    /// [default: rookery-data]
    #[arg(long, global = true, help_heading = SHARED, env = "ROOKERY_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Keep the ledger in this database: sqlite:PATH for a file, or
    /// postgres://USER@HOST/DATABASE, which several coordinators may share.
    /// [default: sqlite:DATA_DIR/ledger.db]
    #[arg(long, global = true, help_heading = SHARED, env = "ROOKERY_DATABASE", value_name = "URL", hide_env_values = true)]
    pub database: Option<String>,
    /// Keep networks and chunks in this storage: a folder, or s3://BUCKET/PREFIX, gs://BUCKET/PREFIX
    /// or az://CONTAINER/PREFIX with credentials, region and endpoint from the environment
    /// (AWS_…, GOOGLE_…, AZURE_…). [default: DATA_DIR/blobs]
    #[arg(long, global = true, help_heading = SHARED, env = "ROOKERY_STORAGE", value_name = "URL", hide_env_values = true)]
    pub storage: Option<String>,
    /// The name that `--storage` had before 0.1.0.
    #[arg(
        long,
        global = true,
        hide = true,
        env = "ROOKERY_STORE",
        value_name = "URL",
        hide_env_values = true
    )]
    pub store: Option<String>,
    /// What to log: a level (error, warn, info, debug, trace) or a filter such as
    /// `info,sqlx=warn`. [default: info]
    #[arg(long, global = true, help_heading = SHARED, env = "ROOKERY_LOG", value_name = "FILTER")]
    pub log: Option<String>,
    /// Log as plain lines or as one JSON object a line. [default: plain]
    #[arg(long, global = true, help_heading = SHARED, env = "ROOKERY_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
}

/// Settings that every command needs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The ledger's database, for example `sqlite:rookery-data/ledger.db`.
    pub database: String,
    /// The folder or the URL of the storage of networks and chunks.
    pub storage: String,
    /// Whether nobody said where: the storage is a folder in `data_dir`.
    pub default_storage: bool,
    pub data_dir: PathBuf,
    pub log: String,
    pub log_format: LogFormat,
    /// The file's other entries.
    pub file: ServeArgs,
}

impl Settings {
    /// Merges flags and environment (`args`) with the file.
    /// A file that was asked for must exist; unknown entries are errors.
    pub fn load(args: &GlobalArgs) -> anyhow::Result<Self> {
        let file: ServeArgs = config::load(args.config.as_deref(), Some(Path::new(DEFAULT_FILE)))?;
        let data_dir = args
            .data_dir
            .clone()
            .or_else(|| file.data_dir.clone())
            .unwrap_or_else(|| PathBuf::from("rookery-data"));
        let database = args.database.clone().or_else(|| file.database.clone());
        let storage = args.storage.as_ref().or(args.store.as_ref());
        let storage = storage.or(file.storage.as_ref()).cloned();
        let log = args.log.clone().or_else(|| file.log.clone());
        Ok(Self {
            database: database.unwrap_or_else(|| sqlite_address(&data_dir.join("ledger.db"))),
            default_storage: storage.is_none(),
            storage: storage.unwrap_or_else(|| data_dir.join("blobs").display().to_string()),
            data_dir,
            log: log.unwrap_or_else(|| "info".to_owned()),
            log_format: args.log_format.or(file.log_format).unwrap_or_default(),
            file,
        })
    }
}

impl Settings {
    /// The folder of the secret keys of runs.
    pub fn keys(&self) -> KeyFolder {
        KeyFolder::new(self.data_dir.join("keys"))
    }

    /// Whether other coordinators may share the ledger: it is on PostgreSQL.
    pub fn may_have_replicas(&self) -> bool {
        self.database.starts_with("postgres")
    }
}

/// The URL of a file of SQLite, in which `%`, `?` and `#` mean something.
fn sqlite_address(file: &Path) -> String {
    let name = file.display().to_string();
    let name = name.replace('%', "%25").replace('?', "%3F");
    format!("sqlite:{}", name.replace('#', "%23"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(toml: &str, data_dir: Option<&str>) -> anyhow::Result<Settings> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("c.toml");
        std::fs::write(&path, toml)?;
        let data_dir = data_dir.map(PathBuf::from);
        Settings::load(&GlobalArgs {
            config: Some(path),
            data_dir,
            ..GlobalArgs::default()
        })
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_defaults() {
        let file = "data-dir = \"/from-file\"\nlog = \"debug\"\n";
        let settings = load(file, None).unwrap();
        assert_eq!(settings.database, "sqlite:/from-file/ledger.db");
        assert_eq!(settings.log, "debug");
        let settings = load(file, Some("/from-flag")).unwrap();
        assert_eq!(settings.storage, "/from-flag/blobs");
        assert!(settings.default_storage);
        let settings = load("storage = \"/given\"", None).unwrap();
        assert_eq!(
            (&*settings.storage, settings.default_storage),
            ("/given", false)
        );
    }

    #[test]
    fn what_means_something_in_an_address_is_escaped_in_that_of_the_ledger() {
        let settings = load("", Some("a b/50%20x?y#z")).unwrap();
        assert_eq!(settings.database, "sqlite:a b/50%2520x%3Fy%23z/ledger.db");
        assert_eq!(settings.storage, "a b/50%20x?y#z/blobs");
    }

    #[test]
    fn a_typo_in_the_file_is_named() {
        let error = load("databse = \"x\"", None).unwrap_err();
        assert!(format!("{error:#}").contains("databse"), "{error:#}");
    }

    #[test]
    fn a_password_is_not_shown_with_what_is_wrong() {
        let file = "log = \"info\"\ndatabase = postgres://ann:secret@localhost/rookery\n";
        let error = format!("{:#}", load(file, None).unwrap_err());
        assert!(error.contains("line 2"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}
