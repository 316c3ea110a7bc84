//! `serve`: the API and the pages until stopped.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use rookery_common::file_lock::{FileLock, FileLockError, holder};
use rookery_common::ids::RunName;
use rookery_common::openings::OpeningBook;
use rookery_common::protocol::server::{Link, Presentation};
use rookery_syzygy::Syzygy;
use tokio::net::{TcpListener, TcpSocket, lookup_host};
use tokio::task::JoinHandle;

use super::{not_used, open_blobs_for, open_database_within, run as run_command};
use crate::app::App;
use crate::blobs::{Downloads, SharedBlobs};
use crate::clock::SystemClock;
use crate::config::{
    AccessConfig, DownloadPath, Origins, Registration, Settings, SiteUrl, WorkerSource,
};
use crate::db::sql::ledger_file;
use crate::db::{DbError, NAME_AN_AUDITOR, SharedDatabase};
use crate::files::{create_folder, folder_of};
use crate::limits::Limits;
use crate::limits::settings::LimitArgs;
use crate::panics::again;
use crate::server::Server;
use crate::server::scrape;
use crate::server::sighup::Sighup;
use crate::server::tls::Tls;
use crate::storage_identity::{self, StorageIdentityError};
use crate::telemetry::Dependencies;
use crate::trust::plan;
use crate::webhook::{Webhook, keep_telling};
use crate::{api, ratings, relay, retention, telemetry};

/// Where the coordinator listens if nobody says: reachable from this machine only.
const LISTEN: &str = "127.0.0.1:8080";
/// How often old observations are dropped and counts taken.
const UPKEEP: Duration = Duration::from_secs(15);
/// How long the coordinator waits at its start for a database server that does not answer yet.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long the store may take to tell whose it is before that is asked again later.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a part that a bug has ended rests before it is begun again.
const REST: Duration = Duration::from_secs(10);
/// How many open files are taken for allowed where the system does not tell: what it usually allows.
const OPEN_FILES: u64 = 1024;
/// Connections that wait to be accepted, as many as the standard library asks for.
const BACKLOG: u32 = 1024;
/// How long requests that are being served may take when the coordinator stops.
const DRAIN: Duration = Duration::from_secs(30);

/// `serve`
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Listen at this address and port; port 0 takes a free one. [default: 127.0.0.1:8080]
    #[arg(long, env = "ROOKERY_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Serve Prometheus metrics at this address and port, or beside the API, for whoever reaches it (`api`).
    /// [default: 127.0.0.1:9464, or not at all where that is taken]
    #[arg(long, env = "ROOKERY_METRICS_LISTEN", value_name = "ADDRESS")]
    pub metrics_listen: Option<String>,
    /// The address at which browsers and workers reach the coordinator, for links and commands on pages and in
    /// the feed, for example https://chess.example.org. [default: what each request says of itself]
    #[arg(
        long,
        env = "ROOKERY_SITE_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub site_url: Option<String>,
    /// Who may register over the API: anyone (open), who has a code of `user invite` (invitation),
    /// or nobody (closed). [default: open]
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
    /// https://example.org/rookery. [default: the page names Rookery's README]
    #[arg(
        long,
        env = "ROOKERY_WORKER_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub worker_url: Option<String>,
    /// Tell promotions, rejections and rollbacks to this address, a webhook of Discord, Slack or a program of your
    /// own. Other users of the machine see a command line: better give ROOKERY_WEBHOOK or the configuration file.
    #[arg(
        long,
        env = "ROOKERY_WEBHOOK",
        value_name = "URL",
        hide_env_values = true
    )]
    pub webhook: Option<String>,
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

