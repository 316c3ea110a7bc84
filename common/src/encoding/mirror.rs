//! Positions in a mirror: the files a to h become h to a.
//!
//! But for castling, chess is the same in the mirror. So a position in whose visible history nobody may
//! castle teaches a network twice: as it was played, and mirrored.

use shakmaty::Position;

use crate::chess::GameHistory;

use super::input::BOARDS;

/// Whether the position on the board and all boards that encodings show with it can be mirrored:
/// neither side had the right to castle in any of them.
pub fn can_mirror(game: &GameHistory) -> bool {
    // Rights are only ever lost, so the oldest board has those of all.
    let oldest = game.plies().min(BOARDS - 1);
    game.look_back(oldest)
        .is_some_and(|(position, _)| position.castles().castling_rights().is_empty())
}

/// Mirrors binary planes; those that are filled stay as they are.
pub fn mirror_planes(planes: &mut [u64]) {
    for plane in planes {
        *plane = plane.reverse_bits().swap_bytes();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shakmaty::fen::Fen;
    use shakmaty::{CastlingMode, Chess, EnPassantMode, FromSetup, Move, Setup};

    use super::*;
    use crate::chess::PackedMove;
    use crate::chess::moves::canonical_moves;
    use crate::encoding::testing::random_game;
    use crate::encoding::{InputEncoding, PolicyEncoding};

    /// A game with the board mirrored by shakmaty's own hand, played again move for move.
    fn mirrored(start: &Chess, moves: &[Move]) -> GameHistory {
        let setup = start.to_setup(EnPassantMode::Always);
        let mut board = setup.board.clone();
        board.flip_horizontal();
        let setup = Setup {
            board,
            ep_square: setup.ep_square.map(shakmaty::Square::flip_horizontal),
            ..setup
        };
        let mut game = GameHistory::new(Chess::from_setup(setup, CastlingMode::Chess960).unwrap());
        for m in moves {
            let twin = twin(game.position(), *m);
            game.push(twin);
        }
        game
    }

    /// The legal move that is `m` in the mirror.
    fn twin(position: &Chess, m: Move) -> Move {
        let ends = |m: Move| (m.from().unwrap(), m.to(), m.promotion());
        let (from, to, promotion) = ends(m);
        let wanted = (from.flip_horizontal(), to.flip_horizontal(), promotion);
        let legal = canonical_moves(position);
        *legal.iter().find(|other| ends(**other) == wanted).unwrap()
    }

    /// A game without castling rights: the end of `game` as if it had begun there.
    fn without_rights(game: &GameHistory, plies: usize) -> (Chess, Vec<Move>) {
        let setup = Setup {
            castling_rights: shakmaty::Bitboard::EMPTY,
            ..game.position().to_setup(EnPassantMode::Always)
        };
        let start = Chess::from_setup(setup, CastlingMode::Chess960).unwrap();
        let (mut position, mut moves) = (start.clone(), Vec::new());
        for place in 0..plies {
            let legal = canonical_moves(&position);
            let Some(m) = legal.get((place * 7 + plies) % legal.len().max(1)) else {
                break;
            };
            moves.push(*m);
            position.play_unchecked(*m);
        }
        (start, moves)
    }

    proptest! {
        #[test]
        fn a_mirrored_position_is_that_of_the_mirrored_game(game in random_game(), plies in 0..20_usize) {
            let (start, moves) = without_rights(&game, plies);
            let mut plain = GameHistory::new(start.clone());
            moves.iter().for_each(|m| plain.push(*m));
            prop_assert!(can_mirror(&plain));
            let other = mirrored(&start, &moves);
            for input in InputEncoding::ALL {
                let mut packed = input.encode(&plain);
                mirror_planes(&mut packed.binary);
                prop_assert_eq!(packed, input.encode(&other));
            }
            for policy in PolicyEncoding::ALL {
                for m in canonical_moves(plain.position()) {
                    let expected = policy.index(twin(other.position(), m), other.turn());
                    let index = policy.index(m, plain.turn());
                    prop_assert_eq!(policy.mirrored(index), expected);
                    prop_assert_eq!(policy.mirrored(expected), index);
                }
            }
        }

        #[test]
        fn packed_moves_mirror_as_their_squares(game in random_game()) {
            for m in canonical_moves(game.position()) {
                let packed = PackedMove::pack(m);
                prop_assert_eq!(packed.mirrored().mirrored(), packed);
                prop_assert_ne!(packed.mirrored(), packed);
            }
        }
    }

    #[test]
    fn every_policy_index_has_one_mirror_image() {
        for policy in PolicyEncoding::ALL {
            let size = policy.size() as u16;
            let images: std::collections::HashSet<u16> =
                (0..size).map(|index| policy.mirrored(index)).collect();
            assert_eq!(images.len(), policy.size(), "{}", policy.name());
        }
    }

    #[test]
    fn castling_rights_on_any_visible_board_forbid_the_mirror() {
        let game = |fen: &str| {
            let fen: Fen = fen.parse().unwrap();
            GameHistory::new(fen.into_position(CastlingMode::Chess960).unwrap())
        };
        assert!(!can_mirror(&GameHistory::default()));
        assert!(!can_mirror(&game("4k3/8/8/8/8/8/8/R3K3 w Q - 0 1")));
        assert!(!can_mirror(&game("r3k3/8/8/8/8/8/8/4K3 w q - 0 1")));
        assert!(can_mirror(&game("r3k2r/8/8/8/8/8/8/R3K2R w - - 0 1")));
        // The right is lost by the first move; that board is seen for seven plies more.
        let mut game = game("4k3/p7/8/8/8/8/8/R3K3 w Q - 0 1");
        for ply in 0..9 {
            assert_eq!(can_mirror(&game), ply >= 8, "after {ply} plies");
            let quiet = canonical_moves(game.position())
                .into_iter()
                .find(|m| m.role() == shakmaty::Role::King && !m.is_castle())
                .unwrap();
            game.push(quiet);
        }
    }
}
