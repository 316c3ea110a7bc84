//! Simulated fleets of which a part lies and cooperates, at a whole coordinator whose clock is moved by hand.
//!
//! ```text
//! FleetParams ─> Fleet (accounts register, play, audit, lie; the clock jumps from event to event)
//!                  └─> chunks with their truth ─┬─> Report (a row of a table, JSON)
//!                      holds, records, ledger ──┘
//! ```
//!
//! Router, verification, ledger, draws and verdicts are the coordinator's own. Made up are the games (valid,
//! and quickly made) and what networks would say of them: an honest auditor finds a false chunk's
//! searches to be others, and an honest one's to be the same.
//!
//! The tests below are short. `report` is for larger fleets, given as a list in the variable `FLEETS`:
//!
//! ```text
//! FLEETS='[{"accounts": 200, "sybils": 0.2, "record": 60, "strategy": "patient"}]' \
//!     cargo test --release -p rookery-coordinator --test suite fleets::report -- --ignored --nocapture
//! ```

mod account;
mod fleet;
mod games;
mod report;

use serde::{Deserialize, Serialize};

use fleet::Fleet;
use report::Report;

/// Who can be believed from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Root {
    /// An auditor of the operator's, who plays when nothing is to be audited.
    Auditor,
    /// Volunteers for whom an auditor vouched who has gone. They need a `record`.
    Volunteers,
    /// Nobody.
    Nobody,
}

/// What the Sybils do until they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Strategy {
    /// They register within seconds from one block of addresses, and lie from the start.
    AtOnce,
    /// They register like everybody else, each from a block of its own, and lie from the start.
    Spread,
    /// The same, but those who are found come back an hour later under another name.
    Returning,
    /// They register like everybody else and are honest until they have passed `patience` audits.
    Patient,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FleetParams {
    accounts: usize,
    /// Share of the accounts that lie.
    sybils: f64,
    root: Root,
    strategy: Strategy,
    /// Of how many chunks of a Sybil one is false.
    lie_every: u32,
    /// Passed audits from which a patient Sybil lies.
    patience: u32,
    /// Whether Sybils say of honest chunks that they are false.
    accuse: bool,
    /// Passed audits with which those who register before the first day begin.
    record: u32,
    /// Simulated hours.
    hours: i64,
    /// Games of a chunk, of 100 plies each.
    games: u32,
    /// Hours a day for which an account is at work.
    hours_a_day: i64,
    /// Of everything that the simulation draws itself; the coordinator draws from the system.
    seed: u64,
}

impl Default for FleetParams {
    fn default() -> Self {
        Self {
            accounts: 200,
            sybils: 0.2,
            root: Root::Auditor,
            strategy: Strategy::Spread,
            lie_every: 1,
            patience: 30,
            accuse: true,
            record: 0,
            hours: 48,
            games: 32,
            hours_a_day: 6,
            seed: 1,
        }
    }
}

async fn simulate(params: FleetParams) -> Report {
    let mut fleet = Fleet::new(params).await;
    fleet.run().await;
    fleet.report().await
}

/// A fleet small enough for a test.
fn small() -> FleetParams {
    FleetParams {
        accounts: 20,
        sybils: 0.4,
        hours: 2,
        games: 16,
        hours_a_day: 24,
        ..FleetParams::default()
    }
}

#[tokio::test]
async fn lies_of_newcomers_are_found_by_an_auditor_and_nobody_honest_is_quarantined() {
    for strategy in [Strategy::AtOnce, Strategy::Spread] {
        let report = simulate(FleetParams {
            strategy,
            ..small()
        })
        .await;
        assert_eq!(report.honest_quarantined, 0, "{report:?}");
        assert_eq!(report.sybils_found, report.sybils, "{report:?}");
        assert_eq!(report.excluded, report.false_chunks, "{report:?}");
    }
}

/// Their record is long, so that three of four of their chunks are not looked at, and their word counts.
#[tokio::test]
async fn proven_sybils_are_found_soon_by_an_auditor_and_convict_nobody_honest() {
    let report = simulate(FleetParams {
        accounts: 12,
        sybils: 0.25,
        strategy: Strategy::Patient,
        record: 60,
        games: 32,
        hours: 8,
        ..small()
    })
    .await;
    assert_eq!(report.honest_quarantined, 0, "{report:?}");
    assert_eq!(report.sybils_found, report.sybils, "{report:?}");
    assert!(report.false_before_found < 20.0, "{report:?}");
    assert!(report.cost < 0.02, "{report:?}");
}

#[tokio::test]
async fn who_vouched_for_each_other_quarantine_nobody_honest() {
    let report = simulate(FleetParams {
        root: Root::Nobody,
        ..small()
    })
    .await;
    assert_eq!(report.honest_quarantined, 0, "{report:?}");
    assert!(report.audits > 0 && report.accusations > 0, "{report:?}");
}

#[tokio::test]
#[ignore = "takes minutes, and prints figures"]
async fn report() {
    let fleets = std::env::var("FLEETS").unwrap_or_else(|_| "[{}]".to_owned());
    let fleets: Vec<FleetParams> = serde_json::from_str(&fleets).unwrap();
    let mut rows = Vec::new();
    for params in fleets {
        let report = simulate(params).await;
        println!("{}", serde_json::to_string(&report).unwrap());
        rows.push(report.row());
    }
    println!("{}", Report::HEAD);
    rows.iter().for_each(|row| println!("{row}"));
}
