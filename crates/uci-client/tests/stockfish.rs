//! Conversations with the real Stockfish.

use std::time::Duration;

use rookery_common::chess::GameHistory;
use rookery_common::chess::moves::{canonical_moves, parse_uci};
use rookery_uci::{Engine, Game, Launch, Limits, OptionKind, Score, UciError};
use shakmaty::{CastlingMode, Chess, Move, Position};

fn stockfish() -> Launch {
    Launch::new("stockfish").option("Hash", 1)
}

fn position(fen: &str) -> Chess {
    let game = GameHistory::from_fen(fen).expect("a position");
    game.position().clone()
}

fn ask(engine: &mut Engine, start: &Chess, limits: &Limits) -> rookery_uci::Answer {
    let answer = engine.search(Game { start, moves: &[] }, limits);
    answer.expect("an answer")
}

#[test]
fn it_says_its_name_and_options() {
    let engine = Engine::start(&stockfish()).unwrap();
    assert!(engine.name().starts_with("Stockfish"), "{}", engine.name());
    let option = engine.option("uci_elo").unwrap();
    assert!(matches!(option.kind, OptionKind::Spin { min, max } if min < max));
    engine.quit();
}

#[test]
fn it_finds_a_mate_and_says_so() {
    let mut engine = Engine::start(&stockfish()).unwrap();
    let start = position("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1");
    let answer = ask(&mut engine, &start, &Limits::depth(4));
    assert_eq!(answer.best, parse_uci(&start, "d1d8"));
    assert_eq!(answer.info.score, Some(Score::Mate(1)));
    assert_eq!(answer.info.line, ["d1d8"]);
}

#[test]
fn a_limit_of_nodes_holds_and_a_limit_of_time_ends_the_search() {
    let mut engine = Engine::start(&stockfish()).unwrap();
    let start = Chess::default();
    let answer = ask(&mut engine, &start, &Limits::nodes(500));
    assert!(
        answer.info.nodes.is_some_and(|nodes| nodes <= 1500),
        "{answer:?}"
    );
    assert!(matches!(answer.info.score, Some(Score::Centipawns(_))));
    let answer = ask(
        &mut engine,
        &start,
        &Limits::movetime(Duration::from_millis(20)),
    );
    assert!(answer.best.is_some());
}

#[test]
fn win_draw_and_loss_are_told_where_they_are_asked_for() {
    let mut engine = Engine::start(&stockfish().option("UCI_ShowWDL", true)).unwrap();
    let start = position("4k3/8/8/8/8/8/8/QQQ1K3 w - - 0 1");
    let wdl = ask(&mut engine, &start, &Limits::nodes(300))
        .info
        .wdl
        .unwrap();
    assert!(wdl[0] > 900, "{wdl:?}");
}

#[test]
fn it_plays_a_game_against_itself_by_the_rules() {
    let mut engine = Engine::start(&stockfish()).unwrap();
    engine.new_game().unwrap();
    let mut game = GameHistory::default();
    let mut moves: Vec<Move> = Vec::new();
    while game.end().is_none() && moves.len() < 60 {
        let start = game.start().clone();
        let told = Game {
            start: &start,
            moves: &moves,
        };
        let best = engine
            .search(told, &Limits::nodes(100))
            .unwrap()
            .best
            .unwrap();
        game.push(best);
        moves.push(best);
    }
    assert!(moves.len() > 20);
}

#[test]
fn chess960_castles_as_king_takes_rook_and_back_again() {
    let mut engine = Engine::start(&stockfish()).unwrap();
    let start = position("1r2k1r1/1p4p1/8/8/8/8/1P4P1/1R2K1R1 w GBgb - 0 1");
    let castle = parse_uci(&start, "e1g1").unwrap();
    assert!(castle.is_castle());
    let told = Game {
        start: &start,
        moves: &[castle],
    };
    assert!(
        engine
            .search(told, &Limits::nodes(50))
            .unwrap()
            .best
            .is_some()
    );
    // The standard position after that is sent in the standard way.
    let start = Chess::default();
    let mut moves = Vec::new();
    let mut board = start.clone();
    for text in [
        "e2e4", "e7e5", "g1f3", "g8f6", "f1c4", "f8c5", "e1g1", "e8g8",
    ] {
        let m = parse_uci(&board, text).unwrap();
        board.play_unchecked(m);
        moves.push(m);
    }
    let told = Game {
        start: &start,
        moves: &moves,
    };
    let best = engine
        .search(told, &Limits::nodes(50))
        .unwrap()
        .best
        .unwrap();
    assert!(canonical_moves(&board).contains(&best));
    assert_eq!(
        rookery_common::chess::moves::castling_mode(&start),
        CastlingMode::Standard
    );
}

#[test]
fn a_game_that_is_over_has_no_best_move() {
    let mut engine = Engine::start(&stockfish()).unwrap();
    let mated = position("3R2k1/5ppp/8/8/8/8/8/K7 b - - 0 1");
    assert_eq!(ask(&mut engine, &mated, &Limits::depth(2)).best, None);
}

#[test]
fn wrong_options_are_refused_with_what_there_is() {
    let error = Engine::start(&stockfish().option("Strength", 3)).unwrap_err();
    assert!(error.to_string().contains("UCI_Elo"), "{error}");
    let error = Engine::start(&stockfish().option("UCI_Elo", 7)).unwrap_err();
    assert!(error.to_string().contains("whole number from"), "{error}");
}

#[test]
fn questions_that_make_no_sense_are_refused_and_the_engine_lives_on() {
    let mut engine = Engine::start(&stockfish()).unwrap();
    let start = Chess::default();
    let game = Game {
        start: &start,
        moves: &[],
    };
    let error = engine.search(game, &Limits::default()).unwrap_err();
    assert!(matches!(error, UciError::Question(_)), "{error}");
    let after = parse_uci(&start, "e2e4").unwrap();
    let twice = Game {
        start: &start,
        moves: &[after, after],
    };
    let error = engine.search(twice, &Limits::depth(1)).unwrap_err();
    assert!(error.to_string().contains("ply 2"), "{error}");
    assert!(engine.search(game, &Limits::depth(1)).is_ok());
}
