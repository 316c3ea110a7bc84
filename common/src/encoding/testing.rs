//! What the tests of encodings share: random games and the folder of real data.

use std::path::PathBuf;

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shakmaty::Position;

use crate::chess::GameHistory;

/// The folder of real data if it is there: `ROOKERY_DATA`, or `../shared/data` beside the
/// repository.
pub(crate) fn data_folder() -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data");
    let folder = std::env::var_os("ROOKERY_DATA").map_or_else(|| default.into(), PathBuf::from);
    folder.is_dir().then_some(folder)
}

/// A game of up to 120 random legal moves from the standard or a Chess960 start.
pub(crate) fn random_game() -> impl Strategy<Value = GameHistory> {
    (any::<u64>(), 0..120_usize, prop::bool::ANY).prop_map(|(seed, plies, shuffle)| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut game = if shuffle {
            chess960_start(&mut rng)
        } else {
            GameHistory::default()
        };
        for _ in 0..plies {
            let moves = game.position().legal_moves();
            if game.end().is_some() {
                break;
            }
            game.push(moves[rng.random_range(0..moves.len())]);
        }
        game
    })
}

/// A random Chess960 start: bishops on squares of both colours, the king between the rooks.
fn chess960_start(rng: &mut ChaCha8Rng) -> GameHistory {
    let mut row = [b'.'; 8];
    row[2 * rng.random_range(0..4)] = b'b';
    row[2 * rng.random_range(0..4) + 1] = b'b';
    for piece in *b"qnn" {
        let free: Vec<usize> = (0..8).filter(|file| row[*file] == b'.').collect();
        row[free[rng.random_range(0..free.len())]] = piece;
    }
    let free = (0..8)
        .filter(|file| row[*file] == b'.')
        .collect::<Vec<usize>>();
    for (file, piece) in free.into_iter().zip(*b"rkr") {
        row[file] = piece;
    }
    let black = String::from_utf8_lossy(&row).into_owned();
    let white = black.to_uppercase();
    let fen = format!("{black}/pppppppp/8/8/8/8/PPPPPPPP/{white} w KQkq - 0 1");
    GameHistory::from_fen(&fen).expect("a Chess960 start is legal")
}
