//! What the engine's tests share.

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::{EndgameTables, GameHistory, GameResult, PackedMove};
use shakmaty::{Board, Chess, Color, Move, Position, Role, attacks};

const CHESS960: [&str; 3] = [
    "rkrbbnnq/pppppppp/8/8/8/8/PPPPPPPP/RKRBBNNQ w KQkq - 0 1",
    "nrkbbqrn/pppppppp/8/8/8/8/PPPPPPPP/NRKBBQRN w KQkq - 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
];

/// A game of up to 120 random legal moves.
pub(crate) fn random_game() -> impl Strategy<Value = GameHistory> {
    (any::<u64>(), 0..120_usize, 0..CHESS960.len()).prop_map(|(seed, plies, start)| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut game = fen(CHESS960[start]);
        for _ in 0..plies {
            if game.end().is_some() {
                break;
            }
            let moves = game.position().legal_moves();
            game.push(moves[rng.random_range(0..moves.len())]);
        }
        game
    })
}

/// The game at a position.
pub(crate) fn fen(text: &str) -> GameHistory {
    GameHistory::from_fen(text).unwrap()
}

/// Moves as trees keep them.
pub(crate) fn packed(moves: &[Move]) -> Vec<PackedMove> {
    moves.iter().map(|m| PackedMove::pack(*m)).collect()
}

/// Exact knowledge of king and queen against king, White having the queen: won, unless Black is
/// stalemated or takes the queen.
#[derive(Debug)]
pub(crate) struct QueenTables;

impl EndgameTables for QueenTables {
    fn result(&self, position: &Chess) -> Option<GameResult> {
        let board = position.board();
        let queen = (board.by_color(Color::White) & board.by_role(Role::Queen)).single_square()?;
        let bare = board.by_color(Color::Black).count() == 1;
        if board.occupied().count() != 3 || !bare {
            return None;
        }
        let drawn = position.is_stalemate() || hangs(board, queen);
        Some(if position.turn() == Color::Black && drawn {
            GameResult::Draw
        } else {
            GameResult::WhiteWins
        })
    }
}

/// Whether Black's king can take White's queen.
fn hangs(board: &Board, queen: shakmaty::Square) -> bool {
    let king = |color| board.king_of(color).expect("a king");
    attacks::king_attacks(king(Color::Black)).contains(queen)
        && !attacks::king_attacks(king(Color::White)).contains(queen)
}
