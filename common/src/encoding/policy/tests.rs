use std::collections::HashSet;

use proptest::prelude::*;
use shakmaty::{CastlingMode, Position};

use super::*;
use crate::chess::GameHistory;
use crate::chess::moves::{canonical_moves, parse_uci};
use crate::encoding::testing;

#[test]
fn sizes_are_the_names() {
    assert_eq!(flat_moves().len(), 1968);
    assert_eq!(lc0_moves().len(), 1858);
    assert_eq!(lc0_conv_cells().len(), 1858);
    let cells: HashSet<_> = lc0_conv_cells().iter().collect();
    assert_eq!(cells.len(), 1858, "every move has a cell of its own");
    assert!(lc0_conv_cells().iter().all(|cell| *cell < 73 * 64));
}

#[test]
fn tables_agree_with_lc0s_own_files() {
    let Some(data) = testing::data_folder() else {
        return;
    };
    let moves = std::fs::read_to_string(data.join("lc0/policy_index_1858.txt")).unwrap();
    assert!(
        moves
            .split_whitespace()
            .eq(lc0_moves().iter().map(String::as_str))
    );
    let map = std::fs::read_to_string(data.join("lc0/conv_policy_map_4672.txt")).unwrap();
    let map: Vec<i32> = map.split_whitespace().map(|n| n.parse().unwrap()).collect();
    for (index, cell) in lc0_conv_cells().iter().enumerate() {
        assert_eq!(
            map[usize::from(*cell)],
            index as i32,
            "{}",
            lc0_moves()[index]
        );
    }
}

fn index(encoding: PolicyEncoding, fen: &str, uci: &str) -> u16 {
    let game = GameHistory::from_fen(fen).unwrap();
    let m = parse_uci(game.position(), uci).unwrap();
    encoding.index(m, game.turn())
}

#[test]
fn black_moves_are_mirrored() {
    let white = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
    let black = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR b KQkq - 0 1";
    for encoding in PolicyEncoding::ALL {
        assert_eq!(
            index(encoding, white, "e2e4"),
            index(encoding, black, "e7e5")
        );
        assert_eq!(
            index(encoding, white, "g1f3"),
            index(encoding, black, "g8f6")
        );
    }
}

#[test]
fn castling_and_promotions_are_where_each_table_says() {
    let castle = "4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1";
    let lc0 = |text: &str| lc0_moves().iter().position(|m| m == text).unwrap() as u16;
    let flat = |text: &str| flat_moves().iter().position(|m| m == text).unwrap() as u16;
    assert_eq!(index(PolicyEncoding::Lc01858, castle, "e1g1"), lc0("e1h1"));
    assert_eq!(
        index(PolicyEncoding::Flat1968, castle, "e1c1"),
        flat("e1c1")
    );
    assert_eq!(
        index(PolicyEncoding::Az73, castle, "e1g1"),
        (7 * 2 + 1) * 64 + 4
    );
    let promote = "4k3/P7/8/8/8/8/8/4K3 w - - 0 1";
    assert_eq!(
        index(PolicyEncoding::Lc01858, promote, "a7a8n"),
        lc0("a7a8")
    );
    assert_eq!(
        index(PolicyEncoding::Lc01858, promote, "a7a8q"),
        lc0("a7a8q")
    );
    assert_eq!(
        index(PolicyEncoding::Flat1968, promote, "a7a8n"),
        flat("a7a8n")
    );
    assert_eq!(index(PolicyEncoding::Az73, promote, "a7a8q"), 48);
    assert_eq!(
        index(PolicyEncoding::Az73, promote, "a7a8n"),
        (64 + 3) * 64 + 48
    );
}

proptest! {
    /// Every legal move has an index of its own below the encoding's size, and the indices of a
    /// position lead back to its moves.
    #[test]
    fn legal_moves_never_collide(game in testing::random_game()) {
        let moves = canonical_moves(game.position());
        for encoding in PolicyEncoding::ALL {
            let indices: HashSet<u16> =
                moves.iter().map(|m| encoding.index(*m, game.turn())).collect();
            prop_assert_eq!(indices.len(), moves.len(), "{}", encoding.name());
            prop_assert!(indices.iter().all(|i| usize::from(*i) < encoding.size()));
        }
    }

    /// The tables name the move that they stand for.
    #[test]
    fn table_entries_spell_the_move(game in testing::random_game()) {
        for m in canonical_moves(game.position()) {
            if game.turn().is_black() || m.is_castle() {
                continue;
            }
            let text = crate::chess::moves::uci(m, CastlingMode::Chess960);
            let flat = usize::from(PolicyEncoding::Flat1968.index(m, game.position().turn()));
            prop_assert_eq!(&flat_moves()[flat], &text);
        }
    }
}
