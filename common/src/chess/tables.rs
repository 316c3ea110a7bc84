//! Endgame tables: who wins with best play when few pieces are left.
//!
//! Tables are files, which nothing here reads: programs that have some implement [`EndgameTables`].

use shakmaty::{Chess, Move, Position};

use super::outcome::GameResult;

/// Most pieces of a position that any tables hold.
pub const MOST_PIECES: u32 = 7;

/// Perfect knowledge of positions with few pieces.
pub trait EndgameTables: std::fmt::Debug + Send + Sync {
    /// The result with best play of both sides, the fifty-move rule in force, of a position whose
    /// fifty-move counter is 0; nothing if the tables do not hold it.
    fn result(&self, position: &Chess) -> Option<GameResult>;

    /// The moves to play in a position, whatever its fifty-move counter; nothing if the tables do
    /// not hold it, or know results alone.
    fn best_moves(&self, _position: &Chess) -> Option<TableMoves> {
        None
    }
}

/// What tables say of a position in which somebody is to move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableMoves {
    /// The result with best play of both sides from here on, the fifty-move rule in force.
    pub result: GameResult,
    /// The moves that keep it; of those that win, the ones that come nearest to the next capture,
    /// pawn move or mate, and of those that lose, the ones that put it off longest. At least one.
    pub moves: Vec<Move>,
}

/// Whether tables of this number of pieces decide a game that has come to this position: it has no more
/// of them, no side may castle, the last move was a capture or a pawn move, and the game goes on.
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
