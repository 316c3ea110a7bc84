//! What `serve` is told: by its flags, their variables, and the configuration file.

use std::path::PathBuf;
use std::sync::Arc;

use rookery_common::openings::OpeningBook;
use rookery_common::protocol::server::Presentation;
use rookery_common::text::without_secrets;
use rookery_syzygy::Syzygy;
use rookery_tls::ServerCertificate;

use crate::background::webhook::{Webhook, Webhooks};
use crate::blobs::Downloads;
use crate::commands::openings;
use crate::config::{
    AccessConfig, DatasetConfig, DownloadPath, Origins, PageUrl, ServeArgs, SiteUrl, WorkerSources,
    is_web_address,
};
use crate::limits::Limits;
use crate::server::scrape;
use crate::server::tls;
use crate::signing::KeyFolder;

/// Where the coordinator listens if nobody says: reachable from this machine only.
const LISTEN: &str = "127.0.0.1:8080";
/// How many open files are taken for allowed where the system does not tell: what it usually allows.
const OPEN_FILES: u64 = 1024;

impl ServeArgs {
    /// The address and port to listen at.
    pub(super) fn listen(&self) -> &str {
        self.listen.as_deref().unwrap_or(LISTEN)
    }

    /// The openings of runs that have no book of their own. Games that cannot be used are warned of.
    pub(super) fn book(&self) -> anyhow::Result<OpeningBook> {
        let Some(path) = &self.openings else {
            return Ok(OpeningBook::built_in());
        };
        let read = openings::read(path)?;
        for line in &read.passed_over {
            tracing::warn!("In the opening book {}: {line}", path.display());
        }
        Ok(read.book)
    }

    /// The endgame tables, if there are to be any.
    pub(super) fn tables(&self) -> anyhow::Result<Option<Syzygy>> {
        let folders = self.syzygy.as_ref().filter(|folders| !folders.is_empty());
        folders.map(|folders| open_tables(folders)).transpose()
    }

    /// Whom the operator wants told.
    pub(super) fn webhooks(&self) -> anyhow::Result<Webhooks> {
        let read = |text: &Option<String>| text.as_deref().map(Webhook::read).transpose();
        Ok(Webhooks {
            events: read(&self.webhook)?,
            alerts: read(&self.alerts_webhook)?,
        })
    }

    /// Who may come in.
    pub(super) fn access(&self, keys: KeyFolder) -> anyhow::Result<AccessConfig> {
        let page = |text: &Option<String>| text.as_deref().map(PageUrl::read).transpose();
        let presentation = Presentation {
            title: self.title.clone(),
            contact: self.contact.clone(),
            links: self.links.clone().unwrap_or_default(),
        };
        presentation.check().map_err(anyhow::Error::msg)?;
        Ok(AccessConfig {
            registration: self.registration.unwrap_or_default(),
            limits: Arc::new(Limits::new(self.limits.clone()).within(open_files())),
            keys,
            site: self.site_url.as_deref().map(SiteUrl::read).transpose()?,
            metrics_address: scrape::address(self.metrics_listen.as_deref()),
            origins: Origins::read(self.cors_origins.as_deref().unwrap_or_default())?,
            presentation,
            worker_sources: WorkerSources::read(self.worker_url.as_deref().unwrap_or_default())?,
            source: page(&self.source_url)?,
            datasets: DatasetConfig {
                folder: self.datasets.clone(),
                url: page(&self.datasets_url)?,
                schedule: self.datasets_schedule.clone(),
            },
        })
    }

    /// The certificate, if there is to be one.
    pub(super) fn tls(&self) -> anyhow::Result<Option<ServerCertificate>> {
        let (certificate, key) = (self.tls_cert.as_deref(), self.tls_key.as_deref());
        let opened = ServerCertificate::of_flags(certificate, key, tls::PROTOCOLS);
        Ok(opened?)
    }

    /// How clients get files.
    pub(super) fn downloads(&self) -> anyhow::Result<Downloads> {
        if let Some(address) = &self.public_url {
            anyhow::ensure!(
                is_web_address(address),
                "{:?} is no address of files: write https://cdn.example.org/rookery",
                without_secrets(address)
            );
        }
        Ok(Downloads {
            public: self.public_url.clone(),
            direct: self.downloads.unwrap_or_default() == DownloadPath::Direct,
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
