//! Tests of the replay buffer.

use rookery_common::chess::moves::canonical_moves;
use rookery_common::chess::{GameEnd, GameResult, Termination};
use rookery_common::chunk::{Effort, GameKind, GameRecord};
use rookery_common::encoding::InputEncoding;
use rookery_common::ids::ContentHash;
use rookery_common::params::{CutOff, SourceWeights};
use rookery_engine::Wdl;

use super::*;
use crate::testing;

fn stored(record: &GameRecord) -> StoredGame {
    StoredGame::from_record(record).unwrap()
}

const MATE: GameEnd = GameEnd {
    result: GameResult::WhiteWins,
    termination: Termination::Checkmate,
};

/// A game that somebody won.
fn won() -> GameRecord {
    GameRecord {
        end: MATE,
        ..testing::game(5, 60)
    }
}

/// Results and this share of the position's own search.
fn mix(q_ratio: f32, cut_off: CutOff) -> ValueMix {
    ValueMix {
        q_ratio,
        q_horizon: 1.0,
        discount: 1.0,
        cut_off,
    }
}

fn buffer(games: u64, capacity: u64) -> ReplayBuffer {
    let mut buffer = ReplayBuffer::new(capacity);
    for seed in 0..games {
        buffer.add(stored(&testing::game(seed, 60)));
    }
    buffer
}

