//! What goes on beside the requests for as long as they are served.

use std::time::Duration;

use rookery_tls::ServerCertificate;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::blobs::SharedBlobs;
use crate::db::SharedDatabase;
use crate::panics::again;
use crate::server::sighup::Sighup;
use crate::server::tls;
use crate::storage_identity::{self, StorageIdentityError};
use crate::telemetry::Dependencies;
use crate::trust::plan;
use crate::webhook::{Webhook, keep_telling};
use crate::{opening_backfill, ratings, relay, retention, telemetry};

/// How often old observations are dropped and counts taken.
const UPKEEP: Duration = Duration::from_secs(15);
/// How long the store may take to tell whose it is before that is asked again later.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a part that a bug has ended rests before it is begun again.
const REST: Duration = Duration::from_secs(10);

/// Begins what goes on beside the requests for as long as they are served.
pub(super) fn begin(app: &App, webhook: Option<Webhook>) -> Vec<JoinHandle<()>> {
    let telling = webhook.map(|webhook| {
        let app = app.clone();
        let telling = move || keep_telling(app.clone(), webhook.clone());
        tokio::spawn(again("The webhook", REST, telling))
    });
    let [relay, planning, fitting, forgetting, naming] = [app; 5].map(App::clone);
    let relay = move || relay::relay(relay.clone());
    let planning = move || plan::keep_planning(planning.clone());
    let fitting = move || ratings::keep_fitting(fitting.clone());
    let forgetting = move || retention::keep_forgetting(forgetting.clone());
    let naming = move || opening_backfill::keep_naming(naming.clone());
    let own = [
        tokio::spawn(again("The relay of events", REST, relay)),
        tokio::spawn(again("The planning of audits", REST, planning)),
        tokio::spawn(again("The fitting of ratings", REST, fitting)),
        tokio::spawn(again("The removal of old rows", REST, forgetting)),
        tokio::spawn(again("The naming of openings", REST, naming)),
    ];
    own.into_iter().chain(telling).collect()
}

/// Looks after what goes on beside the requests. It ends, and stops the coordinator, only when a
/// store that could not be asked at the start turns out to be another ledger's.
pub(super) async fn keep_up(
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

/// Makes sure that the store is the ledger's. Why that cannot be found out now, if it cannot: a
/// store that does not answer may come up later.
pub(super) async fn claim(
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
pub(super) async fn renew(certificate: Option<ServerCertificate>, hangups: Sighup) {
    match certificate {
        Some(certificate) => tls::keep_fresh(certificate, hangups).await,
        None => hangups.pass_over().await,
    }
}

/// Leases ran on while no coordinator was there, and workers played on.
pub(super) async fn resume_leases(app: &App) -> anyhow::Result<()> {
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
pub(super) async fn refit_all(app: &App) -> anyhow::Result<()> {
    for run in app.db.runs().await? {
        if run.games > 0 {
            ratings::refit_soon(app, run.name);
        }
    }
    Ok(())
}
