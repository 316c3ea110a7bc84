//! `serve`: the API and the pages until stopped.

mod args;
mod shutdown;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rookery_common::file_lock::{FileLock, FileLockError, holder};
use rookery_common::ids::RunName;
use rookery_common::protocol::server::Presentation;
use rookery_common::signals::StopSignals;
use tokio::net::{TcpSocket, lookup_host};
use tokio::task::JoinHandle;

use super::{not_used, open_blobs_for, open_database_within, run as run_command};
use crate::app::App;
use crate::background;
use crate::blobs::folder_at;
use crate::clock::SystemClock;
use crate::config::{ServeArgs, Settings};
use crate::db::sql::ledger_file;
use crate::db::{DbError, NAME_AN_AUDITOR, SharedDatabase};
use crate::disk_space::Disks;
use crate::server::scrape;
use crate::server::sighup::Sighup;
use crate::telemetry::{self, Dependencies};
use rookery_common::files::{create_folder, folder_of};

/// How long the coordinator waits at its start for a database server that does not answer yet.
const PATIENCE: Duration = Duration::from_secs(120);
/// Connections that wait to be accepted, as many as the standard library asks for.
const BACKLOG: u32 = 1024;

/// Serves until SIGTERM or Ctrl-C.
pub async fn run(settings: &Settings, args: ServeArgs) -> anyhow::Result<()> {
    telemetry::begin_logging(settings)?;
    telemetry::begin_metrics()?;
    let args = args.or(&settings.file);
    let book = args.book()?;
    let access = args.access(settings.keys())?;
    let webhooks = args.webhooks()?;
    let tls = args.tls()?;
    let hangups = Sighup::listen();
    warn_of_own_store(settings);
    let listen = args.listen();
    let port = reserve(listen).await?;
    let _lock = lock(settings)?;
    let blobs = open_blobs_for(settings, args.downloads()?)?;
    let db = open_database_within(settings, PATIENCE).await?;
    let unknown = background::claim(&db, &blobs).await;
    let unknown = unknown.with_context(|| not_used(settings))?;
    if let Some(cause) = &unknown {
        tracing::warn!(
            cause,
            "RK-0230: The store does not answer yet; whose it is will be checked when it does."
        );
    }
    if let Some(name) = &args.create_run {
        create_missing(&db, name, args.params.as_deref()).await?;
    }
    let app = App::new(db, blobs, Arc::new(SystemClock), book, access);
    if let Some(tables) = args.tables()? {
        // Nobody else sets them.
        let _ = app.tables.set(Box::new(tables));
    }
    // A store that cannot be used may come up later, but its operator should know at once.
    let mut dependencies = Dependencies::default();
    let mut disks = Disks::watch(data_folders(settings)?);
    background::look_around(&app, &mut dependencies, &mut disks).await;
    let listener = port.listen(BACKLOG).with_context(|| no_port(listen))?;
    let address = listener.local_addr()?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    tracing::info!(%address, "The coordinator listens: {scheme}://{address}");
    let watched = scrape::serve(args.metrics_listen.as_deref(), app.stopping.clone()).await?;
    background::resume_leases(&app).await?;
    background::refit_all(&app).await?;
    warn_of_no_auditor(&app).await?;
    warn_of_no_source(&app, address.ip());
    let beside = background::begin(&app, webhooks);
    let upkeep = background::keep_up(app.clone(), dependencies, disks, unknown.is_none());
    let upkeep = tokio::spawn(upkeep);
    let renewal = tokio::spawn(background::renew(tls.clone(), hangups));
    let signals = StopSignals::listen().context("cannot listen for SIGTERM and Ctrl-C")?;
    let notice = Duration::from_secs(args.stop_notice.unwrap_or(0));
    shutdown::serve(app, listener, tls, signals, notice).await;
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

/// The folders of ledger and storage, if they are on disks of this machine.
fn data_folders(settings: &Settings) -> anyhow::Result<Vec<(&'static str, PathBuf)>> {
    let ledger = ledger_file(&settings.database)?;
    let ledger = ledger.map(|file| ("database", folder_of(&file).to_owned()));
    let storage = folder_at(&settings.storage).map(|folder| ("store", folder.to_owned()));
    Ok(ledger.into_iter().chain(storage).collect())
}

/// A database that several coordinators may share asks for a store that they share.
fn warn_of_own_store(settings: &Settings) {
    if settings.default_storage && settings.may_have_replicas() {
        tracing::warn!(
            folder = settings.storage,
            "RK-0231: Networks and chunks are kept in a folder here, because no --storage is given; several \
             coordinators on one database need one store that all of them reach."
        );
    }
}

async fn create_missing(
    db: &SharedDatabase,
    name: &RunName,
    params: Option<&Path>,
) -> anyhow::Result<()> {
    match db.run(name).await {
        Ok(_) => Ok(()),
        Err(DbError::NotFound(_)) => {
            run_command::create(
                db,
                name.clone(),
                params,
                String::new(),
                Presentation::default(),
            )
            .await
        }
        Err(error) => Err(error.into()),
    }
}

/// The page that invites volunteers cannot say where the worker is, and nobody can ask.
fn warn_of_no_source(app: &App, listen: IpAddr) {
    let found = !app.worker_sources.is_empty() || app.source.is_some();
    if !found && app.presentation.contact.is_none() && !listen.is_loopback() {
        tracing::warn!(
            "RK-0239: The page Join cannot say where to get the worker: give --worker-url, --source-url or --contact."
        );
    }
}

/// Without somebody whom the operator trusts, names that cost nothing vouch for each other.
async fn warn_of_no_auditor(app: &App) -> anyhow::Result<()> {
    if !app.db.auditor_activity(app.clock.now()).await?.named {
        tracing::warn!(
            "RK-0209: No auditor is trusted: contributors can only audit each other, no one is quarantined, and one \
             person with many accounts can pass made-up games. Run a worker with the token of: {NAME_AN_AUDITOR}"
        );
    }
    Ok(())
}