/// Every position comes back as in the game itself, replayed from its start.
#[test]
fn positions_are_encoded_as_in_play() {
    for seed in 0..40 {
        let record = testing::game(seed, 200);
        let stored = stored(&record);
        let mut game = record.start.history().unwrap();
        for (ply, played) in record.plies.iter().enumerate() {
            let again = stored.history(ply as u32).unwrap();
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
        assert!(stored.history(stored.positions() + 1).is_none());
    }
}

#[test]
fn targets_are_those_of_the_record() {
    let record = won();
    let stored = stored(&record);
    let mut game = record.start.history().unwrap();
    for (ply, played) in record.plies.iter().enumerate() {
        let mover = game.turn();
        let legal = canonical_moves(game.position());
        let target = match stored.policy(ply as u32, &legal, mover) {
            PolicyTarget::Weights(weights) => weights.into_iter().map(f32::from).collect(),
            PolicyTarget::None => Vec::new(),
            PolicyTarget::Played { .. } => panic!("it was searched"),
        };
        match played.effort {
            Effort::Full => assert_eq!(target, played.policy_weights()),
            Effort::Fast => assert!(target.is_empty()),
        }
        let search = stored.value(ply as u32, mover, mix(1.0, CutOff::Draw));
        assert!((search.q() - played.root_q).abs() < 1e-5 && search.win >= 0.0);
        assert!((search.draw - played.root_draw).abs() < 1e-5);
        let result = stored.value(ply as u32, mover, mix(0.0, CutOff::Draw));
        assert_eq!(result.q(), f32::from(record.end.result.score_for(mover)));
        let half = stored.value(ply as u32, mover, mix(0.5, CutOff::Draw));
        assert!((half.q() - (search.q() + result.q()) / 2.0).abs() < 1e-5);
        game.push(played.played);
    }
}

#[test]
fn what_is_ahead_is_the_rest_of_the_game() {
    let record = won();
    let stored = stored(&record);
    let mut mover = record.start.history().unwrap().turn();
    let plies = record.plies.len();
    for ply in 0..plies {
        let ahead = stored.ahead(ply as u32, mover);
        assert_eq!(ahead.plies, Some((plies - ply) as f32));
        let short = ahead.short_value;
        assert!((short.win + short.draw + short.loss - 1.0).abs() < 1e-5);
        // The last ply's search has an eighth of it, the result the rest.
        if ply + 1 == plies {
            let (result, search) = (
                stored.value(ply as u32, mover, mix(0.0, CutOff::Draw)),
                record.plies[ply].root_q,
            );
            let expected = 7.0 / 8.0 * result.q() + search / 8.0;
            assert!((short.q() - expected).abs() < 1e-4);
        } else {
            // Seven eighths are what the opponent will see from the next ply on.
            let next = stored.ahead(ply as u32 + 1, !mover).short_value;
            let expected = record.plies[ply].root_q / 8.0 - 7.0 / 8.0 * next.q();
            assert!(
                (short.q() - expected).abs() < 0.02,
                "{} and {expected}",
                short.q()
            );
        }
        mover = !mover;
    }
}

/// A game that its ply limit ended says nothing of who wins, nor of how long that takes: training says what
/// counts instead.
#[test]
fn a_game_that_was_cut_off_has_no_result_of_its_own() {
    let limit = GameEnd::draw(Termination::PlyLimit);
    let puzzle = || GameKind::Puzzle {
        puzzle: "a".to_owned(),
        solved: true,
    };
    let mut record = testing::game(5, 60);
    let first = record.start.history().unwrap().turn();
    // At the end White expects a little more than Black grants.
    let plies = record.plies.len();
    for (ply, played) in record.plies.iter_mut().enumerate().skip(plies - 4) {
        let white_moves = first.is_white() == ply.is_multiple_of(2);
        played.root_q = if white_moves { 0.6 } else { -0.4 };
        played.root_draw = 0.2;
    }
    let game = |kind, end| {
        stored(&GameRecord {
            kind,
            end,
            ..record.clone()
        })
    };
    let mated = game(puzzle(), MATE);
    for cut_off in [
        game(puzzle(), limit),
        game(GameKind::SelfPlay { play_on: false }, limit),
    ] {
        let mut mover = first;
        for (ply, played) in (0..).zip(&record.plies) {
            let value = |share, rule| cut_off.value(ply, mover, mix(share, rule));
            let own = value(0.25, CutOff::OwnSearch);
            assert!((own.q() - played.root_q).abs() < 1e-5, "{own:?}");
            assert!((own.draw - played.root_draw).abs() < 1e-5, "{own:?}");
            let by_kind = match cut_off.source() {
                Source::Puzzle => CutOff::OwnSearch,
                _ => CutOff::Draw,
            };
            assert_eq!(value(0.25, CutOff::ByKind), value(0.25, by_kind));
            let drawn = value(0.25, CutOff::Draw);
            assert!((drawn.q() - played.root_q / 4.0).abs() < 1e-5, "{drawn:?}");
            let last = value(0.25, CutOff::LastSearch);
            let expected = 0.75 * mover.fold_wb(0.5, -0.5) + played.root_q / 4.0;
            assert!((last.q() - expected).abs() < 1e-5, "{last:?}");
            assert!((last.win + last.draw + last.loss - 1.0).abs() < 1e-5);
            let ahead = cut_off.ahead(ply, mover);
            assert_eq!(ahead.plies, None);
            if ply + 1 == cut_off.positions() {
                assert!((ahead.short_value.q() - played.root_q).abs() < 1e-5);
            }
            let won = mated.value(ply, mover, mix(0.0, CutOff::Draw));
            assert_eq!(won.q(), mover.fold_wb(1.0, -1.0));
            mover = !mover;
        }
    }
}

/// The longer the horizon, the more what comes counts: here the mover hopes for a draw, and it all turns out well.
#[test]
fn searches_that_come_count_by_their_distance() {
    let mut record = won();
    let plies = record.plies.len();
    for (ply, played) in record.plies.iter_mut().enumerate() {
        let known = if ply == 0 { 0.0 } else { 0.5 };
        played.root_q = if ply.is_multiple_of(2) { known } else { -known };
        played.root_draw = 0.0;
    }
    let (stored, mover) = (stored(&record), record.start.history().unwrap().turn());
    let value = |q_horizon| {
        let only_searches = mix(1.0, CutOff::Draw);
        let mix = ValueMix {
            q_horizon,
            ..only_searches
        };
        stored.value(0, mover, mix).q()
    };
    assert!(value(1.0).abs() < 1e-5);
    for horizon in [2.0, 4.0_f32] {
        let others = 1.0 - 1.0 / horizon;
        assert!((value(horizon) - 0.5 * others).abs() < 0.01, "{horizon}");
    }
    // Beyond the game's end its result counts.
    let result = f32::from(record.end.result.score_for(mover));
    let far = value(20.0 * plies as f32);
    assert!((far - result).abs() < 0.1, "{far} and {result}");
}

/// A win is worth more the nearer it is.
#[test]
fn what_is_far_away_counts_less() {
    let record = won();
    let (stored, mut mover) = (stored(&record), record.start.history().unwrap().turn());
    let plies = record.plies.len();
    for (ply, played) in record.plies.iter().enumerate() {
        let value = |q_ratio, q_horizon| {
            let mix = ValueMix {
                q_horizon,
                discount: 0.98,
                ..mix(q_ratio, CutOff::Draw)
            };
            stored.value(ply as u32, mover, mix)
        };
        let left = 0.98_f32.powi((plies - ply) as i32);
        let won = value(0.0, 1.0);
        assert!((won.q() - mover.fold_wb(left, -left)).abs() < 1e-5);
        assert!((won.draw - (1.0 - left)).abs() < 1e-5);
        let own = value(1.0, 1.0);
        assert!((own.q() - played.root_q).abs() < 1e-5, "nothing is nearer");
        let ahead = value(1.0, 8.0);
        assert!((ahead.win + ahead.draw + ahead.loss - 1.0).abs() < 1e-4);
        mover = !mover;
    }
}

/// However many sure plies add up to it: the network is taught no more than certainty.
#[test]
fn what_is_ahead_of_a_won_game_is_certain_and_no_more() {
    let mut record = testing::game(5, 200);
    let first = record.start.history().unwrap().turn();
    record.end.result = GameResult::BlackWins;
    for (ply, played) in record.plies.iter_mut().enumerate() {
        let black_moves = first.is_black() == ply.is_multiple_of(2);
        played.root_q = if black_moves { 1.0 } else { -1.0 };
        played.root_draw = 0.0;
    }
    let (stored, mut mover) = (stored(&record), first);
    for ply in 0..stored.positions() {
        let short = stored.ahead(ply, mover).short_value;
        let sure = if mover.is_black() {
            short.win
        } else {
            short.loss
        };
        assert!((0.999..=1.0).contains(&sure), "{short:?} at ply {ply}");
        mover = !mover;
    }
}

#[test]
fn played_games_teach_their_moves() {
    let game = testing::game(8, 60);
    let start = game.start.history().unwrap();
    let moves: Vec<_> = game.plies.iter().map(|ply| ply.played).collect();
    let result = GameResult::BlackWins;
    let played = record::Played {
        start: start.position(),
        moves: &moves,
        values: &[],
        given: 4,
        shares: [0.7, 0.9],
        result,
    };
    let packed = record::pack_played(&played).unwrap();
    let per_position = packed.len() as f64 / moves.len() as f64;
    assert!(per_position < 10.0, "{per_position} bytes a position");
    let mut store = GameStore::in_memory();
    let kept = store.add(ContentHash::of(b"x"), &[packed]).unwrap();
    let (kept, mut history) = (&kept[0], start);
    assert_eq!(
        (kept.positions(), kept.source()),
        (moves.len() as u32 - 4, Source::Pgn)
    );
    for (place, m) in moves.iter().enumerate() {
        if let Some(ply) = place.checked_sub(4) {
            let legal = canonical_moves(history.position());
            let again = kept.history(ply as u32).unwrap();
            assert_eq!(again.position(), history.position());
            let PolicyTarget::Played { place, share } =
                kept.policy(ply as u32, &legal, history.turn())
            else {
                panic!("the move is the target");
            };
            assert_eq!(legal[place], *m);
            assert!((share - history.turn().fold_wb(0.7, 0.9)).abs() < 1e-4);
            let value = kept.value(ply as u32, history.turn(), mix(0.5, CutOff::Draw));
            assert_eq!(value.q(), history.turn().fold_wb(-1.0, 1.0));
        }
        history.push(*m);
    }
}

#[test]
fn values_in_comments_are_kept_with_the_game() {
    let game = testing::game(8, 60);
    let start = game.start.history().unwrap();
    let moves: Vec<_> = game.plies.iter().map(|ply| ply.played).collect();
    let value = |ply: usize| (ply % 3 != 1).then_some(if ply == 9 { -1.0 } else { 0.25 });
    let values: Vec<_> = (0..moves.len()).map(value).collect();
    let played = record::Played {
        start: start.position(),
        moves: &moves,
        values: &values[..moves.len() - 1],
        given: 4,
        shares: [0.7, 0.9],
        result: GameResult::Draw,
    };
    let packed = record::pack_played(&played).unwrap();
    let mut store = GameStore::in_memory();
    let kept = store.add(ContentHash::of(b"x"), &[packed]).unwrap();
    for place in 4..moves.len() {
        let target = kept[0].value(
            place as u32 - 4,
            shakmaty::Color::White,
            mix(0.4, CutOff::Draw),
        );
        let known = value(place).filter(|_| place + 1 < moves.len());
        assert!((target.q() - 0.4 * known.unwrap_or(0.0)).abs() < 1e-3);
        assert!((target.win + target.draw + target.loss - 1.0).abs() < 1e-5);
        // A comment says nothing of draws; its points say how many are likely.
        let draw = 0.6 + 0.4 * known.map_or(1.0, |q| Wdl::from_score(q).draw);
        assert!((target.draw - draw).abs() < 1e-5, "{target:?}");
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
fn the_ages_of_all_games_are_the_ages_of_the_window() {
    let buffer = buffer(20, u64::MAX);
    for size in [1, 50, 333, buffer.positions()] {
        let window = buffer.window(size);
        let mut next = 0;
        for game in 0..window.games() {
            let ages = window.ages_of(game);
            assert!(
                ages.start == next && ages.end > next,
                "game {game} of {size}"
            );
            next = ages.end;
        }
        assert_eq!(next, window.len());
        assert!(window.ages_of(window.games()).is_empty());
    }
    assert_eq!(buffer.window(0).games(), 0);
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
        InputEncoding::Lc0112.encode(&game.history(ply).unwrap())
    };
    assert!((0..100).all(|age| encoded(&all, age) == encoded(&small, age)));
}

#[test]
fn a_position_takes_little_memory() {
    let buffer = buffer(200, u64::MAX);
    let bytes = buffer.bytes() as f64 / buffer.positions() as f64;
    assert!(bytes < 100.0, "{bytes} bytes a position");
}

#[test]
fn a_mixture_has_the_kinds_that_weights_ask_for() {
    let mut buffer = ReplayBuffer::new(u64::MAX);
    for seed in 0..20 {
        let mut game = testing::game(seed, 30);
        if seed % 4 == 0 {
            game.kind = GameKind::Puzzle {
                puzzle: seed.to_string(),
                solved: true,
            };
        }
        buffer.add(stored(&game));
    }
    let window = buffer.window(buffer.positions() - 3);
    let none = || (ReplayBuffer::new(1).window(1), 0.5);
    let mixture = |selfplay, puzzles, others| {
        let weights = SourceWeights { selfplay, puzzles };
        Mixture::of_run(window.clone(), Some(weights), others)
    };
    let sizes = |mixture: &Mixture| {
        let parts = mixture.parts().iter();
        parts
            .map(|(window, weight)| (window.len(), *weight))
            .collect::<Vec<_>>()
    };
    let both = sizes(&mixture(3.0, 1.0, none()));
    assert_eq!(both.len(), 2);
    assert_eq!(both[0].0 + both[1].0, window.len(), "no position is lost");
    assert!(both[1].0 > 0 && both[0].0 > both[1].0);
    assert_eq!(sizes(&mixture(1.0, 0.0, none())), [(both[0].0, 1.0)]);
    let with_others = sizes(&mixture(3.0, 1.0, (window.clone(), 0.2)));
    let weights: Vec<_> = with_others.iter().map(|(_, weight)| *weight).collect();
    let expected = [0.6, 0.2, 0.2];
    assert!(
        weights
            .iter()
            .zip(expected)
            .all(|(w, e)| (w - e).abs() < 1e-9),
        "{weights:?}"
    );
    // Kinds that are wanted but not there leave the window as it is.
    let puzzles_only = ReplayBuffer::new(u64::MAX).window(9);
    assert!(Mixture::of_run(puzzles_only, None, none()).is_empty());
}
