//! Tests of sampling.

use std::collections::HashMap;

use super::*;
use crate::buffer::{ReplayBuffer, StoredGame};
use crate::testing;

const SAMPLER: Sampler = Sampler {
    seed: 3,
    candidate: 0,
};

fn window(games: std::ops::Range<u64>) -> Window {
    let mut buffer = ReplayBuffer::new(u64::MAX);
    for seed in games {
        let plies = 2 + 6 * (seed as usize % 5);
        buffer.add(StoredGame::from_record(&testing::game(seed, plies)).unwrap());
    }
    buffer.window(u64::MAX)
}

fn counted<K: std::hash::Hash + Eq>(keys: impl Iterator<Item = K>) -> HashMap<K, u32> {
    let mut counts = HashMap::new();
    keys.for_each(|key| *counts.entry(key).or_default() += 1);
    counts
}

fn picks(mixture: &Mixture, batches: u64, size: usize, sampling: Sampling) -> Vec<Pick> {
    (0..batches)
        .flat_map(|number| SAMPLER.picks(number, size, mixture, sampling))
        .collect()
}

#[test]
fn every_position_is_as_likely_as_any_other() {
    let window = window(0..6);
    let mixture = Mixture::of(window.clone());
    let wanted = 1000 * window.len();
    let picks = picks(&mixture, wanted / 500, 500, Sampling::Positions);
    let counts = counted(picks.iter().map(|pick| pick.age));
    assert_eq!(counts.len() as u64, window.len());
    // About 1000 expected, a deviation of 31: five of them.
    assert!(
        counts.values().all(|n| n.abs_diff(1000) < 170),
        "{counts:?}"
    );
}

#[test]
fn every_game_is_as_likely_as_any_other_and_so_is_each_of_its_positions() {
    let window = window(0..10);
    let mixture = Mixture::of(window.clone());
    let picks = picks(&mixture, 3000, 4, Sampling::Games);
    let games = window.games();
    let game_of = |age: u64| (0..games).find(|game| window.ages_of(*game).contains(&age));
    let counts = counted(picks.iter().map(|pick| game_of(pick.age)));
    let mean = 12_000 / games as u32;
    assert_eq!(counts.len(), games);
    assert!(
        counts.values().all(|n| n.abs_diff(mean) < 180),
        "{counts:?}"
    );
    for (age, count) in counted(picks.iter().map(|pick| pick.age)) {
        let ages = window.ages_of(game_of(age).unwrap());
        let expected = f64::from(mean) / (ages.end - ages.start) as f64;
        let bound = 6.0 * expected.sqrt() + 5.0;
        assert!(
            (f64::from(count) - expected).abs() < bound,
            "{age}: {count} of {expected}"
        );
    }
}

#[test]
fn a_batch_has_one_position_of_a_game_as_long_as_there_are_games() {
    let window = window(0..10);
    let (mixture, games) = (Mixture::of(window.clone()), window.games());
    let game_of = |pick: &Pick| (0..games).find(|game| window.ages_of(*game).contains(&pick.age));
    for number in 0..50 {
        for size in [1, games / 2, games, 2 * games + 1] {
            let picks = SAMPLER.picks(number, size, &mixture, Sampling::Games);
            assert_eq!(picks.len(), size);
            let most = size.div_ceil(games) as u32;
            let counts = counted(picks.iter().map(game_of));
            assert!(counts.values().all(|n| *n <= most), "{counts:?}");
        }
    }
}

#[test]
fn windows_have_their_shares_of_the_batches() {
    let parts = [
        (window(0..8), 3.0),
        (window(8..10), 1.0),
        (window(10..30), 1.0),
    ];
    let mixture = Mixture::weighted(parts);
    for sampling in [Sampling::Positions, Sampling::Games] {
        let picks = picks(&mixture, 100, 100, sampling);
        let counts = counted(picks.iter().map(|pick| pick.part));
        for (part, expected) in [(0, 6000), (1, 2000), (2, 2000)] {
            assert!(counts[&part].abs_diff(expected) < 260, "{counts:?}");
        }
        assert!(picks.iter().all(|pick| mixture.position(*pick).is_some()));
    }
    let nothing = Mixture::weighted([(window(0..0), 1.0)]);
    assert!(nothing.is_empty());
    assert!(SAMPLER.picks(0, 8, &nothing, Sampling::Games).is_empty());
}

#[test]
fn a_batch_follows_from_its_number() {
    let mixture = Mixture::weighted([(window(0..20), 1.0), (window(20..40), 2.0)]);
    for sampling in [Sampling::Positions, Sampling::Games] {
        let of = |seed, candidate, number| {
            let sampler = Sampler { seed, candidate };
            let picks = sampler.picks(number, 30, &mixture, sampling);
            (picks, sampler.mirrored(number, 30, 0.5))
        };
        assert_eq!(of(1, 2, 3), of(1, 2, 3));
        for other in [of(2, 2, 3), of(1, 3, 3), of(1, 2, 4)] {
            assert!(other.0 != of(1, 2, 3).0 && other.1 != of(1, 2, 3).1);
        }
    }
}

#[test]
fn the_share_that_is_mirrored_is_the_one_asked_for() {
    let count = |share| {
        let chosen = SAMPLER.mirrored(0, 10_000, share);
        chosen.iter().filter(|mirror| **mirror).count()
    };
    assert_eq!((count(0.0), count(1.0)), (0, 10_000));
    assert!(count(0.25).abs_diff(2500) < 250);
}
