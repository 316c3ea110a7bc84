//! The fit of all match games of a run.
//!
//! The maths is [`rookery_common::rating::bradley_terry`]; the first network is 0. A fit runs off the
//! async threads, after a match was decided and now and then while one is played.

use std::time::Instant;

use rookery_common::ids::RunName;
use rookery_common::protocol::events::Event;
use rookery_common::protocol::networks::{NetworkInfo, NetworkStatus};

use crate::app::App;
use crate::store::Rollback;

mod fit;

pub use fit::{Fitted, fit};

/// Fits the ratings of a run again, in the background.
pub fn refit_soon(app: &App, run: RunName) {
    let app = app.clone();
    tokio::spawn(async move {
        if let Err(error) = refit(&app, &run).await {
            tracing::error!(%run, %error, "The ratings could not be fitted.");
        }
    });
}

/// Fits the ratings of a run again and tells those who listen.
///
/// # Errors
///
/// If the ledger fails, or the fit does.
pub async fn refit(app: &App, run: &RunName) -> anyhow::Result<()> {
    let _one_at_a_time = app.fitting.lock().await;
    let begun = Instant::now();
    let (number, results) = app.store.begin_fit(run).await?;
    let fitted = tokio::task::spawn_blocking(move || fit(&results)).await??;
    let now = app.clock.now();
    let ratings = fitted.ratings();
    if !app.store.store_ratings(run, number, ratings, now).await? {
        // Another coordinator has fitted more games in the meantime, and told so.
        return Ok(());
    }
    metrics::histogram!("rookery_rating_fit_duration_seconds")
        .record(begun.elapsed().as_secs_f64());
    app.events.publish(Event::Ratings { run: run.clone() });
    roll_back_if_likely(app, run, &fitted).await
}

/// Makes an earlier network best again if the run wants that and the ratings make it likely enough
/// that it is stronger.
async fn roll_back_if_likely(app: &App, run: &RunName, fitted: &Fitted) -> anyhow::Result<()> {
    let info = app.store.run(run).await?;
    let (Some(threshold), Some(best)) = (info.params.rollback, info.best) else {
        return Ok(());
    };
    let networks = app.store.networks(run).await?;
    let was_best = |network: &&NetworkInfo| {
        use NetworkStatus::{Initial, Promoted};
        network.number != best && matches!(network.status, Initial | Promoted)
    };
    let earlier = networks
        .iter()
        .filter(was_best)
        .map(|network| network.number);
    let Some((to, superiority)) = fitted.likeliest_above(best, earlier) else {
        return Ok(());
    };
    if superiority < threshold {
        return Ok(());
    }
    let rollback = Rollback {
        from: best,
        to,
        superiority,
    };
    let now = app.clock.now();
    for event in app.store.roll_back(run, rollback, now).await? {
        tracing::warn!(%run, from = best.0, to = to.0, superiority, "Best was rolled back.");
        app.events.publish(event);
    }
    Ok(())
}
