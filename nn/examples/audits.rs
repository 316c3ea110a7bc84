//! How far honest machines are apart in an audit, and how far liars are: the figures behind
//! `rookery_common::audit::Tolerance`.
//!
//! `cargo run -p rookery-nn --example audits -- NETWORK WEAKER_NETWORK [GAMES [AUDITS]]`
//!
//! For each way to search, GAMES games are played by the network in 32 bits, and by liars of
//! several kinds; AUDITS samples of each are searched again by the network and compared. One line
//! for each: the mean and the standard deviation of one position's distance, the largest mean of
//! an audit, and the share of audits that would differ.

#![expect(clippy::print_stdout, reason = "figures for whoever started it")]

use std::path::Path;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::audit::{
    Disagreement, Finding, PlyDistance, Span, Tolerance, compare_span, sample, task, warm_up,
};
use rookery_common::chunk::{GameRecord, GameStart};
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::ids::{ContentHash, Seed};
use rookery_common::params::{GumbelParams, RootSearch, SearchParams, SelfPlayParams};
use rookery_common::protocol::audits::AuditedRules;
use rookery_common::protocol::jobs::Backend;
use rookery_engine::dummy::UniformEvaluator;
use rookery_engine::{AuditedGame, Evaluator, Job, Planned, Table, Work};
use rookery_nn::{DeviceChoice, NetworkEvaluator, Precision, Weights};

/// What this program's functions return.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Plies of a game: enough for openings and middle games.
const PLIES: u32 = 80;

fn open(path: &Path, precision: Precision) -> Outcome<NetworkEvaluator> {
    let (_, weights) = Weights::read(path)?;
    let device = DeviceChoice::Cpu.open()?;
    Ok(NetworkEvaluator::new(&weights, device, precision)?)
}

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

/// Plays games, `at_once` of them in one batch.
fn play(
    params: &SelfPlayParams,
    games: u32,
    at_once: usize,
    evaluator: &mut dyn Evaluator,
) -> Outcome<Vec<GameRecord>> {
    let plan = |index| Planned {
        index,
        game: GameStart::default(),
    };
    let work = Work::SelfPlay {
        params: params.clone(),
        games: (0..games).map(plan).collect(),
    };
    let job = Job {
        seed: Seed(20_261_121),
        work,
    };
    let mut games = Table::new(&job, at_once, &[])?.run(&mut [evaluator])?;
    games.sort_by_key(|game| game.index);
    Ok(games)
}

/// Samples games and searches the samples again.
fn audit(
    rules: &AuditedRules,
    games: &[GameRecord],
    chance: u64,
    evaluator: &mut dyn Evaluator,
) -> Outcome<Vec<PlyDistance>> {
    let lengths: Vec<_> = games
        .iter()
        .map(|game| (game.index, game.plies.len() as u32))
        .collect();
    let spans = sample(&lengths, warm_up(rules), Seed(chance));
    let mut audited = Vec::new();
    for (index, span) in (0..).zip(&spans) {
        let game = AuditedGame::of(&task(&games[span.game as usize], span)?)?;
        audited.push(Planned { index, game });
    }
    let work = Work::Audit {
        rules: rules.clone(),
        games: audited,
    };
    let job = Job {
        seed: Seed(0),
        work,
    };
    let again = Table::new(&job, 64, &[])?.run(&mut [evaluator])?;
    let mut distances = Vec::new();
    for game in &again {
        let span = &spans[game.index as usize];
        distances.extend(each(&games[span.game as usize], span, game));
    }
    Ok(distances)
}

/// The distances of a span's positions, one by one.
fn each(played: &GameRecord, span: &Span, again: &GameRecord) -> Vec<PlyDistance> {
    let first = (span.compared - span.first) as usize;
    let of = |place: u32| Span {
        compared: place,
        end: place + 1,
        ..*span
    };
    assert!(again.plies.len() > first);
    (span.compared..span.end)
        .map(|place| {
            let found = compare_span(played, &of(place), again);
            PlyDistance {
                policy: found.policy,
                value: found.value,
            }
        })
        .collect()
}

