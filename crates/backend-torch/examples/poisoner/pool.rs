//! A pool of chunks: played, verified as the coordinator verifies them, and audited.

use std::collections::BTreeMap;
use std::path::Path;

use rookery_backend_torch::NetworkEvaluator;
use rookery_common::audit::{Disagreement, Finding, Tolerance};
use rookery_common::chunk::{Caps, ChunkHeader, GameRecord, Lease, encode, read, verify};
use rookery_common::ids::{ContentHash, JobId, Seed};
use rookery_common::protocol::jobs::{Backend, Work, WorkKind};
use serde::Serialize;

use crate::Outcome;
use crate::again::audit;
use crate::aims::Aim;
use crate::games::{play as play_games, rules_of};
use crate::{gumbel, params};

/// Games of a chunk.
const GAMES: u32 = 8;
/// Chunks that are played side by side.
const TOGETHER: usize = 20;
/// Audits of each chunk by each auditor.
const AUDITS: u64 = 2;
/// Spans of an audit, without the searches that ended games.
const SPANS: usize = 8;
/// Audits that are taken together.
const POOLED: usize = 8;

/// What is to be played.
pub(crate) struct Plan<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) aim: Aim,
    pub(crate) chunks: usize,
    pub(crate) seed: u64,
}

/// What came of it.
#[derive(Debug, Default, Serialize)]
struct Pool {
    chunks: usize,
    games: usize,
    positions: usize,
    /// Chunks that the door refused, by code.
    refused: BTreeMap<String, usize>,
    /// Games by result.
    results: BTreeMap<String, usize>,
    /// By auditor.
    audits: BTreeMap<&'static str, Audits>,
}

/// What one auditor found.
#[derive(Debug, Serialize)]
struct Audits {
    audits: usize,
    /// Of so many audits at a time.
    pooled: usize,
    /// What is accepted by the tolerance of 32 bits on both sides, and by that of 16 on one.
    by_32: Accepted,
    by_16: Accepted,
    /// The distances of all positions together.
    found: Disagreement,
}

/// How many audits one tolerance accepts.
#[derive(Debug, Serialize)]
struct Accepted {
    one: usize,
    together: usize,
    /// Where the searches that ended games are not looked at.
    one_without_ends: usize,
    together_without_ends: usize,
}

/// Plays and verifies, and audits the accepted chunks; the answer is JSON.
pub(crate) fn play(plan: &Plan<'_>, mut evaluators: [NetworkEvaluator; 2]) -> Outcome<String> {
    std::fs::create_dir_all(plan.folder)?;
    let params = params(gumbel());
    let mut pool = Pool::default();
    let seeds: Vec<Seed> = (0..plan.chunks as u32)
        .map(|chunk| Seed(plan.seed).of_game(chunk))
        .collect();
    for seeds in seeds.chunks(TOGETHER) {
        let jobs = play_games(&params, seeds, GAMES, plan.aim, &mut evaluators[0])?;
        for (seed, games) in seeds.iter().zip(jobs) {
            keep(plan, *seed, &games, &mut pool)?;
        }
    }
    pool.audits = audits(plan.folder, &mut evaluators)?;
    Ok(serde_json::to_string(&pool)?)
}

/// What auditors find in all chunks of a folder.
fn audits(
    folder: &Path,
    [long, short]: &mut [NetworkEvaluator; 2],
) -> Outcome<BTreeMap<&'static str, Audits>> {
    let rules = rules_of(&params(gumbel()));
    let mut files: Vec<_> = std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    files.sort();
    let (mut by_long, mut by_short) = (Vec::new(), Vec::new());
    for (place, file) in (0..).zip(&files) {
        let (_, games) = read(&std::fs::read(file)?, &Caps::default())?;
        for chance in (place * AUDITS)..(place + 1) * AUDITS {
            by_long.push(audit(&rules, &games, chance, long)?);
            by_short.push(audit(&rules, &games, chance, short)?);
        }
    }
    Ok(BTreeMap::from([
        ("f32", judge(&by_long)),
        ("bf16", judge(&by_short)),
    ]))
}

/// Audits the chunks that are there; the answer is JSON.
pub(crate) fn audit_again(folder: &Path, mut evaluators: [NetworkEvaluator; 2]) -> Outcome<String> {
    Ok(serde_json::to_string(&audits(folder, &mut evaluators)?)?)
}

/// Encodes a chunk, verifies it, and writes it if it is accepted.
fn keep(plan: &Plan<'_>, seed: Seed, games: &[GameRecord], pool: &mut Pool) -> Outcome<()> {
    let work = Work::SelfPlay {
        network: ContentHash::of(b""),
        games: GAMES,
        openings: Vec::new(),
        params: params(gumbel()),
    };
    let (run, job): (_, JobId) = (
        "main".parse()?,
        "00000000-0000-0000-0000-000000000001".parse()?,
    );
    let header = ChunkHeader {
        run,
        job,
        networks: work.networks(),
        worker_version: env!("CARGO_PKG_VERSION").to_owned(),
        backend: if plan.aim.claims_short() {
            Backend::CudaBf16
        } else {
            Backend::CpuF32
        },
        kind: WorkKind::SelfPlay,
    };
    let bytes = encode(&header, games)?;
    let lease = Lease {
        run: &header.run,
        job,
        seed,
        work: &work,
        tables: None,
    };
    pool.chunks += 1;
    match verify(&bytes, &Caps::default(), &lease) {
        Ok(verified) => {
            pool.games += verified.games.len();
            pool.positions += verified.positions as usize;
            for game in games {
                let end = format!("{:?} {:?}", game.end.termination, game.end.result);
                *pool.results.entry(end).or_default() += 1;
            }
            std::fs::write(plan.folder.join(format!("{:04}.chunk", pool.chunks)), bytes)?;
        }
        Err(error) => *pool.refused.entry(error.to_string()).or_default() += 1,
    }
    Ok(())
}

/// The distances of an audit, by span.
type Distances = Vec<Vec<Disagreement>>;

fn judge(audits: &[Distances]) -> Audits {
    let sum = |audits: &[Distances], spans: usize| {
        let all = audits
            .iter()
            .flat_map(|audit| audit.iter().take(spans))
            .flatten();
        all.fold(Disagreement::default(), |sum, one| sum.and(*one))
    };
    let accepted = |theirs| {
        let tolerance = Tolerance::between(theirs, Backend::CpuF32);
        let accepted = |together, spans| {
            let parts = audits.chunks_exact(together).map(|part| sum(part, spans));
            parts
                .filter(|found| tolerance.judge(found) == Finding::Agrees)
                .count()
        };
        Accepted {
            one: accepted(1, usize::MAX),
            together: accepted(POOLED, usize::MAX),
            one_without_ends: accepted(1, SPANS),
            together_without_ends: accepted(POOLED, SPANS),
        }
    };
    Audits {
        audits: audits.len(),
        pooled: audits.len() / POOLED,
        by_32: accepted(Backend::CpuF32),
        by_16: accepted(Backend::CudaBf16),
        found: sum(audits, SPANS),
    }
}
