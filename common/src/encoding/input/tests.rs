use proptest::prelude::*;

use super::*;
use crate::chess::moves::parse_uci;
use crate::encoding::testing;

fn game(fen: &str, moves: &str) -> GameHistory {
    let mut game = GameHistory::from_fen(fen).unwrap();
    for text in moves.split_whitespace() {
        let m = parse_uci(game.position(), text).unwrap();
        game.push(m);
    }
    game
}

const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

#[test]
fn the_standard_start_has_no_history() {
    let packed = InputEncoding::Lc0112.encode(&game(START, ""));
    assert_eq!(packed.binary[0], 0xff00, "own pawns on the second rank");
    assert_eq!(packed.binary[11], 1 << 60, "their king on e8");
    assert!(packed.binary[13..].iter().all(|plane| *plane == 0));
    assert_eq!(packed.scalars, [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
}

#[test]
fn the_standard_start_with_black_to_move_stands_for_the_boards_before_it() {
    let packed = InputEncoding::Lc0112.encode(&game(&START.replace(" w ", " b "), ""));
    let (boards, _) = packed.binary.as_chunks::<13>();
    assert!(boards.iter().all(|board| board[0] == 0xff00));
}

#[test]
fn black_sees_the_board_from_its_side_and_history_with_it() {
    let packed = InputEncoding::Lc0112.encode(&game(START, "e2e4"));
    assert_eq!(packed.binary[0], 0xff00);
    assert_eq!(
        packed.binary[6],
        (0xff << 48) & !(1 << 52) | 1 << 36,
        "their pawn on e4, seen as e5"
    );
    assert_eq!(
        packed.binary[13 + 6],
        0xff << 48,
        "one ply ago on e2, seen as e7"
    );
    assert!(packed.binary[26..].iter().all(|plane| *plane == 0));
    assert_eq!(packed.scalars[4], 1.0);
}

#[test]
fn another_start_stands_for_the_boards_before_it() {
    let packed = InputEncoding::Lc0112.encode(&game("4k3/8/8/8/8/8/4P3/4K3 w - - 7 40", "e1d1"));
    let (boards, _) = packed.binary.as_chunks::<13>();
    assert_ne!(boards[0], boards[1]);
    assert!(boards[2..].iter().all(|board| board == &boards[1]));
    assert_eq!(packed.scalars[5], 8.0);
}

#[test]
fn a_double_push_before_the_start_is_taken_back_in_the_boards_before() {
    let fen = "4k3/8/8/8/3pP3/8/8/4K3 b - e3 0 1";
    let packed = InputEncoding::Lc0112.encode(&game(fen, ""));
    let (boards, _) = packed.binary.as_chunks::<13>();
    assert_eq!(boards[0][6], 1 << 36, "e4 as Black sees it");
    assert_eq!(boards[1][6], 1 << 52, "e2 as Black sees it");
    assert_eq!(boards[7], boards[1]);
    let later = InputEncoding::Lc0112.encode(&game(fen, "e8e7"));
    let (boards, _) = later.binary.as_chunks::<13>();
    assert_eq!(
        (boards[1][0], boards[2][0]),
        (1 << 28, 1 << 12),
        "and so after Black's answer"
    );
}

#[test]
fn repetitions_are_marked_where_they_happened() {
    let shuffle = game(START, "g1f3 g8f6 f3g1 f6g8 g1f3");
    let packed = InputEncoding::Az119.encode(&shuffle);
    let (boards, _) = packed.binary.as_chunks::<14>();
    let marks: Vec<_> = boards
        .iter()
        .map(|board| (board[12] != 0, board[13] != 0))
        .collect();
    assert_eq!(marks[..3], [(true, false), (true, false), (false, false)]);
}

#[test]
fn classic_shows_rights_and_en_passant() {
    let fen = "4k3/8/8/8/3pP3/8/8/R3K3 b Q e3 0 1";
    let packed = InputEncoding::Classic19.encode(&game(fen, ""));
    assert_eq!(
        packed.binary[12..16],
        [0, 0, 0, !0],
        "their queenside right"
    );
    assert_eq!(packed.binary[16], 1 << 44, "e3 as Black sees it");
    assert_eq!(packed.scalars, [0.0, 1.0]);
}

proptest! {
    /// Flipping colours changes nothing but the colour plane, save at the start: what comes before
    /// it is empty for White only.
    #[test]
    fn the_mover_sees_the_same_with_colours_flipped(game in testing::random_game()) {
        prop_assume!(!is_standard_start(game.position()));
        let flipped = shakmaty::fen::Fen::from_position(game.position(), EnPassantMode::Always);
        let mirror = flipped.into_setup().into_mirrored();
        let mirrored: Chess = mirror.position(shakmaty::CastlingMode::Chess960).unwrap();
        let (here, there) = (GameHistory::new(game.position().clone()), GameHistory::new(mirrored));
        for encoding in InputEncoding::ALL {
            let (a, b) = (encoding.encode(&here), encoding.encode(&there));
            prop_assert_eq!(&a.binary, &b.binary, "{}", encoding.name());
            let differing = a.scalars.iter().zip(&b.scalars).filter(|(x, y)| x != y).count();
            prop_assert_eq!(differing, 1, "only the colour plane of {}", encoding.name());
        }
    }

    /// Sizes are fixed, and every square of the first board holds at most one piece.
    #[test]
    fn sizes_are_fixed(game in testing::random_game()) {
        for encoding in InputEncoding::ALL {
            let packed = encoding.encode(&game);
            prop_assert_eq!(packed.binary.len() + packed.scalars.len(), encoding.planes());
            let pieces: u32 = packed.binary[..12].iter().map(|plane| plane.count_ones()).sum();
            let occupied: u64 = packed.binary[..12].iter().fold(0, |all, plane| all | plane);
            prop_assert_eq!(pieces, occupied.count_ones());
            prop_assert_eq!(encoding.scalar_scales().len(), packed.scalars.len());
        }
    }
}
