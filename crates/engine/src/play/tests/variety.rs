//! What makes games and searches differ: openings, playout caps, forced playouts, early stops.

use std::collections::HashSet;

use rookery_common::chunk::PlyRecord;
use rookery_common::params::{ForcedPlayouts, KldStop};
use shakmaty::Move;

use super::*;

/// The random openings of many games.
fn openings(plies: u32, games: usize) -> Vec<Vec<Move>> {
    let params = SelfPlayParams {
        opening_plies: plies,
        ply_limit: 10,
        search: SearchParams {
            visits: 2,
            ..SearchParams::default()
        },
        ..SelfPlayParams::default()
    };
    let records = play_with(&self_play(params, games), 64, 10_000).0;
    let starts = records.into_iter().map(|record| record.start.moves);
    starts.collect()
}

#[test]
fn random_opening_plies_are_samples_of_the_policy() {
    let games = 2000;
    let mut evaluator = HandEvaluator::default();
    let start = GameHistory::default();
    let mut batch = Batch::new(evaluator.input(), evaluator.policy());
    let moves = canonical_moves(start.position());
    batch.push(&start, &moves);
    let mut answer = Evaluations::default();
    evaluator.evaluate(&batch, &mut answer).unwrap();
    let sum: f32 = answer.logits.iter().map(|logit| logit.exp()).sum();
    let firsts: Vec<Move> = openings(2, games).iter().map(|moves| moves[0]).collect();
    for (m, logit) in moves.iter().zip(&answer.logits) {
        let expected = f64::from(logit.exp() / sum);
        let count = firsts.iter().filter(|first| *first == m).count();
        let share = count as f64 / games as f64;
        let close = (share - expected).abs() < 0.03;
        assert!(close, "{m:?}: {share} for {expected}");
    }
    assert!(openings(0, 3).iter().all(Vec::is_empty));
}

fn spent(ply: &PlyRecord) -> u32 {
    ply.visits.iter().sum()
}

#[test]
fn fast_searches_are_short_and_without_noise() {
    let params = SelfPlayParams {
        full_search_share: 0.5,
        fast_visits: 6,
        reuse_tree: false,
        ..quick()
    };
    let records = play(&self_play(params, 24));
    for ply in records.iter().flat_map(|record| &record.plies) {
        let expected = if ply.effort == Effort::Full { 12 } else { 6 };
        assert_eq!(spent(ply), expected);
    }
    // Fast searches of one position are all alike, full ones are not.
    let distinct = |effort| {
        let firsts = records.iter().map(|record| &record.plies[0]);
        let same = firsts.filter(|ply| ply.effort == effort);
        let visits: HashSet<_> = same.map(|ply| ply.visits.clone()).collect();
        visits.len()
    };
    assert_eq!(distinct(Effort::Fast), 1);
    assert!(distinct(Effort::Full) > 1);
}

#[test]
fn forced_playouts_are_recorded_beside_a_target_without_them() {
    let mut params = quick();
    params.search.visits = 60;
    params.search.forced_playouts = Some(ForcedPlayouts { k: 4.0 });
    params.full_search_share = 0.5;
    params.fast_visits = 10;
    let mut pruned = 0;
    for record in play(&self_play(params, 4)) {
        let mut game = record.start.history().unwrap();
        for ply in &record.plies {
            assert_eq!(ply.target.is_some(), ply.effort == Effort::Full);
            if let Some(target) = &ply.target {
                let mut pairs = target.iter().zip(&ply.visits);
                assert!(pairs.all(|(weight, visits)| u32::from(*weight) <= *visits));
                let legal = canonical_moves(game.position());
                let played = legal.iter().position(|m| *m == ply.played).unwrap();
                assert!(target[played] > 0, "moves are sampled from what is left");
                let left: u32 = target.iter().map(|weight| u32::from(*weight)).sum();
                pruned += spent(ply) - left;
            }
            game.push(ply.played);
        }
    }
    assert!(pruned > 0);
}

#[test]
fn early_stops_save_visits_only_where_they_may() {
    let visits = |params: &SelfPlayParams, effort| {
        let records = play(&self_play(params.clone(), 4));
        let plies = records.iter().flat_map(|record| &record.plies);
        let same: Vec<u32> = plies
            .filter(|ply| ply.effort == effort)
            .map(spent)
            .collect();
        f64::from(same.iter().sum::<u32>()) / same.len() as f64
    };
    let mut params = SelfPlayParams {
        full_search_share: 0.5,
        fast_visits: 30,
        reuse_tree: false,
        temperature: Temperature::NONE,
        ..quick()
    };
    params.search.visits = 60;
    params.search.stop_when_decided = true;
    assert_eq!(visits(&params, Effort::Full), 60.0, "they are the target");
    assert!(visits(&params, Effort::Fast) < 29.0);
    params.temperature = Temperature::default();
    let sampled = visits(&params, Effort::Fast);
    assert_eq!(sampled, 30.0, "moves are sampled from them");
    params.search.kld_stop = Some(KldStop {
        minimum_gain: 0.01,
        interval: 10,
    });
    assert!(visits(&params, Effort::Full) < 55.0);
}
