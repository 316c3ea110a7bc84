//! Liars and honest workers together: everything they send is well-formed, and audits tell them
//! apart.

use anyhow::Context;
use rookery_common::protocol::jobs::Work;
use rookery_common::protocol::trust::TrustLevel;
use rookery_tests::court::Court;
use rookery_tests::liars::{HONEST, LIARS, SELECTORS};

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

/// What cannot be told from a machine that is switched off is not punished, but seen.
#[tokio::test]
async fn who_sends_only_some_games_passes_audits_and_its_games_are_missed() -> anyhow::Result<()> {
    let [selector, _] = &SELECTORS;
    let mut court = Court::of_selfplay().await?;
    court.admit(&HONEST[0]).await?;
    court.admit(selector).await?;
    for _ in 0..2 {
        for sent in court.round().await? {
            sent.answer
                .map_err(|problem| anyhow::anyhow!("{}: {problem}", sent.player.name))?;
        }
    }
    let found = court.found().await?;
    for (player, missing) in [(&HONEST[0], 0), (selector, 8)] {
        let name = court.name_of(player)?;
        let person = found.iter().find(|person| person.trust.name == name);
        let person = person.context("it has sent something")?;
        let games = (person.training_games, person.missing_games);
        assert_eq!(games, (16 - missing, missing), "{person:?}");
        let trust = &person.trust;
        assert_eq!((trust.audits_failed, trust.held_chunks), (0, 0));
        assert!(trust.audited_positions > 0, "{trust:?}");
    }
    court.site.check_ledger()?;
    Ok(())
}

#[tokio::test]
async fn pairs_that_somebody_keeps_back_are_for_others() -> anyhow::Result<()> {
    let [_, selector] = &SELECTORS;
    let mut court = Court::of_matches().await?;
    court.admit(selector).await?;
    for sent in court.round().await? {
        let receipt = sent
            .answer
            .map_err(|problem| anyhow::anyhow!("{}: {problem}", sent.player.name))?;
        assert_eq!((sent.given, receipt.games), (8, 4));
    }
    let bob = court.site.client().register("bob").await?;
    let job = bob.job().await?.context("there is a job")?;
    let Work::Match { pairs, .. } = &job.work else {
        anyhow::bail!("pairs were expected: {job:?}")
    };
    assert!(
        pairs[0].pair < 4,
        "the first four were handed out: {pairs:?}"
    );
    Ok(())
}
