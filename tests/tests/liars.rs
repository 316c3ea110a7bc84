//! Liars and honest workers together: everything they send is well-formed, and the door or audits
//! tell them apart.

use anyhow::Context;
use rookery_common::protocol::jobs::Work;
use rookery_common::protocol::trust::{TrustInfo, TrustLevel};
use rookery_tests::audit_scenario::{AuditScenario, Sent};
use rookery_tests::liars::{COPIERS, HONEST, LIARS, Player, SELECTORS, THROWERS};
use rookery_tests::on_all_stores;
use rookery_tests::site::RUN;
use rookery_tests::stores::Stores;

/// Rounds within which audits find a liar: a chunk of few positions may go without one.
const ROUNDS: u32 = 8;

fn is_honest(player: &Player) -> bool {
    HONEST.iter().any(|honest| honest.name == player.name)
}

fn assert_never_suspected(trust: &TrustInfo) {
    assert_ne!(trust.level, TrustLevel::Quarantined, "{trust:?}");
    let found = (trust.audits_failed, trust.held_chunks);
    assert_eq!(found, (0, 0), "{trust:?}");
    assert!(trust.audited_positions > 0, "{trust:?}");
}

fn assert_found_by_audits(trust: &TrustInfo) {
    assert_eq!(trust.level, TrustLevel::Quarantined, "{trust:?}");
    let by = trust.quarantine.as_ref().map(|order| order.by.as_str());
    assert_eq!(by, Some("audits"), "{trust:?}");
    assert!(trust.audits_failed >= 2, "one convicts nobody: {trust:?}");
}

on_all_stores!(
    audits_tell_liars_from_honest_workers,
    every_copier_is_refused_with_its_code_and_nothing_copied_counts,
    every_match_thrower_is_refused_or_found_by_audits,
    who_sends_only_some_games_passes_audits_and_its_games_are_missed,
    pairs_that_somebody_keeps_back_are_for_others,
);

async fn audits_tell_liars_from_honest_workers(stores: Stores) -> anyhow::Result<()> {
    let mut scenario = AuditScenario::of_selfplay(stores).await?;
    let mut good = 0;
    for player in HONEST.iter().chain(&LIARS) {
        scenario.admit(player).await?;
    }
    for _ in 0..2 {
        for sent in scenario.round().await? {
            let receipt = sent.receipt()?;
            if is_honest(&sent.player) {
                good += u64::from(receipt.positions);
            }
        }
    }
    for (player, trust) in scenario.standings().await? {
        if is_honest(&player) {
            assert_never_suspected(&trust);
            // Small chunks make a pass only together.
            assert_eq!(trust.audits_open, 0, "{trust:?}");
        } else {
            assert_found_by_audits(&trust);
            let found = (trust.audits_failed, trust.held_chunks);
            assert_eq!(found, (2, 2), "{trust:?}");
        }
    }
    for (player, audits) in scenario.audits() {
        assert_eq!(audits, 2, "{}: one of each chunk", player.name);
    }
    let site = &scenario.site;
    assert_eq!(scenario.training_positions().await?, good);
    site.check_ledger()?;
    let liar = scenario.name_of(&LIARS[0])?;
    site.command(&["user", "clear", liar, "--reason", "looked at by hand"])?;
    assert!(scenario.training_positions().await? > good);
    site.check_ledger()?;
    Ok(())
}

