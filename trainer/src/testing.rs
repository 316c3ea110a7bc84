//! What this crate's tests share: random but honest games, chunks of them, and a network.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::moves::canonical_moves;
use rookery_common::chess::{GameEnd, GameHistory, Termination};
use rookery_common::chunk::{
    ChunkHeader, Effort, GameKind, GameRecord, GameStart, PlyRecord, encode,
};
use rookery_common::ids::{ContentHash, JobId, Seed};
use rookery_common::network::NetworkSpec;
use rookery_common::protocol::jobs::{Backend, WorkKind};
use rookery_model::Weights;

/// Start positions with Black to move, an en passant capture, castling, and half of a fifty-move
/// count.
const STARTS: [Option<&str>; 4] = [
    None,
    Some("r3k2r/8/8/8/3pP3/8/8/R3K2R b KQkq e3 0 20"),
    Some("4k3/8/8/8/8/8/4P3/R3K2R w KQ - 30 40"),
    Some("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1"),
];

/// A self-play game of at most `plies` searched plies that follows from its seed.
pub(crate) fn game(seed: u64, plies: usize) -> GameRecord {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut start = GameStart {
        fen: STARTS[rng.random_range(0..STARTS.len())].map(str::to_owned),
        moves: Vec::new(),
    };
    let mut history = start.history().unwrap();
    for _ in 0..rng.random_range(0..4) {
        if history.end().is_some() {
            break;
        }
        start.moves.push(random_move(&mut history, &mut rng));
    }
    let mut records = Vec::new();
    while records.len() < plies && history.end().is_none() {
        records.push(ply(&mut history, &mut rng));
    }
    GameRecord {
        index: seed as u32,
        kind: GameKind::SelfPlay { play_on: false },
        seed: Seed(seed),
        start,
        plies: records,
        end: history
            .end()
            .unwrap_or(GameEnd::draw(Termination::PlyLimit)),
    }
}

fn random_move(history: &mut GameHistory, rng: &mut ChaCha8Rng) -> shakmaty::Move {
    let legal = canonical_moves(history.position());
    let played = legal[rng.random_range(0..legal.len())];
    history.push(played);
    played
}

fn ply(history: &mut GameHistory, rng: &mut ChaCha8Rng) -> PlyRecord {
    let moves = canonical_moves(history.position()).len();
    let mut visits: Vec<u32> = (0..moves).map(|_| rng.random_range(0..20)).collect();
    visits[rng.random_range(0..moves)] += 1;
    let full = rng.random_bool(0.8);
    let target = full.then(|| visits.iter().map(|n| *n as u16 * 100 + 1).collect());
    let draw = rng.random_range(0..=1000);
    PlyRecord {
        played: random_move(history, rng),
        effort: if full { Effort::Full } else { Effort::Fast },
        visits,
        target,
        root_q: rng.random_range(draw - 1000..=1000 - draw) as f32 / 1000.0,
        root_draw: draw as f32 / 1000.0,
        best_q: 0.0,
    }
}

/// A small network of random numbers.
pub(crate) fn network() -> Weights {
    Weights::random(NetworkSpec::resnet(1, 8), 1).unwrap()
}

/// A chunk of `games` self-play games with its name.
pub(crate) fn chunk(seed: u64, games: u64) -> (ContentHash, Vec<u8>) {
    let games: Vec<_> = (0..games).map(|n| game(seed * 1000 + n, 40)).collect();
    chunk_of(&games)
}

/// A chunk of these games, all of one kind, with its name.
pub(crate) fn chunk_of(games: &[GameRecord]) -> (ContentHash, Vec<u8>) {
    let kind = match games.first().map(|game| &game.kind) {
        Some(GameKind::Match { .. }) => WorkKind::Match,
        Some(GameKind::Puzzle { .. }) => WorkKind::Puzzles,
        _ => WorkKind::SelfPlay,
    };
    let networks = [&b"network"[..], b"opponent"].map(ContentHash::of);
    let header = ChunkHeader {
        run: "main".parse().unwrap(),
        job: JobId(uuid::Uuid::from_u128(7)),
        networks: networks[..if kind == WorkKind::Match { 2 } else { 1 }].to_vec(),
        worker_version: "0.1.0".into(),
        backend: Backend::CpuF32,
        kind,
    };
    let bytes = encode(&header, games).unwrap();
    (ContentHash::of(&bytes), bytes)
}
