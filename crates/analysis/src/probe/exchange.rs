//! Static exchange evaluation: what a capture wins if both sides go on capturing on its square, each with its cheapest
//! piece and only as long as it pays (chessprogramming.org, "Static Exchange Evaluation").
//!
//! Only the first capture has to be legal. Later ones ignore pins, and a king captures only where nothing captures back.

use shakmaty::{Bitboard, Board, Chess, Color, Move, Position, Role, Square};

/// The worth of a piece in pawns.
pub const fn worth(role: Role) -> i32 {
    match role {
        Role::Pawn => 1,
        Role::Knight | Role::Bishop => 3,
        Role::Rook => 5,
        Role::Queen => 9,
        Role::King => 1000,
    }
}

/// What the side to move wins by its best legal capture, 0 if none pays.
pub fn best_capture(position: &Chess) -> i32 {
    let captures = position.capture_moves();
    captures
        .iter()
        .map(|m| gain(position, *m))
        .fold(0, i32::max)
}

/// What a legal capture wins, below 0 if it loses; what a promotion adds counts.
pub fn gain(position: &Chess, m: Move) -> i32 {
    let board = position.board();
    let captured = m.capture().map_or(0, worth);
    let promoted = m.promotion().map_or(0, |role| worth(role) - 1);
    let mut occupied = board.occupied();
    if let Some(from) = m.from() {
        occupied.discard(from);
    }
    if let Move::EnPassant { from, to } = m {
        occupied.discard(Square::from_coords(to.file(), from.rank()));
    }
    let stands = m.promotion().unwrap_or(m.role());
    captured + promoted - swap(board, m.to(), worth(stands), !position.turn(), occupied)
}

/// What `side` wins by capturing on the square, where a piece of this worth stands; 0 if it had better not.
fn swap(board: &Board, square: Square, stands: i32, side: Color, mut occupied: Bitboard) -> i32 {
    let attackers = board.attacks_to(square, side, occupied) & occupied;
    let role_of = |from: Square| board.role_at(from).unwrap_or(Role::King);
    let Some(from) = attackers
        .into_iter()
        .min_by_key(|from| worth(role_of(*from)))
    else {
        return 0;
    };
    occupied.discard(from);
    let role = role_of(from);
    if role == Role::King && (board.attacks_to(square, !side, occupied) & occupied).any() {
        return 0;
    }
    (stands - swap(board, square, worth(role), !side, occupied)).max(0)
}

/// What White has more than Black, in pawns.
pub fn balance(board: &Board) -> i32 {
    let side = |color: Color| -> i32 {
        let pieces = board.material_side(color);
        let of = |role: Role| worth(role) * i32::from(*pieces.get(role));
        [
            Role::Pawn,
            Role::Knight,
            Role::Bishop,
            Role::Rook,
            Role::Queen,
        ]
        .map(of)
        .iter()
        .sum()
    };
    side(Color::White) - side(Color::Black)
}

#[cfg(test)]
mod tests {
    use rookery_common::chess::GameHistory;
    use rookery_common::chess::moves::parse_uci;

    use super::*;

    fn wins(fen: &str, m: &str) -> i32 {
        let game = GameHistory::from_fen(fen).unwrap();
        gain(game.position(), parse_uci(game.position(), m).unwrap())
    }

    #[test]
    fn exchanges_are_as_counted_by_hand() {
        for (fen, m, expected) in [
            // A free knight; the same with a pawn behind it: 3 - 5.
            ("4k3/8/8/3n4/8/8/8/3RK3 w - - 0 1", "d1d5", 3),
            ("4k3/8/4p3/3n4/8/8/8/3RK3 w - - 0 1", "d1d5", -2),
            // Rook behind rook: the pawn does not take back for long: 3 - 5 + 1.
            ("4k3/8/4p3/3n4/8/8/3R4/3RK3 w - - 0 1", "d2d5", -1),
            // The king may not take back what a bishop defends.
            ("8/8/3k4/3n4/8/5B2/8/3RK3 w - - 0 1", "d1d5", 3),
            // It may where nothing does: 3 - 5.
            ("8/8/3k4/3n4/8/8/8/3RK3 w - - 0 1", "d1d5", -2),
            // En passant wins a pawn; promotion with capture wins rook and queen for the pawn.
            ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "e5d6", 1),
            ("3r3k/4P3/8/8/8/8/8/4K3 w - - 0 1", "e7d8q", 13),
        ] {
            assert_eq!(wins(fen, m), expected, "{fen} {m}");
        }
    }

    #[test]
    fn material_is_counted_for_white() {
        let of = |fen: &str| balance(GameHistory::from_fen(fen).unwrap().position().board());
        assert_eq!(
            of("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"),
            0
        );
        assert_eq!(of("3qk3/8/8/8/8/8/PP6/R3K1N1 b - - 0 1"), 1);
    }
}
