//! Every way of playing that a run can ask for, by a real worker, in games that all count.

use anyhow::ensure;
use rookery_common::params::{ForcedPlayouts, KldStop, ResignParams, RunParams, TableParams};
use rookery_tests::params::tiny;
use rookery_tests::site::Site;

/// All knobs of self-play at once. A random network finds itself a little behind as often as not, so
/// at this threshold games end by resignation.
fn every_knob() -> RunParams {
    let mut params = tiny();
    let selfplay = &mut params.selfplay;
    selfplay.search.visits = 20;
    selfplay.search.forced_playouts = Some(ForcedPlayouts::default());
    selfplay.search.kld_stop = Some(KldStop {
        minimum_gain: 0.01,
        interval: 5,
    });
    selfplay.search.stop_when_decided = true;
    selfplay.search.solver = true;
    selfplay.full_search_share = 0.5;
    selfplay.fast_visits = 8;
    selfplay.book_share = 0.5;
    selfplay.opening_plies = 2;
    selfplay.resign = Some(ResignParams {
        threshold: 0.0,
        play_on_share: 0.5,
    });
    selfplay.tables = Some(TableParams::default());
    params
}

#[tokio::test]
async fn games_with_every_knob_on_are_accepted_and_resigning_is_measured() -> anyhow::Result<()> {
    let site = Site::start(&every_knob()).await?;
    site.submit_random(1).await?;
    let worker = site.worker("worker")?;
    site.wait_for_games(23).await?;
    site.finish("worker", worker)?;
    site.check_ledger()?;

    let metrics = reqwest::get(format!("{}/metrics", site.url())).await?;
    let metrics = metrics.error_for_status()?.text().await?;
    let counted = metrics
        .lines()
        .filter(|line| line.starts_with("rookery_played_on_games_total{"));
    let judged = counted.filter(|line| line.contains("right") || line.contains("wrong"));
    ensure!(judged.count() > 0, "{metrics}");
    Ok(())
}
