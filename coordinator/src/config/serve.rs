//! What `serve` is told: by its flags, their variables, and the configuration file.

use std::path::PathBuf;

use rookery_common::command_line::LogFormat;
use rookery_common::ids::RunName;
use rookery_common::protocol::server::Link;
use serde::Deserialize;

use super::{DownloadPath, Registration};
use crate::limits::settings::{LimitArgs, or};

/// What `serve` is told. In the file are the settings of every command, too.
#[derive(Debug, Clone, Default, Deserialize, clap::Args)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServeArgs {
    #[arg(skip)]
    pub data_dir: Option<PathBuf>,
    #[arg(skip)]
    pub database: Option<String>,
    #[arg(skip)]
    #[serde(alias = "store")]
    pub storage: Option<String>,
    #[arg(skip)]
    pub log: Option<String>,
    #[arg(skip)]
    pub log_format: Option<LogFormat>,
    /// Listen at this address and port; port 0 takes a free one. [default: 127.0.0.1:8080]
    #[arg(long, env = "ROOKERY_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Serve Prometheus metrics at this address and port, or beside the API for everyone (`api`).
    /// [default: 127.0.0.1:9464, or not at all where that is taken]
    #[arg(long, env = "ROOKERY_METRICS_LISTEN", value_name = "ADDRESS")]
    pub metrics_listen: Option<String>,
    /// The address at which browsers and workers reach the coordinator, for links and commands on pages and in
    /// the feed, for example https://rookery.example.org. [default: the `Host` of each request]
    #[arg(
        long,
        env = "ROOKERY_SITE_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub site_url: Option<String>,
    /// Who may register over the API: anyone (open), people with a code of `user invite` (invitation),
    /// or no one (closed). [default: open]
    #[arg(long, env = "ROOKERY_REGISTRATION", value_name = "WHO")]
    pub registration: Option<Registration>,
    /// Check results of endgame tables by the Syzygy tables in these folders, separated by commas.
    /// [default: none, such results are not checked]
    #[arg(
        long,
        env = "ROOKERY_SYZYGY",
        value_delimiter = ',',
        value_name = "FOLDERS"
    )]
    pub syzygy: Option<Vec<PathBuf>>,
    /// Take the openings of runs without a book of their own (`openings import`) from this file, EPD, PGN or CSV, also
    /// compressed, instead of the built-in book.
    #[arg(long, env = "ROOKERY_OPENINGS", value_name = "FILE")]
    pub openings: Option<PathBuf>,
    /// Let pages of these sites read the API from a browser: origins such as https://example.org,
    /// separated by commas, or * for all. [default: none]
    #[arg(
        long,
        env = "ROOKERY_CORS_ORIGINS",
        value_name = "ORIGINS",
        value_delimiter = ','
    )]
    pub cors_origins: Option<Vec<String>>,
    /// Link the page Join to this address, where volunteers get the worker, for example
    /// https://example.org/rookery; or to one for each system, with blanks between them:
    /// 'linux=URL windows=URL macos=URL'. [default: the page says how to build it]
    #[arg(
        long,
        env = "ROOKERY_WORKER_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub worker_url: Option<String>,
    /// Link the page Join to this address, where people get Rookery's source code, for example
    /// https://example.org/rookery.git. [default: the page says to ask the operator]
    #[arg(
        long,
        env = "ROOKERY_SOURCE_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub source_url: Option<String>,
    /// Show the datasets in this folder on the page Dataset of their runs. Each is a folder that `ledger export` wrote.
    /// [default: none]
    #[arg(long, env = "ROOKERY_DATASETS", value_name = "DIR")]
    pub datasets: Option<PathBuf>,
    /// Link the files of datasets to this address, under which a web server serves that folder. The coordinator does
    /// not serve them. [default: the page has no links]
    #[arg(
        long,
        env = "ROOKERY_DATASETS_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub datasets_url: Option<String>,
    /// When datasets are published, as the page says it after "Published", for example "every Sunday".
    #[arg(long, env = "ROOKERY_DATASETS_SCHEDULE", value_name = "TEXT")]
    pub datasets_schedule: Option<String>,
    /// Post promotions, rejections and rollbacks to this address, a webhook of Discord, Slack, Mattermost or a program of
    /// your own. Other users of the machine see a command line: better give ROOKERY_WEBHOOK or the configuration file.
    #[arg(
        long,
        env = "ROOKERY_WEBHOOK",
        value_name = "URL",
        hide_env_values = true
    )]
    pub webhook: Option<String>,
    /// Post alerts to this address, a webhook of a channel that only operators read: a dependency that cannot be used, a
    /// disk that is nearly full, a run without games, a contributor in quarantine, old rows that stay in the ledger. The
    /// configuration file may have it as `alerts-webhook`.
    /// [default: alerts are posted nowhere]
    #[arg(
        long,
        env = "ROOKERY_ALERTS_WEBHOOK",
        value_name = "URL",
        hide_env_values = true
    )]
    pub alerts_webhook: Option<String>,
    /// What people read as the coordinator's name, at most 80 characters. [default: Rookery]
    #[arg(long, env = "ROOKERY_TITLE", value_name = "TEXT")]
    pub title: Option<String>,
    /// Where people reach the operator: an address such as ann@example.org, or a page. Pages show it,
    /// and workers of contributors in quarantine.
    #[arg(long, env = "ROOKERY_CONTACT", value_name = "ADDRESS")]
    pub contact: Option<String>,
    /// A link that pages and the API show, such as 'Chat=https://example.org/chat'; may be given up to
    /// 8 times. The variable has one a line.
    #[arg(long = "link", env = "ROOKERY_LINKS", value_name = "TEXT=URL", value_parser = Link::parse, value_delimiter = '\n')]
    pub links: Option<Vec<Link>>,
    /// Speak TLS with the certificates in this PEM file. It is read again when it changes and on
    /// SIGHUP.
    #[arg(long, env = "ROOKERY_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the certificate, a PEM file.
    #[arg(long, env = "ROOKERY_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// On SIGTERM, answer 503 at /readyz for this many seconds and still serve, so that a load balancer
    /// sends no more requests. Then finish the requests that are being served. [default: 0]
    #[arg(long, env = "ROOKERY_STOP_NOTICE", value_name = "SECONDS")]
    pub stop_notice: Option<u64>,
    /// Send clients that want a network to this address, under which a CDN or a web server serves
    /// the store's files by their keys (networks/ab/abcd…).
    #[arg(
        long,
        env = "ROOKERY_PUBLIC_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub public_url: Option<String>,
    /// How clients get files from an object store: from the store itself by addresses that it
    /// signs (direct), or through the coordinator, for a store that they cannot reach (through).
    /// [default: direct]
    #[arg(long, env = "ROOKERY_DOWNLOADS", value_name = "WAY")]
    pub downloads: Option<DownloadPath>,
    /// Create this run first, if there is none of the name.
    #[arg(long, value_name = "NAME")]
    #[serde(skip)]
    pub create_run: Option<RunName>,
    /// The parameters of the run that is created, a TOML or JSON file.
    #[arg(long, value_name = "FILE", requires = "create_run")]
    #[serde(skip)]
    pub params: Option<PathBuf>,
    /// How much each client may have. Last, as all that follows in `--help` stands under their heading.
    #[command(flatten)]
    pub limits: LimitArgs,
}

impl ServeArgs {
    /// These, and where they say nothing, the file's.
    #[must_use]
    pub fn or(self, file: &Self) -> Self {
        let limits = self.limits.or(&file.limits);
        let own = Self { limits, ..self };
        or!(own, file:
            listen metrics_listen site_url registration syzygy openings cors_origins worker_url
            source_url datasets datasets_url datasets_schedule webhook alerts_webhook title contact
            links tls_cert tls_key stop_notice public_url downloads; ..own)
    }
}
