//! What endgame tables know, search does not guess.

use rookery_common::chess::{GameResult, TableMoves};
use shakmaty::{Chess, Role};

use super::*;
use crate::testing::QueenTables;

/// White's queen takes the last pawn.
const CAPTURE: &str = "8/8/8/8/2k5/8/p7/Q6K w - - 0 1";

/// Holds every position with few pieces, and gives the king's moves.
#[derive(Debug)]
struct KingTables(GameResult);

impl EndgameTables for KingTables {
    fn result(&self, _position: &Chess) -> Option<GameResult> {
        None
    }

    fn best_moves(&self, position: &Chess) -> Option<TableMoves> {
        let few = position.board().occupied().count() <= 5;
        let mut moves = position.legal_moves().to_vec();
        moves.retain(|m| m.role() == Role::King);
        let result = self.0;
        few.then_some(TableMoves { result, moves })
    }
}

fn searched_with(tables: impl EndgameTables + 'static, text: &str, only: &[Move]) -> Searcher {
    let mut searcher = searcher().with_tables(Some(Arc::new(tables)));
    searcher.begin(&fen(text), only);
    run(&mut searcher, &mut UniformEvaluator::default(), 4, 400);
    searcher
}

#[test]
fn a_leaf_that_tables_know_has_their_value() {
    let searcher = searched_with(QueenTables, CAPTURE, &[]);
    let best = searcher.lines(1).remove(0);
    assert_eq!(best.moves[0].to_string(), "Qa1xa2");
    assert_eq!((best.value, best.mate), (Wdl::WIN, None));
    assert_eq!(best.moves.len(), 1, "nothing is searched after it");
    assert!(searcher.stats().table_hits > 0);
    assert!(!searcher.is_over(), "the distance to mate is unknown");
    let without = searched(&fen(CAPTURE), 4, 400);
    assert_eq!(without.stats().table_hits, 0);
    assert_ne!(without.lines(1)[0].value, Wdl::WIN);
}

#[test]
fn a_root_that_tables_hold_plays_only_their_moves_at_their_value() {
    for (result, value) in [
        (GameResult::WhiteWins, Wdl::WIN),
        (GameResult::Draw, Wdl::DRAW),
        (GameResult::BlackWins, Wdl::LOSS),
    ] {
        let searcher = searched_with(KingTables(result), CAPTURE, &[]);
        let lines = searcher.lines(50);
        assert_eq!(lines.len(), 3, "g1, g2 and h2");
        for line in lines {
            assert_eq!(line.moves[0].role(), Role::King);
            assert_eq!(line.value, value);
        }
        assert_eq!(searcher.stats().table_hits, 1);
    }
    let many = searched_with(
        KingTables(GameResult::Draw),
        "4k3/pppp4/8/8/8/8/8/4K3 w - - 0 1",
        &[],
    );
    assert_eq!(many.stats().table_hits, 0);
}

#[test]
fn moves_that_were_asked_for_come_first() {
    let game = fen(CAPTURE);
    let named = |names: &[&str]| -> Vec<Move> {
        let one = |name: &&str| parse_uci(game.position(), name).unwrap();
        names.iter().map(one).collect()
    };
    let first_moves = |names| -> Vec<Move> {
        let tables = KingTables(GameResult::Draw);
        let lines = searched_with(tables, CAPTURE, &named(names)).lines(50);
        lines.iter().map(|line| line.moves[0]).collect()
    };
    assert_eq!(first_moves(&["a1a2", "h1h2"]), named(&["h1h2"]));
    assert_eq!(first_moves(&["a1a2"]), named(&["a1a2"]), "none of the best");
}

#[test]
fn a_game_may_go_on_from_a_leaf_that_tables_knew() {
    let mut searcher = searched_with(QueenTables, CAPTURE, &[]);
    let mut game = fen(CAPTURE);
    game.push(parse_uci(game.position(), "a1a2").unwrap());
    searcher.begin(&game, &[]);
    run(&mut searcher, &mut UniformEvaluator::default(), 4, 100);
    assert!(searcher.lines(1)[0].visits > 0);
}
