//! What every position costs on one core: decoded, verified, encoded, its moves looked up.
//!
//! `cargo bench -p rookery-engine` (criterion) prints positions a second. The games are self-play with the
//! hand-made evaluator, once with AlphaZero's search and once with Gumbel's, whose targets take more room.

use std::time::Duration;

use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use rookery_common::chess::moves::canonical_moves;
use rookery_common::chess::{GameHistory, PackedMove};
use rookery_common::chunk::{
    Caps, ChunkHeader, ChunkReader, GameRecord, GameStart, Lease, encode, verify,
};
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::ids::{ContentHash, JobId, RunName, Seed};
use rookery_common::params::{GumbelParams, RootSearch, SelfPlayParams};
use rookery_common::protocol::jobs::{self, Backend, WorkKind};
use rookery_engine::dummy::HandEvaluator;
use rookery_engine::play::{GamePool, Job, Planned, Work};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const GAMES: u32 = 32;
const SEED: Seed = Seed(5);

fn main() -> Outcome<()> {
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(5))
        .configure_from_args();
    let roots = [
        ("puct", RootSearch::Puct),
        ("gumbel", RootSearch::Gumbel(GumbelParams::default())),
    ];
    for (name, root) in roots {
        chunks(&mut criterion, name, root)?;
    }
    encodings(&mut criterion)?;
    criterion.final_summary();
    Ok(())
}

/// Decoding is reading and replaying; verification checks all that a coordinator checks besides.
fn chunks(criterion: &mut Criterion, name: &str, root: RootSearch) -> Outcome<()> {
    let params = params(root);
    let games = play(&params)?;
    let (run, job) = ("main".parse::<RunName>()?, JobId(uuid::Uuid::from_u128(1)));
    let network = ContentHash::of(b"network");
    let header = ChunkHeader {
        run: run.clone(),
        job,
        networks: vec![network],
        worker_version: env!("CARGO_PKG_VERSION").to_owned(),
        backend: Backend::CpuF32,
        kind: WorkKind::SelfPlay,
    };
    let work = jobs::Work::SelfPlay {
        network,
        games: GAMES,
        openings: Vec::new(),
        params,
    };
    let lease = Lease {
        run: &run,
        job,
        seed: SEED,
        work: &work,
        tables: None,
    };
    let (bytes, caps) = (encode(&header, &games)?, Caps::default());
    verify(&bytes, &caps, &lease)?;
    let mut group = group(criterion, &format!("chunk/{name}"), positions(&games));
    group.bench_function("decode", |bencher| {
        bencher.iter(|| {
            let mut reader = ChunkReader::open(&bytes, &caps).expect("opened before");
            while reader.next_game().expect("read before").is_some() {}
        });
    });
    group.bench_function("verify", |bencher| {
        bencher.iter(|| verify(&bytes, &caps, &lease).expect("verified before"));
    });
    group.finish();
    Ok(())
}

/// From a game to what a network is given of it.
fn encodings(criterion: &mut Criterion) -> Outcome<()> {
    let games = play(&params(RootSearch::Puct))?;
    let mut histories: Vec<GameHistory> = Vec::new();
    for game in &games {
        let mut history = game.start.history()?;
        for ply in &game.plies {
            histories.push(history.clone());
            history.push(ply.played);
        }
    }
    let mut planes = group(criterion, "planes", histories.len());
    for input in InputEncoding::ALL {
        let mut binary = vec![0; input.binary_planes()];
        let mut scalars = vec![0.0; input.scalar_planes()];
        planes.bench_function(input.name(), |bencher| {
            bencher.iter(|| {
                for history in &histories {
                    input.encode_into(history, &mut binary, &mut scalars);
                }
            });
        });
    }
    planes.finish();
    let legal = |history: &GameHistory| {
        let moves = canonical_moves(history.position());
        moves.into_iter().map(PackedMove::pack).collect()
    };
    let legal: Vec<Vec<PackedMove>> = histories.iter().map(legal).collect();
    let mut indices = group(criterion, "policy indices", histories.len());
    for policy in PolicyEncoding::ALL {
        let mut into = Vec::with_capacity(256);
        indices.bench_function(policy.name(), |bencher| {
            bencher.iter(|| {
                for (history, moves) in histories.iter().zip(&legal) {
                    into.clear();
                    policy.indices_into(moves.iter().copied(), history.position(), &mut into);
                }
            });
        });
    }
    indices.finish();
    Ok(())
}

fn group<'a>(
    criterion: &'a mut Criterion,
    name: &str,
    positions: usize,
) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(positions as u64));
    group
}

fn positions(games: &[GameRecord]) -> usize {
    games.iter().map(|game| game.plies.len()).sum()
}

fn params(root: RootSearch) -> SelfPlayParams {
    let mut params = SelfPlayParams {
        ply_limit: 200,
        ..SelfPlayParams::default()
    };
    params.search.root = root;
    params
}

fn play(params: &SelfPlayParams) -> Outcome<Vec<GameRecord>> {
    let games = (0..GAMES).map(|index| Planned {
        index,
        game: GameStart::default(),
    });
    let job = Job {
        seed: SEED,
        work: Work::SelfPlay {
            params: params.clone(),
            games: games.collect(),
        },
    };
    let mut evaluator = HandEvaluator::new(InputEncoding::Lc0112, PolicyEncoding::Lc01858);
    Ok(GamePool::new(&job, GAMES as usize, &[])?.run(&mut [&mut evaluator])?)
}
