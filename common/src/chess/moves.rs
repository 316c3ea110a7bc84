//! The canonical order of legal moves, and moves as text.

use shakmaty::uci::UciMove;
use shakmaty::{CastlingMode, Chess, Move, Position};

use super::packed::PackedMove;

/// The legal moves of a position in canonical order, that of [`PackedMove`]: by origin, target
/// (castling: the rook's square) and promotion (none, knight, bishop, rook, queen), squares counted
/// a1, b1, … h8 for both sides.
///
/// A chunk gives moves and visit counts by their place in this list. At most 218 long.
pub fn canonical_moves(position: &Chess) -> Vec<Move> {
    let legal = position.legal_moves();
    // Sorting numbers is several times as fast as sorting moves. A place fits into the 8 bits
    // below a move's 16.
    let mut numbers = [0; 256];
    let numbers = &mut numbers[..legal.len()];
    for (place, (number, m)) in numbers.iter_mut().zip(&legal).enumerate() {
        *number = u32::from(PackedMove::pack(*m).bits()) << 8 | place as u32;
    }
    numbers.sort_unstable();
    let places = numbers.iter().map(|number| (number & 0xff) as usize);
    places.map(|place| legal[place]).collect()
}

/// A move as UCI text; with [`CastlingMode::Chess960`] castling is king takes rook.
pub fn uci(m: Move, mode: CastlingMode) -> String {
    UciMove::from_move(m, mode).to_string()
}

/// The castling mode under which the position's own castling rights are written: `Standard`
/// where every remaining right belongs to a king on e1/e8 and a rook in the corner.
pub fn castling_mode(position: &Chess) -> CastlingMode {
    use shakmaty::Square::{A1, A8, E1, E8, H1, H8};
    let rights = position.castles().castling_rights();
    let corners = rights
        .into_iter()
        .all(|rook| [A1, H1, A8, H8].contains(&rook));
    let kings = shakmaty::Color::ALL.into_iter().all(|color| {
        let home = color.fold_wb(E1, E8);
        (rights & shakmaty::Bitboard::from(color.backrank())).is_empty()
            || position.board().king_of(color) == Some(home)
    });
    if corners && kings {
        CastlingMode::Standard
    } else {
        CastlingMode::Chess960
    }
}

/// Reads a move in UCI, legal in `position`; castling may be written either way
/// (`e1g1` or `e1h1`).
pub fn parse_uci(position: &Chess, text: &str) -> Option<Move> {
    text.parse::<UciMove>().ok()?.to_move(position).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::GameHistory;

    #[test]
    fn canonical_order_is_by_origin_target_promotion() {
        let game = GameHistory::from_fen("r3k3/1P6/8/8/8/8/8/R3K2R w KQ - 0 1").unwrap();
        let moves = canonical_moves(game.position());
        let texts: Vec<_> = moves
            .iter()
            .map(|m| uci(*m, CastlingMode::Chess960))
            .collect();
        assert_eq!(&texts[..3], ["a1b1", "a1c1", "a1d1"]);
        let castles: Vec<_> = texts
            .iter()
            .filter(|t| *t == "e1a1" || *t == "e1h1")
            .collect();
        assert_eq!(castles, ["e1a1", "e1h1"]);
        let promotions = &texts[texts.len() - 8..];
        assert_eq!(
            promotions,
            [
                "b7a8n", "b7a8b", "b7a8r", "b7a8q", "b7b8n", "b7b8b", "b7b8r", "b7b8q"
            ]
        );
    }

    #[test]
    fn castling_mode_follows_the_rights() {
        let mode = |fen: &str| castling_mode(GameHistory::from_fen(fen).unwrap().position());
        assert_eq!(
            mode("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"),
            CastlingMode::Standard
        );
        assert_eq!(
            mode("8/4k3/8/8/8/8/8/R4K1R w - - 0 1"),
            CastlingMode::Standard
        );
        assert_eq!(
            mode("8/4k3/8/8/8/8/8/R4K1R w HA - 0 1"),
            CastlingMode::Chess960
        );
        assert_eq!(
            mode("8/4k3/8/8/8/8/8/1R2K2R w HB - 0 1"),
            CastlingMode::Chess960
        );
    }
}
