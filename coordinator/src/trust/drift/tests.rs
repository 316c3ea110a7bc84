//! Fleets of simulated workers: games whose lengths, results and searches scatter as real ones do.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::chunk::{SearchSums, ValueSums};

use super::*;

/// What a player says of a search: its value, given what the network would say.
type Say = fn(&mut ChaCha8Rng, f64) -> f64;

/// Which games a player hands in.
type Keep = fn(&GameSums) -> bool;

#[derive(Clone, Copy)]
struct Player {
    visits: f64,
    entropy: f64,
    say: Say,
    keep: Keep,
}

const HONEST: Player = Player {
    visits: 100.0,
    entropy: 1.2,
    say: |_, value| value,
    keep: |_| true,
};

/// Searches of one game.
const PLIES: u32 = 80;

/// A game: the network's opinion goes the way of the result more often than not, and the values of
/// one game belong together.
fn game(rng: &mut ChaCha8Rng, player: &Player) -> GameSums {
    let luck: f64 = rng.random_range(-1.0..1.0);
    let noise: f64 = rng.random_range(-0.6..0.6);
    let result = match luck + noise {
        sum if sum > 0.4 => 1,
        sum if sum < -0.4 => -1,
        _ => 0,
    };
    let plies = rng.random_range(PLIES / 2..PLIES * 3 / 2);
    let mut searches = SearchSums {
        searches: plies,
        visits: (f64::from(plies) * player.visits) as u64,
        entropy: f64::from(plies) * (player.entropy + rng.random_range(-0.1..0.1)),
        values: Default::default(),
    };
    for ply in 0..plies {
        let side = if ply.is_multiple_of(2) { 1 } else { -1 };
        let seen = (luck * 0.9 + rng.random_range(-0.2..0.2)).clamp(-1.0, 1.0);
        let value = (player.say)(rng, f64::from(side) * seen);
        let group = match value {
            value if value < -1.0 / 3.0 => 0,
            value if value > 1.0 / 3.0 => 2,
            _ => 1,
        };
        let result = i64::from(side * result);
        searches.values[group] += ValueSums {
            searches: 1,
            value,
            result,
            error: (value - result as f64).powi(2),
        };
    }
    GameSums {
        games: 1,
        plies: plies.into(),
        draws: u32::from(result == 0),
        white_wins: u32::from(result == 1),
        searches,
    }
}

/// Chunks of as many games each.
fn chunks(seed: u64, user: i64, backend: &str, chunks: &[u32], player: &Player) -> Vec<Sample> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed << 16 | user.cast_unsigned());
    let of_games = |games: &u32| {
        let games = (0..*games).map(|_| game(&mut rng, player));
        sample(user, backend, games.filter(player.keep))
    };
    chunks.iter().map(of_games).collect()
}

fn sample(user: i64, backend: &str, games: impl Iterator<Item = GameSums>) -> Sample {
    let mut sums = GameSums::default();
    games.for_each(|game| sums += game);
    Sample {
        user: UserId(user),
        worker: "w".to_owned(),
        backend: backend.to_owned(),
        sums,
    }
}

/// Chunks of 32 games that are begun together, of which one in eight is interrupted: its games that
/// are in hand then, the longer ones, never come.
fn interrupted_now_and_then(seed: u64, user: i64, chunks: u32) -> Vec<Sample> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed << 16 | user.cast_unsigned());
    let of_games = |place: u32| {
        let end = if place.is_multiple_of(8) {
            rng.random_range(0..PLIES * 3 / 2)
        } else {
            u32::MAX
        };
        let games: Vec<_> = (0..32).map(|_| game(&mut rng, &HONEST)).collect();
        let done = |game: &GameSums| game.plies <= u64::from(end);
        sample(user, "cpu-f32", games.into_iter().filter(done))
    };
    (0..chunks).map(of_games).collect()
}

/// Honest contributors, half of them on each of two backends.
fn fleet(seed: u64, users: i64, sizes: &[u32]) -> Vec<Sample> {
    (0..users)
        .flat_map(|user| {
            let backend = ["cpu-f32", "cuda-bf16"][(user % 2) as usize];
            chunks(seed, user, backend, sizes, &HONEST)
        })
        .collect()
}

/// Contributor 99 stands out by this feature among others, and no other contributor does.
#[track_caller]
fn assert_liar_stands_out_alone(samples: &[Sample], feature: &str) {
    let found = suspects(samples);
    assert!(
        found.iter().any(|one| one.feature == feature),
        "{feature}: {found:?}"
    );
    assert!(
        found.iter().all(|one| one.user == UserId(99)),
        "{feature}: {found:?}"
    );
}

#[test]
fn honest_contributors_do_not_stand_out() {
    for seed in 0..12 {
        for (users, sizes) in [
            (60, &[32; 4][..]),
            (8, &[32; 6]),
            (5, &[8; 80]),
            // Chunks of one game each, and very unequal ones.
            (6, &[1; 300]),
            (7, &[3, 200, 40, 1, 64, 90, 32]),
        ] {
            assert_eq!(suspects(&fleet(seed, users, sizes)), [], "{seed} {users}");
        }
    }
}

