//! What `serve` is told: by its flags, their variables, and the configuration file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use rookery_common::ids::RunName;
use rookery_common::openings::OpeningBook;
use rookery_common::protocol::server::{Link, Presentation};
use rookery_common::text::without_secrets;
use rookery_syzygy::Syzygy;
use rookery_tls::ServerCertificate;

use crate::background::webhook::{Webhook, Webhooks};
use crate::blobs::Downloads;
use crate::config::{
    AccessConfig, ConfigFile, DatasetConfig, DownloadPath, Origins, PageUrl, Registration,
    Settings, SiteUrl, WorkerSources, is_web_address,
};
use crate::limits::Limits;
use crate::limits::settings::LimitArgs;
use crate::server::scrape;
use crate::server::tls;

/// Where the coordinator listens if nobody says: reachable from this machine only.
const LISTEN: &str = "127.0.0.1:8080";
/// How many open files are taken for allowed where the system does not tell: what it usually allows.
const OPEN_FILES: u64 = 1024;

/// `serve`
#[derive(Debug, Args)]
pub struct ServeArgs {
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
    /// Take the openings of matches from this file, EPD, PGN or CSV, also compressed, instead of the
    /// built-in book.
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
    /// Post promotions, rejections and rollbacks to this address, a webhook of Discord, Slack or a program of your
    /// own. Other users of the machine see a command line: better give ROOKERY_WEBHOOK or the configuration file.
    #[arg(
        long,
        env = "ROOKERY_WEBHOOK",
        value_name = "URL",
        hide_env_values = true
    )]
    pub webhook: Option<String>,
    /// Post alerts to this address, a webhook of a channel that only operators read: a dependency that cannot be used, a run
    /// without games, a contributor in quarantine. The configuration file may have it as `alerts-webhook`.
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
    pub create_run: Option<RunName>,
    /// The parameters of the run that is created, a TOML or JSON file.
    #[arg(long, value_name = "FILE", requires = "create_run")]
    pub params: Option<PathBuf>,
    /// How much each client may have. Last, as all that follows in `--help` stands under their heading.
    #[command(flatten)]
    pub limits: LimitArgs,
}

impl ServeArgs {
    /// The address and port to listen at.
    pub(super) fn listen(&self, settings: &Settings) -> String {
        let listen = self.listen.clone().or_else(|| settings.file.listen.clone());
        listen.unwrap_or_else(|| LISTEN.to_owned())
    }

    /// Where metrics are served, if somebody says.
    pub(super) fn metrics_listen<'a>(&'a self, settings: &'a Settings) -> Option<&'a str> {
        let file = settings.file.metrics_listen.as_deref();
        self.metrics_listen.as_deref().or(file)
    }

    /// The openings of matches.
    pub(super) fn book(&self, settings: &Settings) -> anyhow::Result<OpeningBook> {
        match self.openings.as_ref().or(settings.file.openings.as_ref()) {
            Some(path) => read_book(path),
            None => Ok(OpeningBook::built_in()),
        }
    }

    /// The endgame tables, if there are to be any.
    pub(super) fn tables(&self, settings: &Settings) -> anyhow::Result<Option<Syzygy>> {
        let folders = self.syzygy.as_ref().or(settings.file.syzygy.as_ref());
        let folders = folders.filter(|folders| !folders.is_empty());
        folders.map(|folders| open_tables(folders)).transpose()
    }

    /// Whom the operator wants told.
    pub(super) fn webhooks(&self, settings: &Settings) -> anyhow::Result<Webhooks> {
        let file = &settings.file;
        let events = self.webhook.as_ref().or(file.webhook.as_ref());
        let alerts = self
            .alerts_webhook
            .as_ref()
            .or(file.alerts_webhook.as_ref());
        Ok(Webhooks {
            events: events.map(|text| Webhook::read(text)).transpose()?,
            alerts: alerts.map(|text| Webhook::read(text)).transpose()?,
        })
    }

    /// How long a load balancer is told that no more requests should come, before the coordinator stops.
    pub(super) fn stop_notice(&self, settings: &Settings) -> Duration {
        let seconds = self.stop_notice.or(settings.file.stop_notice);
        Duration::from_secs(seconds.unwrap_or(0))
    }

