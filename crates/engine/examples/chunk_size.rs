//! How small chunks are: bytes for each position beside gzip'd Lc0 V6 records of the same games.
//!
//! `cargo run --release -p rookery-engine --example chunk_size -- VISITS GAMES [gumbel]` plays
//! games with the hand-made evaluator and prints one JSON object.

#![expect(clippy::print_stdout, reason = "figures for whoever started it")]

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use rookery_common::chunk::export::v6;
use rookery_common::chunk::{ChunkHeader, GameRecord, GameStart, encode};
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::ids::{ContentHash, JobId, Seed};
use rookery_common::params::{GumbelParams, RootSearch, SelfPlayParams};
use rookery_common::protocol::jobs::{Backend, WorkKind};
use rookery_engine::dummy::HandEvaluator;
use rookery_engine::play::{GamePool, Job, Planned, Work};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default| arguments.get(place).map_or(Ok(default), |n| n.parse());
    let (visits, count) = (number(0, 100)?, number(1, 16)?);
    let gumbel = arguments.get(2).is_some_and(|word| word == "gumbel");
    let games = play(visits, count, gumbel)?;
    let positions: usize = games.iter().map(|game| game.plies.len()).sum();
    let chunk = encode(&header()?, &games)?.len() as f64 / positions as f64;
    let v6 = v6_bytes(&games)? as f64 / positions as f64;
    println!(
        "{{\"visits\": {visits}, \"root\": \"{}\", \"games\": {count}, \"positions\": {positions}, \
         \"chunk_bytes_per_position\": {chunk:.2}, \"v6_gzip_bytes_per_position\": {v6:.2}, \
         \"ratio\": {:.4}}}",
        if gumbel { "gumbel" } else { "puct" },
        chunk / v6,
    );
    Ok(())
}

fn play(visits: u32, count: u32, gumbel: bool) -> Outcome<Vec<GameRecord>> {
    let mut params = SelfPlayParams {
        ply_limit: 200,
        ..SelfPlayParams::default()
    };
    params.search.visits = visits;
    if gumbel {
        params.search.root = RootSearch::Gumbel(GumbelParams::default());
    }
    let games = (0..count)
        .map(|index| Planned {
            index,
            game: GameStart::default(),
        })
        .collect();
    let job = Job {
        seed: Seed(5),
        work: Work::SelfPlay { params, games },
    };
    let mut evaluator = HandEvaluator::new(InputEncoding::Lc0112, PolicyEncoding::Lc01858);
    Ok(GamePool::new(&job, count as usize, &[])?.run(&mut [&mut evaluator])?)
}

fn header() -> Outcome<ChunkHeader> {
    Ok(ChunkHeader {
        run: "main".parse()?,
        job: "00000000-0000-0000-0000-000000000001".parse::<JobId>()?,
        networks: vec![ContentHash::of(b"network")],
        worker_version: env!("CARGO_PKG_VERSION").to_owned(),
        backend: Backend::CpuF32,
        kind: WorkKind::SelfPlay,
    })
}

/// As lc0 writes them: one gzip file a game.
fn v6_bytes(games: &[GameRecord]) -> Outcome<usize> {
    let mut total = 0;
    for game in games {
        let mut file = GzEncoder::new(Vec::new(), Compression::default());
        file.write_all(&v6::game(game)?)?;
        total += file.finish()?.len();
    }
    Ok(total)
}
