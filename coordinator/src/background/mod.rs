//! What goes on beside the requests for as long as they are served.
//!
//! `begin` starts every part, and starts it again after a bug. [`relay`], [`retention`], [`openings`], [`webhook`] and
//! [`alerts`] are parts; [`plan`] and [`ratings`] have others. `keep_up` looks after telemetry, and after a store that did not answer
//! at the start.

pub mod alerts;
pub mod openings;
pub mod relay;
pub mod retention;
pub mod webhook;

use std::time::Duration;

use rookery_tls::ServerCertificate;
use tokio::task::JoinHandle;

use crate::alerts::AlertKind;
use crate::app::App;
use crate::blobs::SharedBlobs;
use crate::db::SharedDatabase;
use crate::disk_space::Disks;
use crate::panics::again;
use crate::server::sighup::Sighup;
use crate::server::tls;
use crate::storage_identity::{self, StorageIdentityError};
use crate::telemetry::Dependencies;
use crate::trust::plan;
use crate::{ratings, telemetry};
use alerts::keep_alerting;
use webhook::{Webhook, Webhooks, keep_telling};

/// How often old observations are dropped and counts taken.
const UPKEEP: Duration = Duration::from_secs(15);
/// How long the store may take to tell whose it is before that is asked again later.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a part that a bug has ended rests before it is begun again.
const REST: Duration = Duration::from_secs(10);

/// Begins what goes on beside the requests for as long as they are served.
pub(crate) fn begin(app: &App, webhooks: Webhooks) -> Vec<JoinHandle<()>> {
    let mut parts = vec![
        keep(app, "The relay of events", relay::relay),
        keep(app, "The planning of audits", plan::keep_planning),
        keep(app, "The fitting of ratings", ratings::keep_fitting),
        keep(app, "The removal of old rows", retention::keep_pruning),
        keep(app, "The naming of openings", openings::keep_naming),
    ];
    let Webhooks { events, alerts } = webhooks;
    parts.extend(events.map(|webhook| keep_calling(app, "The webhook", webhook, keep_telling)));
    parts.extend(
        alerts.map(|webhook| keep_calling(app, "The webhook of alerts", webhook, keep_alerting)),
    );
    parts
}

/// The same of a part that calls a webhook.
fn keep_calling<W>(
    app: &App,
    name: &'static str,
    webhook: Webhook,
    part: fn(App, Webhook) -> W,
) -> JoinHandle<()>
where
    W: Future<Output = ()> + Send + 'static,
{
    let app = app.clone();
    tokio::spawn(again(name, REST, move || {
        part(app.clone(), webhook.clone())
    }))
}

/// Does a part until the coordinator stops, also after a bug.
fn keep<W>(app: &App, name: &'static str, part: fn(App) -> W) -> JoinHandle<()>
where
    W: Future<Output = ()> + Send + 'static,
{
    let app = app.clone();
    tokio::spawn(again(name, REST, move || part(app.clone())))
}

/// Looks after what goes on beside the requests. It ends, and stops the coordinator, only when a
/// store that could not be asked at the start turns out to be another ledger's.
pub(crate) async fn keep_up(
    app: App,
    mut dependencies: Dependencies,
    mut disks: Disks,
    mut owned: bool,
) -> StorageIdentityError {
    let mut ticks = tokio::time::interval(UPKEEP);
    loop {
        ticks.tick().await;
        telemetry::upkeep();
        look_around(&app, &mut dependencies, &mut disks).await;
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

/// Measures what there is, and sets the alerts of dependencies and disks.
pub(crate) async fn look_around(app: &App, dependencies: &mut Dependencies, disks: &mut Disks) {
    let (db, blobs, now) = (&app.db, &app.blobs, app.clock.now());
    let unusable = telemetry::look_around(dependencies, db, blobs, now).await;
    app.alerts.set(AlertKind::Dependency, unusable);
    app.alerts.set(AlertKind::Disk, disks.look_around().await);
}

/// Makes sure that the store is the ledger's. Why that cannot be found out now, if it cannot: a
/// store that does not answer may come up later.
pub(crate) async fn claim(
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

/// Keeps the certificate fresh, if there is one.
pub(crate) async fn renew(certificate: Option<ServerCertificate>, hangups: Sighup) {
    match certificate {
        Some(certificate) => tls::keep_fresh(certificate, hangups).await,
        None => hangups.ignore_all().await,
    }
}

/// Leases ran on while no coordinator was there, and workers played on.
pub(crate) async fn resume_leases(app: &App) -> anyhow::Result<()> {
    let leases = app.db.outlast_outage(app.clock.now()).await?;
    if leases > 0 {
        tracing::info!(
            leases,
            "Leases were renewed by the time that the coordinator was away."
        );
    }
    Ok(())
}

/// Ratings may be older than the games: a coordinator may have been killed between both.
pub(crate) async fn refit_all(app: &App) -> anyhow::Result<()> {
    for run in app.db.runs().await? {
        if run.games > 0 {
            ratings::refit_soon(app, run.name);
        }
    }
    Ok(())
}