    /// Who may come in.
    pub(super) fn access(&self, settings: &Settings) -> anyhow::Result<AccessConfig> {
        let file = &settings.file;
        let origins = self.cors_origins.as_ref().or(file.cors_origins.as_ref());
        let worker = self.worker_url.as_ref().or(file.worker_url.as_ref());
        let source = self.source_url.as_ref().or(file.source_url.as_ref());
        let site = self.site_url.as_ref().or(file.site_url.as_ref());
        Ok(AccessConfig {
            registration: self.registration.or(file.registration).unwrap_or_default(),
            limits: Limits::new(self.limits.clone().or(&file.limits)).within(open_files()),
            keys: settings.keys(),
            site: site.map(|text| SiteUrl::read(text)).transpose()?,
            metrics_address: scrape::address(self.metrics_listen(settings)),
            origins: Origins::read(origins.map_or(&[], Vec::as_slice))?,
            presentation: self.presentation(settings)?,
            worker_sources: WorkerSources::read(worker.map_or("", String::as_str))?,
            source: source.map(|text| PageUrl::read(text)).transpose()?,
            datasets: self.datasets(file)?,
        })
    }

    /// What was published of the runs.
    fn datasets(&self, file: &ConfigFile) -> anyhow::Result<DatasetConfig> {
        let url = self.datasets_url.as_ref().or(file.datasets_url.as_ref());
        let schedule = self.datasets_schedule.as_ref();
        Ok(DatasetConfig {
            folder: self.datasets.clone().or_else(|| file.datasets.clone()),
            url: url.map(|text| PageUrl::read(text)).transpose()?,
            schedule: schedule.or(file.datasets_schedule.as_ref()).cloned(),
        })
    }

    /// What the coordinator is called, whom to write to, where else to look.
    fn presentation(&self, settings: &Settings) -> anyhow::Result<Presentation> {
        let file = &settings.file;
        let presentation = Presentation {
            title: self.title.clone().or_else(|| file.title.clone()),
            contact: self.contact.clone().or_else(|| file.contact.clone()),
            links: self
                .links
                .clone()
                .or_else(|| file.links.clone())
                .unwrap_or_default(),
        };
        presentation.check().map_err(anyhow::Error::msg)?;
        Ok(presentation)
    }

    /// The certificate, if there is to be one.
    pub(super) fn tls(&self, settings: &Settings) -> anyhow::Result<Option<ServerCertificate>> {
        let file = &settings.file;
        let certificate = self.tls_cert.as_deref().or(file.tls_cert.as_deref());
        let key = self.tls_key.as_deref().or(file.tls_key.as_deref());
        Ok(ServerCertificate::of_flags(
            certificate,
            key,
            tls::PROTOCOLS,
        )?)
    }

    /// How clients get files.
    pub(super) fn downloads(&self, settings: &Settings) -> anyhow::Result<Downloads> {
        let file = &settings.file;
        let path = self.downloads.or(file.downloads).unwrap_or_default();
        let public = self.public_url.clone().or_else(|| file.public_url.clone());
        if let Some(address) = &public {
            anyhow::ensure!(
                is_web_address(address),
                "{:?} is no address of files: write https://cdn.example.org/rookery",
                without_secrets(address)
            );
        }
        Ok(Downloads {
            public,
            direct: path == DownloadPath::Direct,
        })
    }
}

/// How many files may be open, as many as the system lets a coordinator have.
fn open_files() -> u64 {
    rlimit::increase_nofile_limit(u64::MAX).unwrap_or_else(|error| {
        tracing::warn!(%error, "The limit of open files cannot be raised.");
        OPEN_FILES
    })
}

/// Opens endgame tables, and warns of those that cannot be used.
fn open_tables(folders: &[PathBuf]) -> anyhow::Result<Syzygy> {
    let tables = Syzygy::open(folders)?;
    for problem in tables.problems() {
        tracing::warn!("RK-0011: an endgame table cannot be used: {problem}");
    }
    Ok(tables)
}

/// Reads an opening book, and warns of games that it cannot use.
fn read_book(path: &Path) -> anyhow::Result<OpeningBook> {
    let shown = path.display();
    let bytes = std::fs::read(path)
        .with_context(|| format!("RK-0240: cannot read the opening book {shown}"))?;
    let read = OpeningBook::from_file(path, &bytes);
    let read = read.with_context(|| format!("RK-0219: {shown} is no opening book"))?;
    for line in &read.passed_over {
        tracing::warn!("In the opening book {shown}: {line}");
    }
    Ok(read.book)
}
