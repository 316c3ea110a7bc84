//! Games between players.

use rookery_common::chess::GameResult;
use rookery_common::ids::Seed;
use rookery_common::network::Program;
use rookery_common::openings::OpeningBook;
use rookery_common::params::SearchParams;
use shakmaty::{Color, Position};

use super::alpha_beta::AlphaBeta;
use super::random::RandomMover;
use super::*;
use crate::dummy::HandEvaluator;

const fn alpha_beta(depth: u32) -> ProgramPlayer {
    ProgramPlayer::new(Program::alpha_beta(depth), 0)
}

const fn random(seed: u64) -> ProgramPlayer {
    ProgramPlayer::new(Program::Random, seed)
}

/// Plays a game of at most 200 plies, every move checked.
fn result(start: &GameStart, white: &mut dyn Player, black: &mut dyn Player) -> GameResult {
    let mut game = LiveGame::new(start).unwrap();
    while game.history().end().is_none() && game.moves().len() < 200 {
        let choices = match game.history().turn() {
            Color::White => white.choose(&[&game]),
            Color::Black => black.choose(&[&game]),
        };
        let choice = choices.unwrap()[0];
        assert!(game.history().position().is_legal(choice.m));
        game.push(choice.m);
    }
    game.history()
        .end()
        .map_or(GameResult::Draw, |end| end.result)
}

/// Wins less losses of the first player in this number of pairs of games.
fn balance(pairs: u32, first: &mut dyn Player, second: &mut dyn Player) -> i32 {
    let book = OpeningBook::built_in();
    let mut sum = 0;
    for pair in 0..pairs {
        let start = book.of_pair(Seed(9), pair).start().unwrap();
        sum += i32::from(result(&start, first, second).score_for(Color::White));
        sum += i32::from(result(&start, second, first).score_for(Color::Black));
    }
    sum
}

#[test]
fn alpha_beta_of_one_ply_beats_the_random_mover() {
    let balance = balance(5, &mut alpha_beta(1), &mut random(3));
    assert!(balance >= 8, "{balance}");
}

#[test]
fn the_fewer_moves_are_random_the_better_it_plays() {
    let mixed = |random| ProgramPlayer::new(Program::AlphaBeta { depth: 1, random }, 5);
    let over_random = balance(8, &mut mixed(50), &mut random(3));
    assert!(over_random >= 6, "{over_random}");
    let over_mixed = balance(8, &mut alpha_beta(1), &mut mixed(50));
    assert!(over_mixed >= 8, "{over_mixed}");
}

#[test]
fn as_many_moves_as_it_says_are_random() {
    let mover = RandomMover::new(7);
    let mut game = GameHistory::default();
    let mut count = 0;
    for _ in 0..400 {
        let m = mover.pick(&game).unwrap();
        count += u32::from(mover.pick_sometimes(&game, 30).is_some());
        assert!(mover.pick_sometimes(&game, 0).is_none());
        game.push(m);
        if game.end().is_some() {
            game = GameHistory::default();
        }
    }
    assert!((80..=160).contains(&count), "{count}");
}

#[test]
fn two_plies_beat_one() {
    let balance = balance(16, &mut alpha_beta(2), &mut alpha_beta(1));
    assert!(balance >= 8, "{balance}");
}

#[test]
fn a_searching_player_beats_the_random_mover() {
    let params = SearchParams::default();
    let hand = HandEvaluator::default();
    let mut searching = SearchingPlayer::new("hand".to_owned(), hand, params, 30);
    let balance = balance(4, &mut searching, &mut random(3));
    assert!(balance >= 4, "{balance}");
}

#[test]
fn a_program_plays_what_its_name_says() {
    let mut game = LiveGame::new(&GameStart::default()).unwrap();
    for _ in 0..8 {
        let drawn = RandomMover::new(7).pick(game.history()).unwrap();
        let found = AlphaBeta::new(2).search(game.history()).unwrap();
        assert_eq!(random(7).choose(&[&game]).unwrap()[0].m, drawn);
        assert_eq!(alpha_beta(2).choose(&[&game]).unwrap()[0].m, found.m);
        game.push(drawn);
    }
    let over = crate::testing::fen("7k/5K2/6Q1/8/8/8/8/8 b - - 0 1");
    for program in [random(7), alpha_beta(1)] {
        assert_eq!(program.pick(&over), None);
    }
}

#[test]
fn the_random_mover_is_the_same_in_any_company() {
    let start = GameStart::default();
    let game = LiveGame::new(&start).unwrap();
    let mut later = game.clone();
    let mut mover = random(1);
    later.push(mover.choose(&[&game]).unwrap()[0].m);
    let alone = [&game, &later].map(|game| mover.choose(&[game]).unwrap()[0]);
    assert_eq!(mover.choose(&[&game, &later]).unwrap(), alone);
    assert_eq!(
        mover.choose(&[&later, &game]).unwrap(),
        [alone[1], alone[0]]
    );
    let other = random(2).choose(&[&game, &later]).unwrap();
    let third = random(3).choose(&[&game, &later]).unwrap();
    assert!(other != alone || third != alone);
}