#[test]
fn liars_stand_out_in_what_they_lie_about() {
    let flat: Say = |_, _| 0.0;
    let inverted: Say = |_, value| -value;
    let random: Say = |rng, _| rng.random_range(-1.0..1.0);
    let sure: Say = |_, value| 0.3 + 0.7 * value;
    for (lie, feature) in [
        (
            Player {
                entropy: 2.9,
                ..HONEST
            },
            "entropy of visits",
        ),
        (
            Player {
                visits: 400.0,
                ..HONEST
            },
            "visits of a search",
        ),
        (
            Player {
                say: flat,
                ..HONEST
            },
            "share of values that are not level",
        ),
        (
            Player {
                say: inverted,
                ..HONEST
            },
            "error of values",
        ),
        (
            Player {
                say: inverted,
                ..HONEST
            },
            "bias of values when winning",
        ),
        (
            Player {
                say: random,
                ..HONEST
            },
            "error of values",
        ),
        (
            Player {
                say: sure,
                ..HONEST
            },
            "bias of values when level",
        ),
    ] {
        for seed in 0..4 {
            let mut samples = fleet(seed, 12, &[32; 4]);
            samples.extend(chunks(seed, 99, "cpu-f32", &[32; 4], &lie));
            assert_liar_stands_out_alone(&samples, feature);
        }
    }
}

#[test]
fn a_third_of_liars_who_are_half_of_a_backend_do_not_move_what_is_usual() {
    let lie = Player {
        entropy: 2.9,
        ..HONEST
    };
    let mut samples = fleet(1, 12, &[32; 4]);
    for user in 90..96 {
        samples.extend(chunks(1, user, "cuda-bf16", &[32; 4], &lie));
    }
    let found = suspects(&samples);
    assert!(
        found.len() == 6 && found.iter().all(|one| one.user.0 >= 90),
        "{found:?}"
    );
}

#[test]
fn one_bad_worker_of_several_is_named() {
    let lie = Player {
        entropy: 2.9,
        ..HONEST
    };
    let mut samples = fleet(1, 12, &[32; 4]);
    let mut bad = chunks(1, 3, "cuda-bf16", &[32; 4], &lie);
    bad.iter_mut()
        .for_each(|sample| "broken".clone_into(&mut sample.worker));
    samples.extend(bad);
    let found = suspects(&samples);
    assert!(
        !found.is_empty() && found.iter().all(|one| one.worker == "broken"),
        "{found:?}"
    );
}

#[test]
fn another_name_for_every_chunk_hides_nobody() {
    let lie = Player {
        entropy: 2.9,
        ..HONEST
    };
    let mut samples = fleet(1, 12, &[32; 4]);
    let mut bad = chunks(1, 99, "cpu-f32", &[32; 4], &lie);
    bad.iter_mut().enumerate().for_each(|(place, sample)| {
        sample.worker = format!("w{place}");
        sample.backend = ["cpu-f32", "cuda-f32"][place % 2].to_owned();
    });
    samples.extend(bad);
    let found = suspects(&samples);
    assert!(
        !found.is_empty()
            && found.iter().all(|one| one.user == UserId(99)
                && (one.worker.as_str(), one.backend.as_str()) == (ALL_WORKERS, "32 bits")),
        "{found:?}"
    );
}

#[test]
fn few_chunks_or_few_people_say_nothing() {
    let lie = Player {
        entropy: 2.9,
        ..HONEST
    };
    let mut few = fleet(1, 12, &[32; 4]);
    few.extend(chunks(1, 99, "cpu-f32", &[32; 2], &lie));
    assert_eq!(suspects(&few), []);
    let mut two = fleet(1, 2, &[32; 40]);
    two.extend(chunks(1, 99, "cpu-f32", &[32; 40], &lie));
    assert_eq!(suspects(&two), []);
}

#[test]
fn who_sends_only_some_games_stands_out() {
    let keeping = |keep: Keep| Player { keep, ..HONEST };
    for (lie, feature) in [
        (
            keeping(|game| game.white_wins == 0),
            "share of White's wins",
        ),
        (keeping(|game| game.draws == 0), "share of draws"),
        (
            keeping(|game| game.plies <= u64::from(PLIES)),
            "game length",
        ),
    ] {
        for seed in 0..2 {
            let mut samples = fleet(seed, 40, &[32; 4]);
            samples.extend(chunks(seed, 99, "cpu-f32", &[32; 64], &lie));
            assert_liar_stands_out_alone(&samples, feature);
        }
    }
}

#[test]
fn who_is_interrupted_now_and_then_does_not_stand_out() {
    for seed in 0..8 {
        let mut samples = fleet(seed, 12, &[32; 4]);
        for user in 90..94 {
            samples.extend(interrupted_now_and_then(seed, user, 64));
        }
        assert_eq!(suspects(&samples), [], "{seed}");
    }
}
