//! Moves in 16 bits, as edges keep them.

use shakmaty::{Chess, Move, Position, Role, Square};

/// A legal move of a known position: `origin << 9 | target << 3 | promotion`, squares counted
/// a1 = 0 … h8 = 63, castling's target the rook's square, promotion 0 for none and knight 1 to
/// queen 4.
///
/// Its order is the canonical order of moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PackedMove(u16);

const PROMOTIONS: [Option<Role>; 5] = [
    None,
    Some(Role::Knight),
    Some(Role::Bishop),
    Some(Role::Rook),
    Some(Role::Queen),
];

impl PackedMove {
    pub(crate) fn pack(m: Move) -> Self {
        let from = m.from().unwrap_or(m.to());
        let promotion = m
            .promotion()
            .map_or(0, |role| role as u16 - Role::Pawn as u16);
        Self(u16::from(from) << 9 | u16::from(m.to()) << 3 | promotion)
    }

    /// The move in the position in which it was packed.
    pub(crate) fn unpack(self, position: &Chess) -> Move {
        let from = Square::new(u32::from(self.0 >> 9 & 63));
        let to = Square::new(u32::from(self.0 >> 3 & 63));
        let board = position.board();
        let role = board.role_at(from).unwrap_or(Role::Pawn);
        if role == Role::King && board.by_color(position.turn()).contains(to) {
            return Move::Castle {
                king: from,
                rook: to,
            };
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
    use rookery_common::chess::moves::canonical_moves;

    use super::*;
    use crate::testing::random_game;

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
