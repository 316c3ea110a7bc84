//! How many chunks of each kind of liar are refused at the door, how many audits find the others,
//! how many chunks it takes until the liar is in quarantine, and how many games of its jobs never
//! came; the same of honest contributors.
//!
//! `cargo run -p rookery-tests --example liars -- [CONTRIBUTORS [ROUNDS [HONEST_ROUNDS]]]`
//!
//! CONTRIBUTORS of each kind (10) play on a coordinator of its own, a chunk a round, for ROUNDS
//! (4) or until they are in quarantine, after HONEST_ROUNDS (1) in which everybody was honest. An
//! auditor of the operator's searches again what comes. Needs the coordinator and the trainer to
//! be built.

#![expect(clippy::print_stdout, reason = "figures for whoever started it")]

use std::collections::{BTreeMap, HashMap};

use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::trust::TrustLevel;
use rookery_tests::audit_scenario::{AuditScenario, Sent};
use rookery_tests::liars::{COPIERS, HONEST, LIARS, Player, SELECTORS, THROWERS};
use rookery_tests::stores::Stores;

/// What came of all contributors of a kind.
#[derive(Default)]
struct Outcome {
    chunks: u32,
    refused: BTreeMap<String, u32>,
    audited: u32,
    failed: u32,
    /// Chunks that each had sent when it was quarantined.
    until: Vec<u32>,
    people: u32,
    /// Games of jobs, and those of them that never came.
    given: u32,
    missing: u32,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let numbers: Vec<u32> = std::env::args()
        .skip(1)
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    let number = |place: usize, usual| numbers.get(place).copied().unwrap_or(usual);
    let (each, rounds, honest) = (number(0, 10), number(1, 4), number(2, 1));
    println!(
        "| contributor | chunks | refused at the door | audits | failed | quarantined | chunks until then | games that never came |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let all = [&HONEST[..], &LIARS, &COPIERS, &SELECTORS, &THROWERS].concat();
    let (selfplay, matches): (Vec<Player>, Vec<Player>) = all
        .into_iter()
        .partition(|player| player.kind == WorkKind::SelfPlay);
    let scenario = AuditScenario::of_selfplay(Stores::Files).await?;
    measure(scenario, &selfplay, each, rounds, honest).await?;
    let scenario = AuditScenario::of_matches(Stores::Files).await?;
    measure(scenario, &matches, each, rounds, honest).await
}

async fn measure(
    mut scenario: AuditScenario,
    players: &[Player],
    each: u32,
    rounds: u32,
    honest: u32,
) -> anyhow::Result<()> {
    for player in players {
        for _ in 0..each {
            scenario.admit(player).await?;
        }
    }
    for _ in 0..honest {
        scenario.honest_round().await?;
    }
    let mut outcomes: HashMap<&str, Outcome> = HashMap::new();
    let mut sent: HashMap<String, u32> = HashMap::new();
    for _ in 0..rounds {
        let (before, audits) = (
            scenario.standings().await?,
            scenario.audits().collect::<Vec<_>>(),
        );
        let round = scenario.round().await?;
        let after = scenario.standings().await?;
        for one in &round {
            note(outcomes.entry(one.player.name).or_default(), one);
            *sent.entry(one.name.clone()).or_default() += 1;
        }
        for ((player, before), (_, after)) in audits.iter().zip(scenario.audits()) {
            outcomes.entry(player.name).or_default().audited += after - before;
        }
        for ((player, before), (_, after)) in before.iter().zip(&after) {
            let outcome = outcomes.entry(player.name).or_default();
            outcome.failed += after.audits_failed - before.audits_failed;
            let quarantined = |level| level == TrustLevel::Quarantined;
            if quarantined(after.level) && !quarantined(before.level) {
                let chunks = sent.get(&after.name).copied().unwrap_or_default();
                outcome.until.push(chunks);
            }
        }
    }
    for player in players {
        let outcome = outcomes.entry(player.name).or_default();
        outcome.people = each;
        println!("{}", row(player.name, outcome));
    }
    Ok(())
}

fn note(outcome: &mut Outcome, sent: &Sent) {
    outcome.chunks += 1;
    if let Ok(receipt) = &sent.answer {
        outcome.given += sent.given;
        outcome.missing += sent.given - receipt.games;
    }
    if let Some(code) = sent.refusal() {
        *outcome.refused.entry(code.to_owned()).or_default() += 1;
    }
}

fn row(name: &str, outcome: &Outcome) -> String {
    let refused: u32 = outcome.refused.values().sum();
    let codes: Vec<String> = outcome
        .refused
        .iter()
        .map(|(code, count)| format!("`{code}` {count}"))
        .collect();
    let until = match outcome.until.iter().max() {
        Some(most) => {
            let mean = f64::from(outcome.until.iter().sum::<u32>()) / outcome.until.len() as f64;
            format!("{mean:.1} in the mean, {most} at most")
        }
        None => "–".to_owned(),
    };
    let codes = if codes.is_empty() {
        String::new()
    } else {
        format!(" ({})", codes.join(", "))
    };
    format!(
        "| {name} | {} | {refused}{codes} | {} | {} | {} of {} | {until} | {} of {} |",
        outcome.chunks,
        outcome.audited,
        outcome.failed,
        outcome.until.len(),
        outcome.people,
        outcome.missing,
        outcome.given,
    )
}