/// Serves until SIGTERM or Ctrl-C.
///
/// # Errors
///
/// If the ledger, the store or the address cannot be opened, or the store is another ledger's.
pub async fn run(settings: &Settings, args: ServeArgs) -> anyhow::Result<()> {
    telemetry::begin_logging(settings)?;
    telemetry::begin_metrics()?;
    let book = match args.openings.as_ref().or(settings.file.openings.as_ref()) {
        Some(path) => read_book(path)?,
        None => OpeningBook::built_in(),
    };
    let doors = doors(settings, &args)?;
    let webhook = args.webhook.as_ref().or(settings.file.webhook.as_ref());
    let webhook = webhook.map(|text| Webhook::read(text)).transpose()?;
    let tls = tls(settings, &args)?;
    let hangups = Sighup::listen();
    warn_of_own_store(settings);
    let listen = args.listen.clone().or_else(|| settings.file.listen.clone());
    let listen = listen.as_deref().unwrap_or(LISTEN);
    let port = reserve(listen).await?;
    let _lock = lock(settings)?;
    let blobs = open_blobs_for(settings, downloads(settings, &args))?;
    let db = open_database_within(settings, PATIENCE).await?;
    let unknown = claim(&db, &blobs).await;
    let unknown = unknown.with_context(|| not_used(settings))?;
    if let Some(cause) = &unknown {
        tracing::warn!(
            cause,
            "The store does not answer yet, so its owner is not known; the coordinator retries."
        );
    }
    if let Some(name) = args.create_run {
        create_missing(&db, name, args.params).await?;
    }
    let app = App::new(db, blobs, Arc::new(SystemClock), book, doors);
    let folders = args.syzygy.as_ref().or(settings.file.syzygy.as_ref());
    if let Some(folders) = folders.filter(|folders| !folders.is_empty()) {
        // Nobody else sets them.
        let _ = app.tables.set(Box::new(open_tables(folders)?));
    }
    // A store that cannot be used may come up later, but its operator should know at once.
    let mut dependencies = Dependencies::default();
    telemetry::look_around(&mut dependencies, &app.db, &app.blobs, app.clock.now()).await;
    let listener = port.listen(BACKLOG).with_context(|| no_port(listen))?;
    let metrics_listen = args.metrics_listen;
    let metrics_listen = metrics_listen.or_else(|| settings.file.metrics_listen.clone());
    let address = listener.local_addr()?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    tracing::info!(%address, "The coordinator listens: {scheme}://{address}");
    let watched = scrape::serve(metrics_listen.as_deref(), app.stopping.clone()).await?;
    resume_leases(&app).await?;
    refit_all(&app).await?;
    warn_of_no_auditor(&app).await?;
    let beside = begin_beside(&app, webhook);
    let upkeep = tokio::spawn(keep_up(app.clone(), dependencies, unknown.is_none()));
    let notice = args.stop_notice.or(settings.file.stop_notice);
    let renewal = tokio::spawn(renew(tls.clone(), hangups));
    serve(app, listener, tls, Duration::from_secs(notice.unwrap_or(0))).await;
    renewal.abort();
    upkeep.abort();
    beside.iter().chain(&watched).for_each(JoinHandle::abort);
    match upkeep.await {
        Ok(refusal) => Err(anyhow::Error::new(refusal).context(not_used(settings))),
        Err(_) => Ok(()),
    }
}

/// Takes the port before anything is made, so that a coordinator that cannot be reached leaves no new
/// ledger. Nobody is let in yet: connections are refused until it listens.
async fn reserve(listen: &str) -> anyhow::Result<TcpSocket> {
    let bind = |address: SocketAddr| -> std::io::Result<TcpSocket> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // As every listener has it: else a port could not be had again at once after a stop.
        if cfg!(unix) {
            socket.set_reuseaddr(true)?;
        }
        socket.bind(address)?;
        Ok(socket)
    };
    let addresses = lookup_host(listen).await.with_context(|| no_port(listen))?;
    let mut failed = None;
    for address in addresses {
        match bind(address) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = Some(error),
        }
    }
    let error = failed.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into());
    Err(error).with_context(|| no_port(listen))
}

fn no_port(listen: &str) -> String {
    format!("RK-0008: cannot listen at {listen}")
}

