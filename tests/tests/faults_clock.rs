//! A coordinator whose clock is set forward and back by more than an hour under load: nothing that was
//! acknowledged is lost, and work goes on by itself.

use anyhow::{Context as _, ensure};
use rookery_tests::clock::Clock;
use rookery_tests::params::tiny;
use rookery_tests::player::honest_chunk;
use rookery_tests::site::{Site, SiteOptions};

/// Seconds by which it is set: more than an hour, so that the hour is another one whenever the test runs.
const STEP: i64 = 90 * 60;

/// Day and hour of the coordinator's clock, by what it logs of somebody who registers.
async fn hour(site: &Site, name: &str) -> anyhow::Result<String> {
    site.client().register(name).await?;
    let log = site.log();
    let mut lines = log.lines();
    let line = lines.rfind(|line| line.contains("has registered"));
    let line = line.with_context(|| format!("nobody registered:\n{log}"))?;
    let (hour, _) = line
        .split_once(':')
        .context("a line begins with the time")?;
    Ok(hour.to_owned())
}

#[tokio::test]
async fn a_clock_that_is_set_forward_and_back_loses_nothing() -> anyhow::Result<()> {
    let clock = Clock::new()?;
    let mut site = Site::start_with(
        &tiny(),
        SiteOptions {
            environment: clock.environment(),
            ..SiteOptions::default()
        },
    )
    .await?;
    site.submit_random(1).await?;
    let worker = site.worker("worker")?;
    let alice = site.client().register("alice").await?;
    let mut acknowledged = Vec::new();
    for (round, ahead) in [STEP, 0, -STEP, 0].into_iter().enumerate() {
        let first = honest_chunk(&alice.job().await?.context("there is a job")?)?;
        let receipt = alice.upload(&first).await?;
        let receipt = receipt.expect("an honest chunk is taken");
        acknowledged.push((first, receipt.sequence));
        let held = honest_chunk(&alice.job().await?.context("there is a job")?)?;

        let before = hour(&site, &format!("before-{round}")).await?;
        clock.set(ahead)?;
        let after = hour(&site, &format!("after-{round}")).await?;
        ensure!(before != after, "the clock is not set: {before}, {after}");
        // A lease that the clock has ended may be lost to its holder, who is told.
        match alice.upload(&held).await? {
            Ok(receipt) => acknowledged.push((held, receipt.sequence)),
            Err(refusal) => ensure!(refusal.code.as_str() == "lease-ended", "{refusal}"),
        }
        for (chunk, sequence) in &acknowledged {
            let again = alice.upload(chunk).await?.expect("it is known");
            assert_eq!((again.sequence, again.duplicate), (*sequence, true));
        }
        site.wait_for_games(site.run().await?.games).await?;
    }
    worker.kill()?;
    site.stop_coordinator()?;
    site.check_ledger()?;
    Ok(())
}