/// Mean and standard deviation.
fn moments(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|v| (v - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

/// Prints what audits found of one player.
fn report(search: &str, who: &str, audits: &[Vec<PlyDistance>], backends: (Backend, Backend)) {
    let all = || audits.iter().flatten();
    let policy = moments(all().map(|d| d.policy));
    let value = moments(all().map(|d| d.value));
    let pooled: Vec<Disagreement> = audits
        .iter()
        .map(|audit| {
            audit
                .iter()
                .fold(Disagreement::default(), |sum, d| sum.with(*d))
        })
        .collect();
    let most = |of: fn(&Disagreement) -> f64| pooled.iter().map(of).fold(0.0, f64::max);
    let tolerance = Tolerance::between(backends.0, backends.1);
    let differ = pooled
        .iter()
        .filter(|found| tolerance.judge(found) == Finding::Differs)
        .count();
    println!(
        "| {search} | {who} | {} | {:.4} ± {:.4} | {:.4} ± {:.4} | {:.4} | {:.4} | {differ} of {} |",
        all().count(),
        policy.0,
        policy.1,
        value.0,
        value.1,
        most(|found| found.policy),
        most(|found| found.value),
        pooled.len(),
    );
}

/// Replaces every search by visits drawn at random, as many as there were.
fn random_visits(games: &[GameRecord]) -> Vec<GameRecord> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut games = games.to_vec();
    for ply in games.iter_mut().flat_map(|game| &mut game.plies) {
        let all: u32 = ply.visits.iter().sum();
        let moves = ply.visits.len();
        ply.visits.fill(0);
        (0..all).for_each(|_| ply.visits[rng.random_range(0..moves)] += 1);
        if let Some(target) = &mut ply.target {
            target.rotate_left(moves / 2);
        }
    }
    games
}

/// Claims several visits for each that was made.
fn inflated(mut games: Vec<GameRecord>, times: u32) -> Vec<GameRecord> {
    for ply in games.iter_mut().flat_map(|game| &mut game.plies) {
        ply.visits.iter_mut().for_each(|n| *n *= times);
    }
    games
}

/// Honest games, but every `nth` is another's.
fn partly(honest: &[GameRecord], lies: &[GameRecord], nth: usize) -> Vec<GameRecord> {
    let pairs = honest.iter().zip(lies).enumerate();
    pairs
        .map(|(place, (honest, lie))| if place % nth == 0 { lie } else { honest })
        .cloned()
        .collect()
}

/// The networks that play and that search again.
struct Networks {
    f32: NetworkEvaluator,
    bf16: NetworkEvaluator,
    weaker: NetworkEvaluator,
}

/// In 32 bits and in 16.
const BOTH: [Backend; 2] = [Backend::CpuF32, Backend::CpuBf16];

/// A player's games, and who searches them again.
struct Audited {
    who: &'static str,
    /// Where the player says that they were played.
    backend: Backend,
    games: Vec<GameRecord>,
    auditors: &'static [Backend],
}

impl Audited {
    /// Games that one who lies claims to have played in 32 bits.
    const fn lies(who: &'static str, games: Vec<GameRecord>) -> Self {
        Self {
            who,
            backend: Backend::CpuF32,
            games,
            auditors: &BOTH,
        }
    }
}

/// The network's own games, first those of 64 at once in 32 bits.
fn honest(params: &SelfPlayParams, games: u32, by: &mut Networks) -> Outcome<Vec<Audited>> {
    let [long, short] = BOTH;
    Ok(vec![
        Audited {
            who: "honest, f32",
            backend: long,
            games: play(params, games, 64, &mut by.f32)?,
            auditors: &BOTH,
        },
        Audited {
            who: "honest, bf16",
            backend: short,
            games: play(params, games, 64, &mut by.bf16)?,
            auditors: &[Backend::CpuF32],
        },
        // Audits search eight spans at once, and so other batches than those of the games.
        Audited {
            who: "honest, f32 alone,",
            backend: long,
            games: play(params, games, 1, &mut by.f32)?,
            auditors: &[Backend::CpuF32],
        },
        Audited {
            who: "honest, bf16 alone,",
            backend: short,
            games: play(params, games, 1, &mut by.bf16)?,
            auditors: &[Backend::CpuBf16],
        },
    ])
}

/// What liars claim in the place of the honest games.
fn lies(
    params: &SelfPlayParams,
    honest: &[GameRecord],
    by: &mut Networks,
) -> Outcome<Vec<Audited>> {
    let games = honest.len() as u32;
    let few = SelfPlayParams {
        search: SearchParams {
            visits: (params.search.visits / 4).max(2),
            ..params.search.clone()
        },
        fast_visits: (params.fast_visits / 4).max(2),
        ..params.clone()
    };
    let mut uniform = UniformEvaluator::new(InputEncoding::Lc0112, PolicyEncoding::Lc01858);
    let weaker = play(params, games, 64, &mut by.weaker)?;
    let few = inflated(play(&few, games, 64, &mut by.f32)?, 4);
    let senseless = play(params, games, 64, &mut uniform)?;
    let every_fourth = partly(honest, &senseless, 4);
    Ok(vec![
        Audited::lies("weaker network,", weaker),
        Audited::lies("visits times 4,", few),
        Audited::lies("senseless,", senseless),
        Audited::lies("random visits,", random_visits(honest)),
        Audited::lies("a quarter senseless,", every_fourth),
    ])
}

/// Lets everybody play in one way to search, and prints what audits find.
fn compare(
    search: &str,
    params: &SelfPlayParams,
    (games, audits): (u32, u64),
    by: &mut Networks,
) -> Outcome<()> {
    let rules = AuditedRules::SelfPlay {
        network: ContentHash::of(b""),
        params: params.clone(),
    };
    let mut players = honest(params, games, by)?;
    players.extend(lies(params, &players[0].games, by)?);
    for player in &players {
        for auditor in player.auditors {
            let (numbers, network) = match auditor {
                Backend::CpuF32 => ("f32", &mut by.f32),
                _ => ("bf16", &mut by.bf16),
            };
            let found: Outcome<Vec<_>> = (0..audits)
                .map(|chance| audit(&rules, &player.games, chance, network))
                .collect();
            let who = format!("{} by {numbers}", player.who);
            report(search, &who, &found?, (player.backend, *auditor));
        }
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [network, weaker, rest @ ..] = arguments.as_slice() else {
        return Err("two network files are needed: the network, and a weaker one".into());
    };
    let number = |place: usize, default| rest.get(place).map_or(Ok(default), |n| n.parse());
    let (games, audits) = (number(0, 16)?, u64::from(number(1, 10)?));
    rookery_nn::use_threads(1);
    let mut networks = Networks {
        f32: open(Path::new(network), Precision::F32)?,
        bf16: open(Path::new(network), Precision::Bf16)?,
        weaker: open(Path::new(weaker), Precision::F32)?,
    };
    let gumbel = || RootSearch::Gumbel(GumbelParams::default());
    let searches = [
        ("PUCT 24", params(RootSearch::Puct, 24, false)),
        ("PUCT 100", params(RootSearch::Puct, 100, false)),
        ("PUCT 100, fast 25", params(RootSearch::Puct, 100, true)),
        ("Gumbel 32", params(gumbel(), 32, false)),
    ];
    println!(
        "| search | player | positions | policy | value | largest policy | largest value | differ |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (name, params) in &searches {
        compare(name, params, (games, audits), &mut networks)?;
    }
    Ok(())
}
