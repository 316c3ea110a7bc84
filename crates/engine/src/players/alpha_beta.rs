//! Search with alpha-beta pruning to a fixed depth, then of captures only.
//!
//! Fail-soft negamax (Knuth and Moore 1975) over material and piece-square tables. It is an
//! opponent that everyone can build again, and no stronger than that: no hash table, no
//! reductions, no extensions but that a side in check looks at every move.

use rookery_common::chess::GameHistory;
use rookery_common::chess::moves::canonical_moves;
use shakmaty::{Chess, Move, Position, Role};

use super::static_evaluation::{piece_value, static_evaluation};

/// More than any position is worth. A mate in `n` plies is worth `MATE - n`.
const MATE: i32 = 100_000;

/// Alpha-beta to `depth` plies, then a quiescence search of exchanges.
#[derive(Debug, Clone)]
pub(super) struct AlphaBeta {
    depth: u32,
}

/// What a search found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// The move; the first in canonical order among equals.
    pub(super) m: Move,
    /// Its score for the mover in hundredths of a pawn; more than 90,000 is a mate.
    pub(super) score: i32,
}

impl AlphaBeta {
    /// A searcher of at least one ply.
    pub(super) const fn new(depth: u32) -> Self {
        Self {
            depth: if depth == 0 { 1 } else { depth },
        }
    }

    /// Searches a position; nothing where there is no legal move.
    pub(super) fn search(&self, game: &GameHistory) -> Option<Found> {
        let mut game = game.clone();
        let mut best: Option<Found> = None;
        for m in ordered(game.position()) {
            let alpha = best.map_or(-MATE, |found| found.score);
            game.push(m);
            let score = -negamax(&mut game, self.depth - 1, 1, -MATE, -alpha);
            game.pop();
            if best.is_none_or(|found| score > found.score) {
                best = Some(Found { m, score });
            }
        }
        best
    }
}

/// The position's score for the side to move, exact within `alpha` and `beta`, else a bound.
fn negamax(game: &mut GameHistory, depth: u32, ply: i32, mut alpha: i32, beta: i32) -> i32 {
    // A position that comes back once can come back again.
    if game.repetitions() > 0 || game.draw_by_rule().is_some() {
        return drawn_unless_mated(game, ply);
    }
    if depth == 0 {
        return quiesce(game.position(), ply, alpha, beta);
    }
    let moves = ordered(game.position());
    if moves.is_empty() {
        return without_moves(game.position(), ply);
    }
    let mut best = -MATE;
    for m in moves {
        game.push(m);
        let score = -negamax(game, depth - 1, ply + 1, -beta, -alpha);
        game.pop();
        best = best.max(score);
        alpha = alpha.max(score);
        if alpha >= beta {
            break;
        }
    }
    best
}

/// Captures and promotions to queens until there is nothing to gain by them; all moves in check.
fn quiesce(position: &Chess, ply: i32, mut alpha: i32, beta: i32) -> i32 {
    let in_check = position.is_check();
    let mut moves = ordered(position);
    if moves.is_empty() {
        return without_moves(position, ply);
    }
    let mut best = -MATE;
    if !in_check {
        best = static_evaluation(position);
        alpha = alpha.max(best);
        if alpha >= beta {
            return best;
        }
        moves.retain(|m| m.is_capture() || m.promotion() == Some(Role::Queen));
    }
    for m in moves {
        let mut next = position.clone();
        next.play_unchecked(m);
        let score = -quiesce(&next, ply + 1, -beta, -alpha);
        best = best.max(score);
        alpha = alpha.max(score);
        if alpha >= beta {
            break;
        }
    }
    best
}

/// Mate on the last ply of the fifty moves is mate.
fn drawn_unless_mated(game: &GameHistory, ply: i32) -> i32 {
    let position = game.position();
    if position.is_checkmate() {
        without_moves(position, ply)
    } else {
        0
    }
}

fn without_moves(position: &Chess, ply: i32) -> i32 {
    if position.is_check() { ply - MATE } else { 0 }
}

/// Legal moves, the likeliest to cut first: captures of much by little, promotions, the rest.
fn ordered(position: &Chess) -> Vec<Move> {
    let mut moves = canonical_moves(position);
    moves.sort_by_key(|m| {
        let victim = m.capture().map_or(0, |role| 10 * piece_value(role));
        let mover = match m.capture() {
            Some(_) => piece_value(m.role()) / 10,
            None => 0,
        };
        let promotion = m.promotion().map_or(0, piece_value);
        mover - victim - promotion
    });
    moves
}

