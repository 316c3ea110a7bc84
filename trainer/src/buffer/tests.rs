//! Tests of the replay buffer.

use rookery_common::chess::moves::canonical_moves;
use rookery_common::chunk::Effort;
use rookery_common::encoding::InputEncoding;

use super::*;
use crate::testing;

fn buffer(games: u64, capacity: u64) -> ReplayBuffer {
    let mut buffer = ReplayBuffer::new(capacity);
    for seed in 0..games {
        buffer.add(StoredGame::from_record(&testing::game(seed, 60)).unwrap());
    }
    buffer
}

/// Every position comes back as in the game itself, replayed from its start.
#[test]
fn positions_are_encoded_as_in_play() {
    for seed in 0..40 {
        let record = testing::game(seed, 200);
        let stored = StoredGame::from_record(&record).unwrap();
        let mut game = record.start.history().unwrap();
        for (ply, played) in record.plies.iter().enumerate() {
            let again = stored.history(ply as u32);
            for input in InputEncoding::ALL {
                assert_eq!(
                    input.encode(&again),
                    input.encode(&game),
                    "game {seed} ply {ply}"
                );
            }
            assert_eq!(
                canonical_moves(again.position()),
                canonical_moves(game.position())
            );
            game.push(played.played);
        }
    }
}

#[test]
fn targets_are_those_of_the_record() {
    let record = testing::game(5, 60);
    let stored = StoredGame::from_record(&record).unwrap();
    let mut mover = record.start.history().unwrap().turn();
    for (ply, played) in record.plies.iter().enumerate() {
        let weights: Vec<f32> = stored
            .policy_weights(ply as u32)
            .iter()
            .map(|w| f32::from(*w))
            .collect();
        match played.effort {
            Effort::Full => assert_eq!(weights, played.policy_weights()),
            Effort::Fast => assert!(weights.is_empty()),
        }
        let search = stored.value(ply as u32, mover, 1.0);
        assert!((search.q() - played.root_q).abs() < 1e-5 && search.win >= 0.0);
        assert!((search.draw - played.root_draw).abs() < 1e-5);
        let result = stored.value(ply as u32, mover, 0.0);
        assert_eq!(result.q(), f32::from(record.end.result.score_for(mover)));
        let half = stored.value(ply as u32, mover, 0.5);
        assert!((half.q() - (search.q() + result.q()) / 2.0).abs() < 1e-5);
        mover = !mover;
    }
}

#[test]
fn every_position_of_the_window_has_one_age() {
    let buffer = buffer(20, u64::MAX);
    let window = buffer.window(buffer.positions());
    let mut seen = std::collections::HashSet::new();
    for age in 0..window.len() {
        let (game, ply) = window.position(age).unwrap();
        assert!(ply < game.positions());
        assert!(seen.insert((std::ptr::from_ref(game), ply)));
    }
    assert_eq!(seen.len() as u64, buffer.positions());
    assert!(window.position(window.len()).is_none());
    let newest = window.position(0).unwrap();
    assert_eq!(newest.1, newest.0.positions() - 1);
}

#[test]
fn old_games_leave_when_newer_ones_fill_the_buffer() {
    let all = buffer(30, u64::MAX);
    let small = buffer(30, 100);
    assert!(small.positions() >= 100 && small.positions() < 100 + 60);
    let (all, small) = (all.window(100), small.window(100));
    assert_eq!(small.len(), 100);
    let encoded = |window: &Window, age| {
        let (game, ply) = window.position(age).unwrap();
        InputEncoding::Lc0112.encode(&game.history(ply))
    };
    assert!((0..100).all(|age| encoded(&all, age) == encoded(&small, age)));
}

#[test]
fn a_position_takes_little_memory() {
    let buffer = buffer(200, u64::MAX);
    let bytes = buffer.bytes() as f64 / buffer.positions() as f64;
    assert!(bytes < 150.0, "{bytes} bytes a position");
}
