//! The fit of all match games of a run.
//!
//! The maths is [`rookery_common::rating::bradley_terry`]; the first network is 0. A fit runs off the
//! async threads, after a match was decided and now and then while one is played.

use std::time::Instant;

use rookery_common::ids::RunName;
use rookery_common::protocol::events::Event;

use crate::app::App;

mod fit;

pub use fit::fit;

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
    let ratings = tokio::task::spawn_blocking(move || fit(&results)).await??;
    let now = app.clock.now();
    if !app.store.store_ratings(run, number, ratings, now).await? {
        // Another coordinator has fitted more games in the meantime, and told so.
        return Ok(());
    }
    metrics::histogram!("rookery_rating_fit_duration_seconds")
        .record(begun.elapsed().as_secs_f64());
    app.events.publish(Event::Ratings { run: run.clone() });
    Ok(())
}
