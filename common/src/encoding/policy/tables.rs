//! The move lists behind `flat-1968` and `lc0-1858`, derived from how pieces move.

use std::sync::LazyLock;

use shakmaty::{Bitboard, Color, Role, Square, attacks};

/// Squares that a queen or a knight reaches from `from` on an empty board: every move that is no
/// promotion is one of these.
fn reach(from: Square) -> Bitboard {
    attacks::queen_attacks(from, Bitboard::EMPTY) | attacks::knight_attacks(from)
}

/// Squares on which a pawn of `color` promotes when it leaves `from` on its seventh rank.
fn promotion_targets(from: Square, color: Color) -> Vec<Square> {
    let step = color.fold_wb(8, -8);
    let mut targets: Vec<Square> = attacks::pawn_attacks(color, from)
        .into_iter()
        .chain(from.offset(step))
        .collect();
    targets.sort_unstable();
    targets
}

fn plain_moves() -> impl Iterator<Item = String> {
    Square::ALL
        .into_iter()
        .flat_map(|from| reach(from).into_iter().map(move |to| format!("{from}{to}")))
}

fn promotions(color: Color, roles: &'static [Role]) -> impl Iterator<Item = String> {
    let rank = color.relative_rank(shakmaty::Rank::Seventh);
    Square::ALL
        .into_iter()
        .filter(move |from| from.rank() == rank)
        .flat_map(move |from| {
            promotion_targets(from, color)
                .into_iter()
                .flat_map(move |to| {
                    roles
                        .iter()
                        .map(move |role| format!("{from}{to}{}", role.char()))
                })
        })
}

/// Lc0's move list: 1,792 plain moves by origin and target square (a1, b1, … h8), then the
/// promotions to queen, rook and bishop.
pub(super) fn lc0_moves() -> &'static [String] {
    static MOVES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let roles = &[Role::Queen, Role::Rook, Role::Bishop];
        plain_moves()
            .chain(promotions(Color::White, roles))
            .collect()
    });
    &MOVES
}

/// Every move that can occur in some position, of either colour, in alphabetical order of its
/// UCI text.
pub(super) fn flat_moves() -> &'static [String] {
    static MOVES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let roles = &[Role::Queen, Role::Rook, Role::Bishop, Role::Knight];
        let mut moves: Vec<String> = plain_moves()
            .chain(promotions(Color::White, roles))
            .chain(promotions(Color::Black, roles))
            .collect();
        moves.sort_unstable();
        moves
    });
    &MOVES
}
