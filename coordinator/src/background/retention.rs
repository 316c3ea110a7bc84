//! Rows of the ledger that nothing refers to any more, removed a few at a time: jobs of which
//! nothing came, what deleted runs have left, and workers of contributors who have newer ones.

use std::time::Duration;

use jiff::SignedDuration;

use crate::alerts::AlertKind;
use crate::app::App;
use crate::db::{DbError, Pruned};

/// How long a job without an upload is kept. Until then a worker may bring games that it has kept
/// through an outage, and operators see what was missing within a week.
pub const JOBS_KEPT: SignedDuration = SignedDuration::from_hours(8 * 24);
/// How long a worker is kept that was not heard.
pub const WORKERS_KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Between two looks.
const EVERY: Duration = Duration::from_secs(60 * 60);
/// Between two parts of a look: others write in between.
const PAUSE: Duration = Duration::from_millis(50);

/// Prunes until the coordinator stops.
pub async fn keep_pruning(app: App) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let pruned = prune(&app).await;
        let failure = pruned.as_ref().err().map(|error| {
            let problem = format!("Old jobs and workers could not be deleted: {error}");
            ("ledger".to_owned(), problem)
        });
        app.alerts
            .set(AlertKind::Retention, failure.into_iter().collect());
        match pruned {
            Ok(Pruned {
                jobs: 0,
                workers: 0,
            }) => {}
            Ok(Pruned { jobs, workers }) => {
                tracing::info!(jobs, workers, "Old jobs and workers were deleted.");
            }
            Err(error) => tracing::error!(
                %error, "RK-0236: A background task failed: old jobs and workers could not be deleted."
            ),
        }
    }
}

/// Removes what is older than [`JOBS_KEPT`] and [`WORKERS_KEPT`].
pub async fn prune(app: &App) -> Result<Pruned, DbError> {
    let now = app.clock.now();
    let mut all = Pruned::default();
    let mut after = None;
    loop {
        let part = app.db.forget_jobs(now - JOBS_KEPT, after).await?;
        all.jobs += part.removed;
        if part.last.is_none() {
            break;
        }
        after = part.last;
        tokio::time::sleep(PAUSE).await;
    }
    while app.db.remove_deleted().await? > 0 {
        tokio::time::sleep(PAUSE).await;
    }
    loop {
        match app.db.forget_workers(now - WORKERS_KEPT).await? {
            0 => return Ok(all),
            removed => all.workers += removed,
        }
        tokio::time::sleep(PAUSE).await;
    }
}
