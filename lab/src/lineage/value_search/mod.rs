//! A value network with best-first search.
//!
//! [`search`] plays; [`training`] makes the network from games against itself. The network sees the board as White does:
//! six planes, White's pieces as 1 and Black's as -1, and values it for White, in pawns.

pub mod search;
pub mod training;

use rookery_common::chess::{GameHistory, GameResult};
use rookery_engine::players::{is_ending, static_evaluation};
use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Color, Position, Role};

use super::neural::{Layer, Network, Trained, Workspace};

/// Numbers of a position: 6 planes of 64 squares.
const INPUTS: usize = 6 * 64;
/// Layers of convolutions, and outputs of the dense layer after them.
const CONVOLUTIONS: usize = 6;
const DENSE: usize = 64;
/// What a mate is worth, in pawns.
const MATE: f32 = 100.0;
/// What the next position's worth counts beside its own.
const DISCOUNT: f32 = 0.9;
/// What a pawn is worth more in an ending, by the ranks behind it, in hundredths of a pawn.
const ENDGAME_PAWN: [i32; 8] = [0, 0, 5, 10, 20, 40, 80, 0];

/// A trained value network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValueSearch {
    network: Network,
}

impl Trained for ValueSearch {
    const KIND: &'static str = "value-search";

    fn network(&self) -> (&Network, usize) {
        (&self.network, INPUTS)
    }
}

impl ValueSearch {
    /// A network of random weights, with this many planes in each convolution.
    fn new(filters: usize, seed: u64) -> Self {
        let mut layers = Vec::new();
        for place in 0..CONVOLUTIONS {
            let inputs = if place == 0 { 6 } else { filters };
            layers.push(Layer::Convolution {
                inputs,
                outputs: filters,
            });
        }
        let dense = |inputs, outputs, relu| Layer::Dense {
            inputs,
            outputs,
            relu,
        };
        layers.extend([dense(64 * filters, DENSE, true), dense(DENSE, 1, false)]);
        let network = Network::new(layers, seed);
        Self { network }
    }

    /// What the network gives White in each of some positions, in pawns.
    fn predict<'a>(
        &self,
        positions: impl Iterator<Item = &'a Chess>,
        work: &mut Workspace,
    ) -> Vec<f32> {
        let inputs: Vec<f32> = positions.flat_map(planes).collect();
        self.network.values(&inputs, work).to_vec()
    }
}

/// The board as White sees it: pawn, knight, bishop, rook, queen, king; 1 is White's and -1 Black's.
fn planes(position: &Chess) -> [f32; INPUTS] {
    let mut planes = [0.0; INPUTS];
    for (square, piece) in position.board() {
        let place = 64 * (piece.role as usize - Role::Pawn as usize) + usize::from(square);
        planes[place] = if piece.color.is_white() { 1.0 } else { -1.0 };
    }
    planes
}

/// The planes with the colours exchanged, for which the value is the same with the other sign.
fn mirrored(planes: &[f32]) -> Vec<f32> {
    let mut other = vec![0.0; planes.len()];
    for (place, value) in planes.iter().enumerate() {
        // A square of the other side's view: ranks are counted from above.
        other[place ^ 56] = -value;
    }
    other
}

/// What a position is worth to White at a glance, in pawns: material, placement, mate.
fn naive(game: &GameHistory) -> f32 {
    match game.end().map(|end| end.result) {
        Some(GameResult::WhiteWins) => return MATE,
        Some(GameResult::BlackWins) => return -MATE,
        Some(GameResult::Draw) => return 0.0,
        None => {}
    }
    let position = game.position();
    let own = static_evaluation(position);
    (position.turn().fold_wb(own, -own) + endgame_pawns(position)) as f32 / 100.0
}

/// What White's pawns are worth more than Black's for their ranks, where both sides are in an ending.
fn endgame_pawns(position: &Chess) -> i32 {
    let board = position.board();
    if !Color::ALL.into_iter().all(|color| is_ending(board, color)) {
        return 0;
    }
    let sum = |color: Color| -> i32 {
        let pawns = board.pawns() & board.by_color(color);
        pawns
            .into_iter()
            .map(|square| ENDGAME_PAWN[usize::from(color.relative_rank(square.rank()))])
            .sum()
    };
    sum(Color::White) - sum(Color::Black)
}

/// The target of a game's last position: its own worth, or, where the game was cut off, what that comes to if it lasts.
fn last_target(game: &GameHistory) -> f32 {
    let own = naive(game);
    if game.end().is_some() {
        own
    } else {
        own / (1.0 - DISCOUNT)
    }
}

/// The targets of a game's positions: each one's own worth and 0.9 of the next one's target, from the `last` one back.
fn targets(naive: &[f32], last: f32) -> Vec<f32> {
    let mut targets = naive.to_vec();
    if let Some(target) = targets.last_mut() {
        *target = last;
    }
    for place in (1..targets.len()).rev() {
        targets[place - 1] += DISCOUNT * targets[place];
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn game(fen: &str) -> GameHistory {
        GameHistory::from_fen(fen).unwrap()
    }

    #[test]
    fn targets_are_as_counted_by_hand() {
        let found = targets(&[1.0, -2.0, 3.0], 10.0);
        // 10; -2 + 9 = 7; 1 + 6.3 = 7.3.
        for (found, expected) in found.iter().zip([7.3, 7.0, 10.0]) {
            assert!((found - expected).abs() < 1e-5, "{found} {expected}");
        }
        assert!(targets(&[], 0.0).is_empty());
    }

    #[test]
    fn a_game_that_was_cut_off_ends_with_what_its_worth_comes_to() {
        let won = game("4k3/P7/8/8/8/8/8/4K3 w - - 0 1");
        assert!((last_target(&won) - 23.0).abs() < 1e-3);
        assert_eq!(last_target(&game("7k/6Q1/5K2/8/8/8/8/8 b - - 0 1")), MATE);
        assert_eq!(last_target(&game("7k/5K2/6Q1/8/8/8/8/8 b - - 0 1")), 0.0);
    }

    #[test]
    fn a_position_is_worth_its_material_placement_and_pawns_in_endings() {
        // A pawn on a7: 100 for it, 50 for its square, 80 in an ending; the same for either side to move.
        for turn in ["w", "b"] {
            let fen = format!("4k3/P7/8/8/8/8/8/4K3 {turn} - - 0 1");
            assert!((naive(&game(&fen)) - 2.3).abs() < 1e-6);
            let fen = format!("4k3/8/8/8/8/8/p7/4K3 {turn} - - 0 1");
            assert!((naive(&game(&fen)) + 2.3).abs() < 1e-6);
        }
        assert_eq!(naive(&game("7k/6Q1/5K2/8/8/8/8/8 b - - 0 1")), MATE);
        assert_eq!(naive(&game("7K/6q1/5k2/8/8/8/8/8 w - - 0 1")), -MATE);
        assert_eq!(naive(&game("7k/5K2/6Q1/8/8/8/8/8 b - - 0 1")), 0.0);
    }

    #[test]
    fn planes_are_signed_and_turn_around_with_the_colours() {
        let white = planes(game("4k3/8/8/8/8/8/P7/4K3 w - - 0 1").position());
        let black = planes(game("4k3/p7/8/8/8/8/8/4K3 w - - 0 1").position());
        assert_eq!(
            (white[8], white[5 * 64 + 4], white[5 * 64 + 60]),
            (1.0, 1.0, -1.0)
        );
        assert_eq!(white.iter().filter(|value| **value != 0.0).count(), 3);
        assert_eq!(mirrored(&white), black);
    }
}