/// Being refused is not held against anybody, as machines fail too: what they sent honestly before
/// counts on.
async fn every_copier_is_refused_with_its_code_and_nothing_copied_counts(
    stores: Stores,
) -> anyhow::Result<()> {
    let mut scenario = AuditScenario::of_selfplay(stores).await?;
    for player in HONEST[..1].iter().chain(&COPIERS) {
        scenario.admit(player).await?;
    }
    scenario.honest_round().await?;
    let before = scenario.training_positions().await?;
    let round = scenario.round().await?;
    let refusals: Vec<_> = round.iter().map(Sent::refusal).collect();
    let codes = [
        None,
        Some("false-result"),
        Some("wrong-choice"),
        Some("wrong-seed"),
        Some("duplicate-index"),
    ];
    assert_eq!(refusals, codes);
    let good = u64::from(round[0].receipt()?.positions);
    assert_eq!(scenario.training_positions().await?, before + good);
    for (_, trust) in scenario.standings().await? {
        assert_never_suspected(&trust);
    }
    scenario.site.check_ledger()?;
    Ok(())
}

/// Who throws a match plays against its searches, which the door sees, or lies about them, which
/// audits find. Who plays it honestly, in whatever numbers, passes both.
async fn every_match_thrower_is_refused_or_found_by_audits(stores: Stores) -> anyhow::Result<()> {
    let mut scenario = AuditScenario::of_matches(stores).await?;
    for player in HONEST.map(Player::in_matches).iter().chain(&THROWERS) {
        scenario.admit(player).await?;
    }
    let mut good = 0;
    for _ in 0..ROUNDS {
        let round = scenario.round().await?;
        let refusals: Vec<_> = round.iter().map(Sent::refusal).collect();
        assert_eq!(refusals, [None, None, None, Some("wrong-choice"), None]);
        for sent in round.iter().filter(|sent| is_honest(&sent.player)) {
            good += u64::from(sent.receipt()?.games);
        }
        let standings = scenario.standings().await?;
        let mut levels = standings.iter().map(|(_, trust)| trust.level);
        if levels.any(|level| level == TrustLevel::Quarantined) {
            break;
        }
    }
    let standings = scenario.standings().await?;
    let (honest, throwers) = standings.split_at(HONEST.len());
    for (_, trust) in honest {
        assert_never_suspected(trust);
    }
    let [(_, refused), (_, liar)] = throwers else {
        anyhow::bail!("two throwers were expected: {throwers:?}");
    };
    let audits = (refused.audited_positions, refused.held_chunks);
    assert_eq!(audits, (0, 0), "nothing of it came in: {refused:?}");
    assert_found_by_audits(liar);
    let matches = scenario.site.client().matches(RUN).await?;
    let counted: u64 = matches.iter().map(|m| m.tally.games()).sum();
    assert_eq!(counted, good, "the match is what honest play makes of it");
    scenario.site.check_ledger()?;
    Ok(())
}

/// What cannot be told from a machine that is switched off is not punished, but seen.
async fn who_sends_only_some_games_passes_audits_and_its_games_are_missed(
    stores: Stores,
) -> anyhow::Result<()> {
    let [selector, _] = &SELECTORS;
    let mut scenario = AuditScenario::of_selfplay(stores).await?;
    scenario.admit(&HONEST[0]).await?;
    scenario.admit(selector).await?;
    for _ in 0..2 {
        for sent in scenario.round().await? {
            sent.receipt()?;
        }
    }
    let found = scenario.found().await?;
    for (player, missing) in [(&HONEST[0], 0), (selector, 8)] {
        let name = scenario.name_of(player)?;
        let person = found.iter().find(|person| person.trust.name == name);
        let person = person.context("it has sent something")?;
        let games = (person.training_games, person.missing_games);
        assert_eq!(games, (16 - missing, missing), "{person:?}");
        assert_never_suspected(&person.trust);
    }
    scenario.site.check_ledger()?;
    Ok(())
}

async fn pairs_that_somebody_keeps_back_are_for_others(stores: Stores) -> anyhow::Result<()> {
    let [_, selector] = &SELECTORS;
    let mut scenario = AuditScenario::of_matches(stores).await?;
    scenario.admit(selector).await?;
    for sent in scenario.round().await? {
        assert_eq!((sent.given, sent.receipt()?.games), (8, 4));
    }
    let bob = scenario.site.client().register("bob").await?;
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
