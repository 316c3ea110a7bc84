//! What stands on each square, as a class: the target of heads that say something of each square.

use shakmaty::{Board, Color};

use super::input::seen_by;

/// Classes of [`piece_classes`].
pub const PIECE_CLASSES: u8 = 13;

/// The class of each square as `mover` sees the board, a1 first, then b1: 0 for an empty one, 1 to 6 for the mover's
/// pawn, knight, bishop, rook, queen and king, 7 to 12 for the opponent's.
///
/// # Examples
///
/// ```
/// use rookery_common::encoding::piece_classes;
/// use shakmaty::{Board, Color};
///
/// let classes = piece_classes(&Board::default(), Color::Black);
/// assert_eq!(classes[..8], [4, 2, 3, 5, 6, 3, 2, 4]);
/// assert_eq!(classes[48..56], [7; 8]);
/// ```
pub fn piece_classes(board: &Board, mover: Color) -> [u8; 64] {
    let mut classes = [0; 64];
    for (square, piece) in board.clone() {
        let own = if piece.color == mover { 0 } else { 6 };
        let place = seen_by(mover, 1 << u32::from(square)).trailing_zeros();
        classes[place as usize] = own + piece.role as u8;
    }
    classes
}
