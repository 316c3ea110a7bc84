//! Whole generations over the real programs: self-play, training, gate, verdict.

use anyhow::ensure;
use rookery_common::params::RunParams;
use rookery_common::protocol::matches::{MatchInfo, MatchStatus};
use rookery_common::protocol::networks::NetworkStatus;
use rookery_common::rating::gate::GateRule;
use rookery_tests::params::tiny;
use rookery_tests::programs::eventually;
use rookery_tests::site::{RUN, Site};

/// The first match that is decided.
async fn verdict(site: &Site) -> anyhow::Result<MatchInfo> {
    eventually("a gate match is decided", async || {
        let matches = site.trainer.matches(RUN).await?;
        Ok(matches.into_iter().find(|m| m.status != MatchStatus::Open))
    })
    .await
}

#[tokio::test]
async fn a_generation_is_played_trained_gated_and_promoted() -> anyhow::Result<()> {
    // A threshold below every score: what is tested is the way, not the strength.
    let gate = GateRule::Fixed {
        games: 4,
        threshold: 0.0,
    };
    let mut site = Site::start(&RunParams { gate, ..tiny() }).await?;
    let mut trainer = site.trainer("1x8")?;
    let mut workers = [site.worker("first")?, site.worker("second")?];
    let decided = verdict(&site).await?;
    for worker in &mut workers {
        worker.interrupt()?;
    }
    trainer.interrupt()?;

    let tally = decided.tally;
    let score = 2 * tally.wins + tally.draws;
    let expected = if score > 0 {
        MatchStatus::Promoted
    } else {
        MatchStatus::Rejected
    };
    assert_eq!(decided.status, expected);
    // The gate ends with the pair that decides it: the first that scores, or the last.
    let games = tally.wins + tally.draws + tally.losses;
    ensure!(games == 4 || games == 2 && score > 0, "{tally:?}");
    let run = site.run().await?;
    ensure!(run.training_positions >= 200, "{run:?}");
    let networks = site.trainer.networks(RUN).await?;
    let first = networks.iter().find(|n| n.number.0 == 0).map(|n| n.status);
    assert_eq!(first, Some(NetworkStatus::Initial));
    let best = if score > 0 {
        decided.candidate
    } else {
        decided.opponent
    };
    ensure!(run.best.is_some_and(|number| number >= best), "{run:?}");
    site.check_ledger()?;
    site.kill_coordinator()
}

#[tokio::test]
async fn a_candidate_that_does_not_win_is_rejected() -> anyhow::Result<()> {
    // Winning three games of four by luck needs mates within twenty plies of random play.
    let gate = GateRule::Fixed {
        games: 8,
        threshold: 0.75,
    };
    let site = Site::start(&RunParams { gate, ..tiny() }).await?;
    let best = site.random_network("1x8", 1)?;
    let mut damaged = best.clone();
    // The last numbers of the file are weights: other ones make another, no better network.
    for byte in damaged.iter_mut().rev().step_by(4).take(64) {
        *byte ^= 0x80;
    }
    let first = site.submit(&best).await?;
    let second = site.submit(&damaged).await?;
    assert_eq!(
        (first.status, second.status),
        (NetworkStatus::Initial, NetworkStatus::Candidate)
    );
    let again = site.submit(&damaged).await?;
    assert_eq!((again.number, again.duplicate), (second.number, true));

    let worker = site.worker("worker")?;
    let decided = verdict(&site).await?;
    assert_eq!(
        decided.status,
        MatchStatus::Rejected,
        "{}",
        worker.printed()
    );
    assert_eq!(site.run().await?.best, Some(first.number));
    site.check_ledger()?;
    Ok(())
}
