//! The value of a position by material and piece placement: Tomasz Michniewski's "Simplified
//! Evaluation Function" (1995; chessprogramming.org), in hundredths of a pawn.

use shakmaty::{Board, Chess, Color, Position, Role, Square};

/// The value of a piece; a king is never counted.
pub(super) const fn piece_value(role: Role) -> i32 {
    match role {
        Role::Pawn => 100,
        Role::Knight => 320,
        Role::Bishop => 330,
        Role::Rook => 500,
        Role::Queen => 900,
        Role::King => 0,
    }
}

/// As White sees the board: the first row is the eighth rank.
type Table = [i8; 64];

#[rustfmt::skip]
const PAWN: Table = [
      0,   0,   0,   0,   0,   0,   0,   0,
     50,  50,  50,  50,  50,  50,  50,  50,
     10,  10,  20,  30,  30,  20,  10,  10,
      5,   5,  10,  25,  25,  10,   5,   5,
      0,   0,   0,  20,  20,   0,   0,   0,
      5,  -5, -10,   0,   0, -10,  -5,   5,
      5,  10,  10, -20, -20,  10,  10,   5,
      0,   0,   0,   0,   0,   0,   0,   0,
];
#[rustfmt::skip]
const KNIGHT: Table = [
    -50, -40, -30, -30, -30, -30, -40, -50,
    -40, -20,   0,   0,   0,   0, -20, -40,
    -30,   0,  10,  15,  15,  10,   0, -30,
    -30,   5,  15,  20,  20,  15,   5, -30,
    -30,   0,  15,  20,  20,  15,   0, -30,
    -30,   5,  10,  15,  15,  10,   5, -30,
    -40, -20,   0,   5,   5,   0, -20, -40,
    -50, -40, -30, -30, -30, -30, -40, -50,
];
#[rustfmt::skip]
const BISHOP: Table = [
    -20, -10, -10, -10, -10, -10, -10, -20,
    -10,   0,   0,   0,   0,   0,   0, -10,
    -10,   0,   5,  10,  10,   5,   0, -10,
    -10,   5,   5,  10,  10,   5,   5, -10,
    -10,   0,  10,  10,  10,  10,   0, -10,
    -10,  10,  10,  10,  10,  10,  10, -10,
    -10,   5,   0,   0,   0,   0,   5, -10,
    -20, -10, -10, -10, -10, -10, -10, -20,
];
#[rustfmt::skip]
const ROOK: Table = [
      0,   0,   0,   0,   0,   0,   0,   0,
      5,  10,  10,  10,  10,  10,  10,   5,
     -5,   0,   0,   0,   0,   0,   0,  -5,
     -5,   0,   0,   0,   0,   0,   0,  -5,
     -5,   0,   0,   0,   0,   0,   0,  -5,
     -5,   0,   0,   0,   0,   0,   0,  -5,
     -5,   0,   0,   0,   0,   0,   0,  -5,
      0,   0,   0,   5,   5,   0,   0,   0,
];
#[rustfmt::skip]
const QUEEN: Table = [
    -20, -10, -10,  -5,  -5, -10, -10, -20,
    -10,   0,   0,   0,   0,   0,   0, -10,
    -10,   0,   5,   5,   5,   5,   0, -10,
     -5,   0,   5,   5,   5,   5,   0,  -5,
      0,   0,   5,   5,   5,   5,   0,  -5,
    -10,   5,   5,   5,   5,   5,   0, -10,
    -10,   0,   5,   0,   0,   0,   0, -10,
    -20, -10, -10,  -5,  -5, -10, -10, -20,
];
#[rustfmt::skip]
const KING: Table = [
    -30, -40, -40, -50, -50, -40, -40, -30,
    -30, -40, -40, -50, -50, -40, -40, -30,
    -30, -40, -40, -50, -50, -40, -40, -30,
    -30, -40, -40, -50, -50, -40, -40, -30,
    -20, -30, -30, -40, -40, -30, -30, -20,
    -10, -20, -20, -20, -20, -20, -20, -10,
     20,  20,   0,   0,   0,   0,  20,  20,
     20,  30,  10,   0,   0,  10,  30,  20,
];
#[rustfmt::skip]
const KING_AT_THE_END: Table = [
    -50, -40, -30, -20, -20, -30, -40, -50,
    -30, -20, -10,   0,   0, -10, -20, -30,
    -30, -10,  20,  30,  30,  20, -10, -30,
    -30, -10,  30,  40,  40,  30, -10, -30,
    -30, -10,  30,  40,  40,  30, -10, -30,
    -30, -10,  20,  30,  30,  20, -10, -30,
    -30, -30,   0,   0,   0,   0, -30, -30,
    -50, -30, -30, -30, -30, -30, -30, -50,
];

/// The value of the position for the side to move, in hundredths of a pawn: material and piece placement.
pub fn static_evaluation(position: &Chess) -> i32 {
    let board = position.board();
    let ending = is_ending(board, Color::White) && is_ending(board, Color::Black);
    let mut sum = 0;
    for (square, piece) in board {
        let value = piece_value(piece.role) + placed(piece.role, square, piece.color, ending);
        sum += if piece.color == position.turn() {
            value
        } else {
            -value
        };
    }
    sum
}

fn placed(role: Role, square: Square, color: Color, ending: bool) -> i32 {
    let table = match role {
        Role::Pawn => &PAWN,
        Role::Knight => &KNIGHT,
        Role::Bishop => &BISHOP,
        Role::Rook => &ROOK,
        Role::Queen => &QUEEN,
        Role::King if ending => &KING_AT_THE_END,
        Role::King => &KING,
    };
    // The tables begin with the eighth rank, so White's squares are mirrored.
    let seen = color.fold_wb(square.flip_vertical(), square);
    i32::from(table[usize::from(seen)])
}

/// Whether a side has no queen, or beside it one minor piece at most.
pub fn is_ending(board: &Board, color: Color) -> bool {
    let side = board.by_color(color);
    let minors = side & (board.knights() | board.bishops());
    (side & board.queens()).is_empty() || ((side & board.rooks()).is_empty() && minors.count() <= 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fen;

    fn value(text: &str) -> i32 {
        static_evaluation(fen(text).position())
    }

    #[test]
    fn both_sides_are_seen_alike() {
        assert_eq!(
            value("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"),
            0
        );
        let white = value("r1bq1rk1/pp3ppp/2n2n2/3p4/8/2NB1N2/PPP2PPP/R2Q1RK1 w - - 0 1");
        let black = value("r2q1rk1/ppp2ppp/2nb1n2/8/3P4/2N2N2/PP3PPP/R1BQ1RK1 b - - 0 1");
        assert_eq!(white, black);
        let other = value("r1bq1rk1/pp3ppp/2n2n2/3p4/8/2NB1N2/PPP2PPP/R2Q1RK1 b - - 0 1");
        assert_eq!(white, -other);
    }

    #[test]
    fn pieces_stand_where_the_tables_say() {
        // A knight on e5 (20) against one on a8 (-50); both kings on e1 and e8 at the end (-30).
        assert_eq!(value("n3k3/8/8/4N3/8/8/8/4K3 w - - 0 1"), 70);
        // A pawn on e7 is worth 50 more.
        assert_eq!(value("4k3/P7/8/8/8/8/8/4K3 w - - 0 1"), 150);
        // With all on the board the king stays behind its pawns.
        let home = value("rnbqkbnr/8/8/8/8/8/8/RNBQ1BNK w kq - 0 1");
        let out = value("rnbqkbnr/8/8/8/8/7K/8/RNBQ1BN1 w kq - 0 1");
        assert!(home > out);
    }
}
