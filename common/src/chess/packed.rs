//! Moves in 16 bits, for tables and search trees.

use shakmaty::{Chess, Color, Move, Position, Role, Square};

/// A legal move of a known position: `origin << 9 | target << 3 | promotion`, squares counted
/// a1 = 0 … h8 = 63, castling's target the rook's square, promotion 0 for none and knight 1 to
/// queen 4.
///
/// Its order is the canonical order of moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackedMove(u16);

const PROMOTIONS: [Option<Role>; 5] = [
    None,
    Some(Role::Knight),
    Some(Role::Bishop),
    Some(Role::Rook),
    Some(Role::Queen),
];

impl PackedMove {
    /// Packs a move. A drop, which does not occur in chess, gets its square for both ends.
    pub const fn pack(m: Move) -> Self {
        let (from, to, promotion) = match m {
            Move::Normal {
                from,
                to,
                promotion,
                ..
            } => (from, to, promotion),
            Move::EnPassant { from, to } => (from, to, None),
            Move::Castle { king, rook } => (king, rook, None),
            Move::Put { to, .. } => (to, to, None),
        };
        Self::of_parts(from, to, promotion)
    }

    pub(crate) const fn of_parts(from: Square, to: Square, promotion: Option<Role>) -> Self {
        let promotion = match promotion {
            None => 0,
            Some(role) => role as u16 - Role::Pawn as u16,
        };
        Self((from as u16) << 9 | (to as u16) << 3 | promotion)
    }

    /// The 16 bits.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The move of these bits, which [`bits`](Self::bits) gave.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The same move in a mirror: files a to h are h to a.
    #[must_use]
    pub const fn mirrored(self) -> Self {
        Self(self.0 ^ (7 << 9 | 7 << 3))
    }

    /// The same move as `mover` sees the board: for Black, ranks are mirrored.
    pub(crate) fn seen_by(self, mover: Color) -> Self {
        Self(self.0 ^ mover.fold_wb(0, 56 << 9 | 56 << 3))
    }

    /// Its place in a table of [`PLACES`](Self::PLACES): `promotion << 12 | origin << 6 | target`,
    /// so that moves without promotion, nearly all, lie together.
    pub(crate) const fn place(self) -> usize {
        (self.0 >> 3 | (self.0 & 7) << 12) as usize
    }

    /// One more than the highest [`place`](Self::place).
    pub(crate) const PLACES: usize = 1 << 15;

    const fn origin(self) -> Square {
        Square::new((self.0 >> 9 & 63) as u32)
    }

    const fn target(self) -> Square {
        Square::new((self.0 >> 3 & 63) as u32)
    }

    /// The squares of king and rook if this is castling in the position in which it was packed.
    pub(crate) fn castling(self, position: &Chess) -> Option<(Square, Square)> {
        let (from, to) = (self.origin(), self.target());
        let own = position.our(Role::King) | position.our(Role::Rook);
        let castles = own.contains(to) && position.our(Role::King).contains(from);
        castles.then_some((from, to))
    }

    /// The move in the position in which it was packed.
    pub fn unpack(self, position: &Chess) -> Move {
        let (from, to) = (self.origin(), self.target());
        let board = position.board();
        let role = board.role_at(from).unwrap_or(Role::Pawn);
        if let Some((king, rook)) = self.castling(position) {
            return Move::Castle { king, rook };
        }
        let capture = board.role_at(to);
        if role == Role::Pawn && capture.is_none() && from.file() != to.file() {
            return Move::EnPassant { from, to };
        }
        let promotion = PROMOTIONS.get(usize::from(self.0 & 7)).copied().flatten();
        Move::Normal {
            role,
            from,
            capture,
            to,
            promotion,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chess::moves::canonical_moves;
    use crate::encoding::testing::random_game;

    proptest! {
        #[test]
        fn moves_round_trip_in_canonical_order(game in random_game()) {
            let moves = canonical_moves(game.position());
            let packed: Vec<_> = moves.iter().map(|m| PackedMove::pack(*m)).collect();
            prop_assert!(packed.is_sorted());
            for (m, packed) in moves.iter().zip(packed) {
                prop_assert_eq!(packed.unpack(game.position()), *m);
            }
        }
    }
}
