//! Plain minimax: every line of a fixed length, material and piece placement at its end, no pruning and no exchanges.

use rookery_common::chess::GameHistory;
use rookery_common::chess::moves::canonical_moves;
use rookery_engine::players::static_evaluation;
use shakmaty::{Chess, Move, Position};

/// A mate, less the plies to it, in hundredths of a pawn.
const MATE: i32 = 100_000;

/// The best move at this depth, the first among equals; none where the game is over.
pub fn best(game: &GameHistory, depth: u32) -> Option<Move> {
    let valued = canonical_moves(game.position())
        .into_iter()
        .map(|m| (-after(game.position(), m, depth.max(1) - 1, 1), m));
    let better =
        |best: (i32, Move), other: (i32, Move)| if other.0 > best.0 { other } else { best };
    valued.reduce(better).map(|(_, m)| m)
}

/// What the position after a move is worth to the side that is then to move.
fn after(position: &Chess, m: Move, depth: u32, ply: i32) -> i32 {
    let mut next = position.clone();
    next.play_unchecked(m);
    worth(&next, depth, ply)
}

fn worth(position: &Chess, depth: u32, ply: i32) -> i32 {
    let moves = position.legal_moves();
    if moves.is_empty() {
        return if position.is_check() { ply - MATE } else { 0 };
    }
    if position.is_insufficient_material() {
        return 0;
    }
    if depth == 0 {
        return static_evaluation(position);
    }
    let valued = moves
        .iter()
        .map(|m| -after(position, *m, depth - 1, ply + 1));
    valued.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plays(fen: &str, depth: u32) -> String {
        let game = GameHistory::from_fen(fen).unwrap();
        best(&game, depth)
            .unwrap()
            .to_uci(shakmaty::CastlingMode::Standard)
            .to_string()
    }

    #[test]
    fn mates_are_found_as_deep_as_it_looks() {
        assert_eq!(plays("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", 2), "a1a8");
        assert_eq!(plays("7k/8/5K2/6R1/8/8/8/8 w - - 0 1", 4), "f6f7");
    }

    #[test]
    fn without_exchanges_it_takes_what_is_defended_at_depth_one_only() {
        let defended = "4k3/2p5/3p4/8/8/8/3Q4/4K3 w - - 0 1";
        assert_eq!(plays(defended, 1), "d2d6");
        assert_ne!(plays(defended, 2), "d2d6");
    }
}
