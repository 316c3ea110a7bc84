//! What the tests of chunks share: random but honest games and the job that they belong to.

use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::decode::ChunkHeader;
use super::error::ChunkError;
use super::record::{Effort, GameKind, GameRecord, GameStart, PlyRecord};
use super::verify::{Lease, VerifiedChunk, verify};
use super::{Caps, encode};
use crate::chess::moves::canonical_moves;
use crate::chess::{GameEnd, GameHistory, Termination};
use crate::ids::{ContentHash, JobId, RunName, Seed};
use crate::params::{GumbelParams, RootSearch, SelfPlayParams};
use crate::play::halving::visit_counts;
use crate::play::rules::{begin_ply, game_rng};
use crate::play::{GameRules, quantize};
use crate::protocol::jobs::{Backend, Work};

pub(super) const PLY_LIMIT: u32 = 60;
pub(super) const VISITS: u32 = 50;
pub(super) const SEED: Seed = Seed(99);

pub(super) fn job() -> JobId {
    JobId(uuid::Uuid::from_u128(7))
}

pub(super) fn run() -> RunName {
    "main".parse().expect("a run's name")
}

pub(super) fn network() -> ContentHash {
    ContentHash::of(b"network")
}

pub(super) fn work(games: u32) -> Work {
    let mut params = SelfPlayParams {
        ply_limit: PLY_LIMIT,
        ..SelfPlayParams::default()
    };
    params.search.visits = VISITS;
    // Their mates in one are not played.
    params.search.solver = false;
    params.search.root = RootSearch::Gumbel(GumbelParams::default());
    params.full_search_share = 0.5;
    params.fast_visits = 10;
    Work::SelfPlay {
        network: network(),
        games,
        openings: Vec::new(),
        params,
    }
}

pub(super) fn header() -> ChunkHeader {
    header_for(&work(1))
}

fn header_for(work: &Work) -> ChunkHeader {
    ChunkHeader {
        run: run(),
        job: job(),
        networks: work.networks(),
        worker_version: "0.1.0".into(),
        backend: Backend::CpuF32,
        kind: work.kind(),
    }
}

/// What the coordinator says of a chunk with these games, for which it has leased this work.
pub(super) fn verify_for(games: &[GameRecord], work: &Work) -> Result<VerifiedChunk, ChunkError> {
    let run = run();
    let bytes = encode(&header_for(work), games).expect("the games are legal");
    let lease = Lease {
        run: &run,
        job: job(),
        seed: SEED,
        work,
        tables: None,
    };
    verify(&bytes, &Caps::default(), &lease)
}

/// Thousandths, so that values survive rounding.
fn value(rng: &mut ChaCha8Rng, low: i32) -> f32 {
    rng.random_range(low..=1000) as f32 / 1000.0
}

/// A search that has found anything, but has the visits that its effort gives it; a move with most of them is
/// played.
fn ply(
    rng: &mut ChaCha8Rng,
    history: &GameHistory,
    rules: &GameRules,
    effort: Effort,
) -> PlyRecord {
    let legal = canonical_moves(history.position());
    let considered = legal.len().min(GumbelParams::default().considered as usize);
    let mut visits = visit_counts(considered, rules.visits(effort) as usize);
    visits.resize(legal.len(), 0);
    visits.shuffle(rng);
    let most = visits.iter().max();
    let played = visits.iter().position(|n| Some(n) == most);
    let policy: Vec<f32> = legal.iter().map(|_| rng.random::<f32>()).collect();
    let sum: f32 = policy.iter().sum();
    let policy: Vec<f32> = policy.into_iter().map(|p| p / sum).collect();
    PlyRecord {
        played: legal[played.expect("there are moves")],
        effort,
        visits,
        target: (effort == Effort::Full).then(|| quantize(&policy)),
        root_q: value(rng, -1000),
        root_draw: value(rng, 0),
        best_q: value(rng, -1000),
    }
}

pub(super) fn game(index: u32) -> GameRecord {
    let mut rng = ChaCha8Rng::seed_from_u64(u64::from(index));
    let mut history = GameHistory::default();
    let mut plies = Vec::new();
    let rules = GameRules::of(&work(1));
    let mut draws = game_rng(SEED.of_game(index));
    let end = loop {
        if let Some(end) = history.end() {
            break end;
        }
        if plies.len() == PLY_LIMIT as usize {
            break GameEnd::draw(Termination::PlyLimit);
        }
        begin_ply(&mut draws, plies.len() as u32);
        let effort = rules.draw_effort(&mut draws);
        let ply = ply(&mut rng, &history, &rules, effort);
        history.push(ply.played);
        plies.push(ply);
    };
    let kind = GameKind::SelfPlay { play_on: false };
    GameRecord {
        index,
        kind,
        seed: SEED.of_game(index),
        start: GameStart::default(),
        plies,
        end,
    }
}

pub(super) fn games(count: u32) -> Vec<GameRecord> {
    (0..count).map(game).collect()
}

pub(super) fn some_games() -> impl Strategy<Value = Vec<GameRecord>> {
    prop::collection::btree_set(0..500_u32, 1..4)
        .prop_map(|indices| indices.into_iter().map(game).collect())
}