/// Keeps other coordinators from a ledger on SQLite, which serves one. Commands may be beside it.
fn lock(settings: &Settings) -> anyhow::Result<Option<FileLock>> {
    let Some(ledger) = ledger_file(&settings.database)? else {
        return Ok(None);
    };
    let folder = folder_of(&ledger);
    create_folder(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    // By whatever name the ledger is given, its lock is one.
    let ledger = ledger.canonicalize().unwrap_or(ledger);
    let mut path = ledger.clone().into_os_string();
    path.push(".lock");
    match FileLock::take(Path::new(&path)) {
        Ok(lock) => Ok(Some(lock)),
        Err(FileLockError::Held { process, .. }) => anyhow::bail!(
            "RK-0201: another coordinator ({}) serves the ledger {}: stop that one, or give this one its own \
             --data-dir; several coordinators share a ledger on PostgreSQL only",
            holder(process),
            ledger.display()
        ),
        Err(error) => Err(error.into()),
    }
}

/// Makes sure that the store is the ledger's. Why that cannot be found out now, if it cannot: a
/// store that does not answer may come up later.
async fn claim(
    db: &SharedDatabase,
    blobs: &SharedBlobs,
) -> Result<Option<String>, StorageIdentityError> {
    match tokio::time::timeout(ANSWER, storage_identity::claim(db, &**blobs)).await {
        Ok(Ok(())) => Ok(None),
        Ok(Err(error)) if error.is_refusal() => Err(error),
        Ok(Err(error)) => Ok(Some(error.to_string())),
        Err(_) => Ok(Some(format!("no answer in {} seconds", ANSWER.as_secs()))),
    }
}

/// A database that several coordinators may share asks for a store that they share.
fn warn_of_own_store(settings: &Settings) {
    if settings.default_store && settings.may_have_replicas() {
        tracing::warn!(
            folder = settings.store,
            "Networks and chunks are kept in a folder here, because no --store is given; several \
             coordinators on one database need one store that all of them reach."
        );
    }
}

/// Who may come in.
fn doors(settings: &Settings, args: &ServeArgs) -> anyhow::Result<AccessConfig> {
    let file = &settings.file;
    let origins = args.cors_origins.as_ref().or(file.cors_origins.as_ref());
    let worker = args.worker_url.as_ref().or(file.worker_url.as_ref());
    let site = args.site_url.as_ref().or(file.site_url.as_ref());
    let metrics_listen = args
        .metrics_listen
        .as_ref()
        .or(file.metrics_listen.as_ref());
    Ok(AccessConfig {
        registration: args.registration.or(file.registration).unwrap_or_default(),
        limits: Limits::new(args.limits.clone().or(&file.limits)).within(open_files()),
        keys: settings.keys(),
        site: site.map(|text| SiteUrl::read(text)).transpose()?,
        metrics_address: scrape::address(metrics_listen.map(String::as_str)),
        origins: Origins::read(origins.map_or(&[], Vec::as_slice))?,
        presentation: presentation(settings, args)?,
        worker_source: worker.map(|text| WorkerSource::read(text)).transpose()?,
    })
}

/// What the coordinator is called, whom to write to, where else to look.
fn presentation(settings: &Settings, args: &ServeArgs) -> anyhow::Result<Presentation> {
    let file = &settings.file;
    let presentation = Presentation {
        title: args.title.clone().or_else(|| file.title.clone()),
        contact: args.contact.clone().or_else(|| file.contact.clone()),
        links: args
            .links
            .clone()
            .or_else(|| file.links.clone())
            .unwrap_or_default(),
    };
    presentation.check().map_err(anyhow::Error::msg)?;
    Ok(presentation)
}

/// How many files may be open, as many as the system lets a coordinator have.
fn open_files() -> u64 {
    rlimit::increase_nofile_limit(u64::MAX).unwrap_or_else(|error| {
        tracing::warn!(%error, "The limit of open files cannot be raised.");
        OPEN_FILES
    })
}

/// The certificate, if there is to be one.
fn tls(settings: &Settings, args: &ServeArgs) -> anyhow::Result<Option<Tls>> {
    let file = &settings.file;
    let certificate = args.tls_cert.as_ref().or(file.tls_cert.as_ref());
    let key = args.tls_key.as_ref().or(file.tls_key.as_ref());
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Tls::open(certificate, key).map(Some),
        _ => anyhow::bail!("RK-0216: TLS needs both --tls-cert and --tls-key"),
    }
}

/// How clients get files.
fn downloads(settings: &Settings, args: &ServeArgs) -> Downloads {
    let file = &settings.file;
    let path = args.downloads.or(file.downloads).unwrap_or_default();
    Downloads {
        public: args.public_url.clone().or_else(|| file.public_url.clone()),
        direct: path == DownloadPath::Direct,
    }
}

/// Opens endgame tables, and warns of those that cannot be used.
fn open_tables(folders: &[PathBuf]) -> anyhow::Result<Syzygy> {
    let tables = Syzygy::open(folders)?;
    for problem in tables.problems() {
        tracing::warn!("endgame tables: {problem}");
    }
    Ok(tables)
}

/// Reads an opening book, and warns of games that it cannot use.
fn read_book(path: &Path) -> anyhow::Result<OpeningBook> {
    let shown = path.display();
    let bytes =
        std::fs::read(path).with_context(|| format!("cannot read the opening book {shown}"))?;
    let read = OpeningBook::from_file(path, &bytes);
    let read = read.with_context(|| format!("RK-0219: {shown} is no opening book"))?;
    for line in &read.passed_over {
        tracing::warn!("in the opening book {shown}: {line}");
    }
    Ok(read.book)
}

async fn create_missing(
    db: &SharedDatabase,
    name: RunName,
    params: Option<PathBuf>,
) -> anyhow::Result<()> {
    match db.run(&name).await {
        Ok(_) => Ok(()),
        Err(DbError::NotFound(_)) => {
            run_command::create(
                db,
                name,
                params.as_deref(),
                String::new(),
                Presentation::default(),
            )
            .await
        }
        Err(error) => Err(error.into()),
    }
}

