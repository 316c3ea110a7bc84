//! Games come out right and reproducibly.

use std::sync::Arc;

use rookery_common::chess::moves::canonical_moves;
use rookery_common::chess::{GameEnd, GameHistory, GameResult, Termination};
use rookery_common::chunk::record::{Effort, GameKind, GameRecord, GameStart, Side};
use rookery_common::ids::Seed;
use rookery_common::params::{
    GumbelParams, MatchParams, PuzzleParams, RootSearch, SearchParams, SelfPlayParams, Temperature,
};

use super::*;
use crate::cache::EvaluationCache;
use crate::dummy::{HandEvaluator, UniformEvaluator};
use crate::evaluator::{Batch, Evaluations, Evaluator};

mod audited;
mod contests;
mod endings;
mod pool;
mod programs;
mod selfplay;
mod variety;
mod verified;

fn planned<G>(games: impl IntoIterator<Item = G>) -> Vec<Planned<G>> {
    (0..)
        .zip(games)
        .map(|(index, game)| Planned { index, game })
        .collect()
}

fn self_play(params: SelfPlayParams, games: usize) -> Job {
    let games = planned(vec![GameStart::default(); games]);
    Job {
        seed: Seed(42),
        work: Work::SelfPlay { params, games },
    }
}

fn quick() -> SelfPlayParams {
    SelfPlayParams {
        search: SearchParams {
            visits: 12,
            solver: false,
            ..SearchParams::default()
        },
        ply_limit: 60,
        ..SelfPlayParams::default()
    }
}

/// Plays a job to its end; the records by index.
fn play_with(job: &Job, concurrency: usize, cache: usize) -> (Vec<GameRecord>, Progress) {
    let caches = [(); 2].map(|()| Arc::new(EvaluationCache::new(cache)));
    let caches = if cache == 0 { &[][..] } else { &caches[..] };
    let mut pool = GamePool::new(job, concurrency, caches).unwrap();
    let (mut hand, mut uniform) = (HandEvaluator::default(), UniformEvaluator::default());
    let mut records = pool.run(&mut [&mut hand, &mut uniform]).unwrap();
    assert!(pool.done());
    records.sort_by_key(|record| record.index);
    (records, pool.progress())
}

fn play(job: &Job) -> Vec<GameRecord> {
    play_with(job, 4, 0).0
}

/// Replays a record: moves legal, visits sound, the end true.
fn check_record(record: &GameRecord, visits: u32, search: &RootSearch) {
    let mut game = record.start.history().unwrap();
    for ply in &record.plies {
        assert_eq!(game.end(), None);
        let legal = canonical_moves(game.position());
        assert_eq!(ply.visits.len(), legal.len());
        let played = legal.iter().position(|m| *m == ply.played).expect("legal");
        assert!(ply.visits[played] > 0, "only what was visited is played");
        assert!((1..=visits).contains(&ply.visits.iter().sum()));
        assert!((-1.0..=1.0).contains(&ply.root_q) && (-1.0..=1.0).contains(&ply.best_q));
        assert!((0.0..=1.0).contains(&ply.root_draw));
        let gumbel = matches!(search, RootSearch::Gumbel(_));
        assert_eq!(ply.target.is_some(), gumbel && ply.effort == Effort::Full);
        if let Some(target) = &ply.target {
            assert_eq!(target.len(), legal.len());
            let sum: u32 = target.iter().map(|weight| u32::from(*weight)).sum();
            assert!((400..600).contains(&sum), "500 units, rounded: {sum}");
        }
        game.push(ply.played);
    }
    let by_rule = [
        Termination::Resignation,
        Termination::Adjudication,
        Termination::PlyLimit,
    ];
    if !by_rule.contains(&record.end.termination) {
        assert_eq!(game.end(), Some(record.end));
    }
}
