//! Liars and honest workers together: everything they send is well-formed, and audits tell them
//! apart.

use rookery_common::protocol::trust::TrustLevel;
use rookery_tests::court::Court;
use rookery_tests::liars::{HONEST, LIARS};

#[tokio::test]
async fn audits_tell_liars_from_honest_workers() -> anyhow::Result<()> {
    let mut court = Court::of_selfplay().await?;
    let mut good = 0;
    for player in HONEST.iter().chain(&LIARS) {
        court.admit(player).await?;
    }
    for _ in 0..2 {
        for sent in court.round().await? {
            let receipt = sent
                .answer
                .map_err(|problem| anyhow::anyhow!("{}: {problem}", sent.player.name))?;
            if HONEST.iter().any(|honest| honest.name == sent.player.name) {
                good += u64::from(receipt.positions);
            }
        }
    }
    for (player, trust) in court.standings().await? {
        if HONEST.iter().any(|honest| honest.name == player.name) {
            let audits = (trust.audits_passed, trust.audits_failed, trust.held_chunks);
            assert_eq!(audits, (2, 0, 0), "{trust:?}");
        } else {
            assert_eq!(trust.level, TrustLevel::Quarantined, "{trust:?}");
            let found = (trust.audits_failed, trust.held_chunks);
            assert_eq!(found, (2, 2), "{trust:?}");
            assert!(trust.quarantine.is_some_and(|order| order.by == "audits"));
        }
    }
    let site = &court.site;
    assert_eq!(court.training_positions().await?, good);
    site.check_ledger()?;
    let liar = court.name_of(&LIARS[0])?;
    site.command(&["user", "clear", liar, "--reason", "looked at by hand"])?;
    assert!(court.training_positions().await? > good);
    site.check_ledger()?;
    Ok(())
}