/// Leases ran on while no coordinator was there, and workers played on.
async fn resume_leases(app: &App) -> anyhow::Result<()> {
    let leases = app.db.outlast_outage(app.clock.now()).await?;
    if leases > 0 {
        tracing::info!(
            leases,
            "Leases were renewed by the time that the coordinator was away."
        );
    }
    Ok(())
}

/// Without somebody whom the operator trusts, names that cost nothing vouch for each other.
async fn warn_of_no_auditor(app: &App) -> anyhow::Result<()> {
    if !app.db.auditing(app.clock.now()).await?.named {
        tracing::warn!(
            "RK-0209: No auditor is trusted: contributors only vouch for each other, quarantine no one, and somebody \
             with many names can pass made-up games. Run a worker with the token of: {NAME_AN_AUDITOR}"
        );
    }
    Ok(())
}

/// Ratings may be older than the games: a coordinator may have been killed between both.
async fn refit_all(app: &App) -> anyhow::Result<()> {
    for run in app.db.runs().await? {
        if run.games > 0 {
            ratings::refit_soon(app, run.name);
        }
    }
    Ok(())
}

/// Begins what goes on beside the requests for as long as they are served.
fn begin_beside(app: &App, webhook: Option<Webhook>) -> Vec<JoinHandle<()>> {
    let telling = webhook.map(|webhook| {
        let app = app.clone();
        let telling = move || keep_telling(app.clone(), webhook.clone());
        tokio::spawn(again("The webhook", REST, telling))
    });
    let [relay, planning, fitting, forgetting] = [app; 4].map(App::clone);
    let relay = move || relay::relay(relay.clone());
    let planning = move || plan::keep_planning(planning.clone());
    let fitting = move || ratings::keep_fitting(fitting.clone());
    let forgetting = move || retention::keep_forgetting(forgetting.clone());
    let own = [
        tokio::spawn(again("The relay of events", REST, relay)),
        tokio::spawn(again("The planning of audits", REST, planning)),
        tokio::spawn(again("The fitting of ratings", REST, fitting)),
        tokio::spawn(again("The removal of old rows", REST, forgetting)),
    ];
    own.into_iter().chain(telling).collect()
}

/// Looks after what goes on beside the requests. It ends, and stops the coordinator, only when a
/// store that could not be asked at the start turns out to be another ledger's.
async fn keep_up(
    app: App,
    mut dependencies: Dependencies,
    mut owned: bool,
) -> StorageIdentityError {
    let mut ticks = tokio::time::interval(UPKEEP);
    loop {
        ticks.tick().await;
        telemetry::upkeep();
        telemetry::look_around(&mut dependencies, &app.db, &app.blobs, app.clock.now()).await;
        if !owned {
            match claim(&app.db, &app.blobs).await {
                Ok(unknown) => owned = unknown.is_none(),
                Err(refusal) => {
                    app.stopping.cancel();
                    return refusal;
                }
            }
        }
    }
}

/// Keeps the certificate fresh, if there is one.
async fn renew(tls: Option<Tls>, hangups: Sighup) {
    match tls {
        Some(tls) => tls.keep_fresh(hangups).await,
        None => hangups.pass_over().await,
    }
}

/// Serves, and when told to stop, finishes what is being served.
async fn serve(app: App, listener: TcpListener, tls: Option<Tls>, notice: Duration) {
    let signals = tokio::spawn(stop_when_told(app.clone(), notice));
    let server = Server {
        router: api::router(app.clone()),
        limits: app.limits.clone(),
        tls,
        stopping: app.stopping.clone(),
    };
    let overdue = async {
        app.stopping.cancelled().await;
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        () = server.run(listener) => {}
        () = overdue => tracing::warn!("Some requests were not finished in time."),
    }
    signals.abort();
    app.db.close().await;
    tracing::info!("The coordinator has stopped.");
}

/// On a signal, says for a while that no more should come, then stops; on a second one, at once.
async fn stop_when_told(app: App, notice: Duration) {
    stop_signal().await;
    app.leaving.cancel();
    if !notice.is_zero() {
        tracing::info!(
            seconds = notice.as_secs(),
            "The coordinator is about to stop."
        );
        tokio::select! {
            () = tokio::time::sleep(notice) => {}
            () = stop_signal() => {}
        }
    }
    tracing::info!("The coordinator stops: it finishes the requests that are being served.");
    app.stopping.cancel();
}

/// Waits for SIGTERM or Ctrl-C.
async fn stop_signal() {
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = interrupted => {}
        () = terminated() => {}
    }
}

#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            terminate.recv().await;
        }
        Err(_) => std::future::pending::<()>().await,
    }
}

#[cfg(not(unix))]
async fn terminated() {
    std::future::pending::<()>().await;
}
