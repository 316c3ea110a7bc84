//! Endgame tables: who wins with best play when few pieces are left.
//!
//! Tables are files, which nothing here reads: whoever has some stands behind [`EndgameTables`].

use shakmaty::{Chess, Position};

use super::outcome::GameResult;

/// Perfect knowledge of positions with few pieces.
pub trait EndgameTables: std::fmt::Debug + Send + Sync {
    /// The result with best play of both sides, the fifty-move rule in force, of a position whose
    /// fifty-move counter is 0; nothing if the tables do not hold it.
    fn result(&self, position: &Chess) -> Option<GameResult>;
}

/// Whether tables of so many pieces decide a game that has come to this position: it has no more
/// of them, nobody may castle, the last move was a capture or a pawn move, and the game goes on.
pub fn decide(position: &Chess, pieces: u32) -> bool {
    position.board().occupied().count() <= pieces as usize
        && position.halfmoves() == 0
        && position.castles().is_empty()
        && !position.is_game_over()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::GameHistory;

    #[test]
    fn tables_decide_right_after_captures_and_pawn_moves() {
        let decides =
            |fen: &str, pieces| decide(GameHistory::from_fen(fen).unwrap().position(), pieces);
        assert!(decides("8/8/8/4k3/8/8/4P3/4K3 w - - 0 1", 3));
        assert!(!decides("8/8/8/4k3/8/8/4P3/4K3 w - - 1 1", 3), "a counter");
        assert!(
            !decides("8/8/8/4k3/8/8/3PP3/4K3 w - - 0 1", 3),
            "four pieces"
        );
        assert!(!decides("8/8/8/4k3/8/8/8/4K2R w K - 0 1", 3), "castling");
        assert!(!decides("7k/5KQ1/8/8/8/8/8/8 b - - 0 1", 3), "mate");
    }
}