#[cfg(test)]
mod tests {
    use rookery_common::chess::moves::{parse_uci, uci};
    use shakmaty::CastlingMode;

    use super::*;
    use crate::testing::fen;

    fn found(text: &str, depth: u32) -> (String, i32) {
        let found = AlphaBeta::new(depth).search(&fen(text)).unwrap();
        (uci(found.m, CastlingMode::Standard), found.score)
    }

    #[test]
    fn mates_are_found_and_the_shortest_is_played() {
        let back_rank = "6k1/5ppp/8/8/8/8/5PPP/3RR1K1 w - - 0 1";
        for depth in 1..4 {
            let (m, score) = found(back_rank, depth);
            assert!(m == "d1d8" || m == "e1e8", "{m}");
            assert_eq!(score, MATE - 1);
        }
        // Mate in two: the rook must give up the file before the other mates on it.
        let (m, score) = found("7k/8/5K2/6R1/8/8/8/8 w - - 0 1", 3);
        assert_eq!((m.as_str(), score), ("f6f7", MATE - 3));
        // A smothered mate begins with the queen's sacrifice.
        let (m, score) = found("r6k/6pp/7N/8/8/1Q6/8/7K w - - 0 1", 3);
        assert_eq!((m.as_str(), score), ("b3g8", MATE - 3));
    }

    #[test]
    fn the_side_that_is_mated_sees_it() {
        let (_, score) = found("7k/5K2/8/6R1/8/8/8/8 b - - 0 1", 2);
        assert_eq!(score, 2 - MATE);
    }

    #[test]
    fn a_defended_piece_is_left_alone_and_a_free_one_is_taken() {
        let defended = "4k3/2p5/3p4/8/8/8/3Q4/4K3 w - - 0 1";
        assert_ne!(found(defended, 1).0, "d2d6");
        let free = "4k3/8/3p4/8/8/8/3Q4/4K3 w - - 0 1";
        assert_eq!(found(free, 1).0, "d2d6");
    }

    #[test]
    fn a_repetition_is_a_draw_for_both_sides() {
        let mut game = fen("6k1/8/8/8/8/8/r7/7K w - - 0 1");
        assert!(AlphaBeta::new(1).search(&game).unwrap().score < -300);
        for text in ["h1g1", "a2a3", "g1h1", "a3a2"] {
            let m = parse_uci(game.position(), text).unwrap();
            game.push(m);
        }
        // The only move leads to a position that was there before: a draw is in reach.
        let found = AlphaBeta::new(1).search(&game).unwrap();
        assert_eq!(found.score, 0);
        game.push(found.m);
        let found = AlphaBeta::new(1).search(&game).unwrap();
        game.push(found.m);
        assert!(
            found.score > 300 && game.repetitions() == 0,
            "the rook's side has better"
        );
    }

    #[test]
    fn without_moves_there_is_nothing_to_find() {
        assert_eq!(
            AlphaBeta::new(2).search(&fen("7k/5K2/6Q1/8/8/8/8/8 b - - 0 1")),
            None
        );
    }

    /// Alpha-beta gives what looking at everything gives.
    #[test]
    fn pruning_changes_no_score() {
        fn everything(game: &mut GameHistory, depth: u32, ply: i32) -> i32 {
            if depth == 0 || game.repetitions() > 0 || game.draw_by_rule().is_some() {
                return negamax(game, 0, ply, -MATE, MATE);
            }
            let moves = canonical_moves(game.position());
            if moves.is_empty() {
                return without_moves(game.position(), ply);
            }
            let mut best = -MATE;
            for m in moves {
                game.push(m);
                best = best.max(-everything(game, depth - 1, ply + 1));
                game.pop();
            }
            best
        }
        for text in [
            "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5Q2/PPPP1PPP/RNB1K1NR w KQkq - 0 1",
            "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
            "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R b KQkq - 0 1",
        ] {
            let mut game = fen(text);
            let found = AlphaBeta::new(2).search(&game).unwrap();
            assert_eq!(found.score, everything(&mut game, 2, 0), "{text}");
        }
    }
}
