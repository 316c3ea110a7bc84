//! How far honest machines are apart in an audit, and how far liars are: the figures behind
//! `rookery_common::audit::Tolerance`.
//!
//! `cargo run -p rookery-backend-torch --example audits -- NETWORK WEAKER_NETWORK [GAMES [AUDITS]]`
//!
//! For each way to search, GAMES games (16) are played by the network in 32 bits, and by liars of
//! several kinds; AUDITS samples of each (10) are searched again by the network and compared. One
//! line for each: the mean and the standard deviation of one position's distance, the largest mean
//! of an audit, and the share of audits that would differ; at the end, how large the share of
//! honest machines' audits that differ may be.
//!
//! With `honest` in the place of the weaker network nobody lies. With `f32` nobody lies either, and all compute in 32 bits, but add
//! up in different orders: convolutions by Winograd's algorithm, by libtorch, and by libtorch on
//! two threads.

#![expect(clippy::print_stdout, reason = "figures for whoever started it")]

mod again;
mod players;
mod report;

use std::path::Path;

use again::audit;
use players::{Audited, HONEST, HONEST_LONG, Honest, Network, honest, lies, open};
use report::{Verdicts, report};
use rookery_backend_torch::Convolutions;
use rookery_common::ids::ContentHash;
use rookery_common::params::{GumbelParams, RootSearch, SearchParams, SelfPlayParams};
use rookery_common::protocol::audits::AuditedRules;
use rookery_engine::Precision;

/// What this program's functions return.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Plies of a game: enough for openings and middle games.
const PLIES: u32 = 80;

fn params(root: RootSearch, visits: u32, fast: bool) -> SelfPlayParams {
    SelfPlayParams {
        search: SearchParams {
            visits,
            root,
            ..SearchParams::default()
        },
        full_search_share: if fast { 0.5 } else { 1.0 },
        fast_visits: (visits / 4).max(2),
        ply_limit: PLIES,
        ..SelfPlayParams::default()
    }
}

/// Prints what so many audits find of games that were searched in one way.
fn compare(
    search: &str,
    params: &SelfPlayParams,
    players: &[Audited],
    audits: u64,
    by: &mut Network,
) -> Outcome<Verdicts> {
    let rules = AuditedRules::SelfPlay {
        network: ContentHash::of(b""),
        params: params.clone(),
    };
    let mut verdicts = Verdicts::default();
    for player in players {
        for auditor in player.auditors {
            let network = by.computed(*auditor);
            let found: Outcome<Vec<_>> = (0..audits)
                .map(|chance| Ok(audit(&rules, &player.games, chance, network)?.concat()))
                .collect();
            let who = format!("{} by {}", player.who, auditor.name());
            let backends = (player.backend, auditor.backend());
            verdicts = verdicts.and(report(search, &who, &found?, backends));
        }
    }
    Ok(verdicts)
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [network, weaker, rest @ ..] = arguments.as_slice() else {
        let needed =
            "two network files are needed: the network, and a weaker one, `honest` or `f32`";
        return Err(needed.into());
    };
    let number = |place: usize, default| rest.get(place).map_or(Ok(default), |n| n.parse());
    let (games, audits) = (number(0, 16)?, u64::from(number(1, 10)?));
    rookery_backend_torch::use_threads(1);
    let mut network = Network::open(Path::new(network))?;
    let players: &[Honest] = match weaker.as_str() {
        "f32" => &HONEST_LONG,
        _ => &HONEST,
    };
    let mut weaker = match weaker.as_str() {
        "f32" | "honest" => None,
        file => Some(open(
            Path::new(file),
            Precision::F32,
            Convolutions::Quickest,
        )?),
    };
    let gumbel = || RootSearch::Gumbel(GumbelParams::default());
    let searches = [
        ("PUCT 24", params(RootSearch::Puct, 24, false)),
        ("Gumbel 32", params(gumbel(), 32, false)),
        ("PUCT 100", params(RootSearch::Puct, 100, false)),
        ("PUCT 100, fast 25", params(RootSearch::Puct, 100, true)),
    ];
    println!(
        "| search | player | positions | policy | visits | value | best | choice | largest audit | differ |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let mut all = Verdicts::default();
    for (name, params) in &searches {
        let honest = honest(params, games, players, &mut network)?;
        all = all.and(compare(name, params, &honest, audits, &mut network)?);
        if let Some(weaker) = &mut weaker {
            let lies = lies(params, &honest[0].games, &mut network, weaker)?;
            compare(name, params, &lies, audits, &mut network)?;
        }
    }
    println!(
        "\nHonest machines: {} of {} audits differ, {:.2} % at most with 95 % confidence.",
        all.differ,
        all.audits,
        100.0 * all.bound(),
    );
    Ok(())
}
