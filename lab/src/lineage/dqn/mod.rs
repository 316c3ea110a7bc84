//! A Q-learner of chess moves, in two forms.
//!
//! **Published**: 64 piece values as the mover sees the board and one number for the move go through dense layers, all of
//! them rectified. Only decided games teach: ply `i` has the target `gamma * i * reward` if its mover won, and
//! `gamma * i * malus` if it lost. One number for a move says nothing of it that a few layers could use, and no output
//! is negative: this form does not learn, which is why the other stands beside it.
//!
//! **Double**: the move is given by planes for its origin, its target and its promotion, the output is linear, and
//! moves are learnt from a [replay buffer](replay) with a target network (double Q-learning, van Hasselt and others, arXiv
//! 1509.06461). The opponent moves next, so that its best value counts against the mover. The target network follows the
//! learner a little after every step (Lillicrap and others, arXiv 1509.02971): with the sign that changes at every ply,
//! a hard copy now and then turns a common offset of all values around at each copy.

mod replay;
mod training;

use rookery_common::chess::GameHistory;
use rookery_common::chess::moves::canonical_moves;
use rookery_common::encoding::PolicyEncoding;
use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Move, Position, Role};

use super::neural::{Layer, Network, Trained, Workspace};

pub use training::{Settings, Trainer};

/// Sizes of the published hidden layers, and of the double form's.
const HIDDEN: [u16; 7] = [20, 18, 18, 18, 18, 10, 10];
const DOUBLE_HIDDEN: [u16; 2] = [128, 64];

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// As it was published; it does not learn.
    Published,
    /// Moves as planes, replay, and a target network.
    Double,
}

impl Form {
    /// Inputs of the network.
    pub const fn inputs(self) -> usize {
        match self {
            Self::Published => 65,
            Self::Double => 64 + 64 + 64 + 4,
        }
    }

    /// Sizes of its hidden layers, where the user names none.
    pub const fn hidden(self) -> &'static [u16] {
        match self {
            Self::Published => &HIDDEN,
            Self::Double => &DOUBLE_HIDDEN,
        }
    }

    /// The state and a legal move, as the network gets them.
    pub fn encode(self, position: &Chess, m: Move) -> Vec<f32> {
        let mut inputs = Vec::with_capacity(self.inputs());
        self.encode_all(position, &[m], &mut inputs);
        inputs
    }

    /// Adds the state with each of some legal moves to `inputs`.
    fn encode_all(self, position: &Chess, moves: &[Move], inputs: &mut Vec<f32>) {
        let mut state = state(position);
        if self == Self::Double {
            // Kings are always there, and would drown the rest.
            state
                .iter_mut()
                .for_each(|value| *value = (*value / 100.0).clamp(-1.0, 1.0));
        }
        for m in moves {
            inputs.extend_from_slice(&state);
            self.encode_move(position, *m, inputs);
        }
    }

    fn encode_move(self, position: &Chess, m: Move, inputs: &mut Vec<f32>) {
        match self {
            Self::Published => {
                inputs.push(f32::from(PolicyEncoding::Lc01858.index(m, position.turn())));
            }
            Self::Double => {
                let mut planes = [0.0; 132];
                let seen = |square: shakmaty::Square| {
                    usize::from(position.turn().fold_wb(square, square.flip_vertical()))
                };
                if let Some(from) = m.from() {
                    planes[seen(from)] = 1.0;
                }
                planes[64 + seen(m.to())] = 1.0;
                let promotions = [Role::Knight, Role::Bishop, Role::Rook, Role::Queen];
                if let Some(place) = promotions
                    .iter()
                    .position(|role| m.promotion() == Some(*role))
                {
                    planes[128 + place] = 1.0;
                }
                inputs.extend_from_slice(&planes);
            }
        }
    }
}

/// The pieces as the mover sees the board: pawn 10, knight and bishop 30, rook 50, queen 90, king 900, and the
/// opponent's below 0.
fn state(position: &Chess) -> [f32; 64] {
    let mut squares = [0.0; 64];
    for (square, piece) in position.board() {
        let value = match piece.role {
            Role::Pawn => 10.0,
            Role::Knight | Role::Bishop => 30.0,
            Role::Rook => 50.0,
            Role::Queen => 90.0,
            Role::King => 900.0,
        };
        let own = piece.color == position.turn();
        let seen = position.turn().fold_wb(square, square.flip_vertical());
        squares[usize::from(seen)] = if own { value } else { -value };
    }
    squares
}

/// A Q-learner.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Dqn {
    form: Form,
    network: Network,
}

impl Trained for Dqn {
    const KIND: &'static str = "dqn";

    fn network(&self) -> (&Network, usize) {
        (&self.network, self.form.inputs())
    }
}

impl Dqn {
    fn new(form: Form, hidden: &[u16], seed: u64) -> Self {
        let sizes: Vec<usize> = hidden.iter().map(|size| usize::from(*size)).collect();
        let inputs = std::iter::once(form.inputs()).chain(sizes.iter().copied());
        let outputs = sizes.iter().copied().chain([1]);
        let mut layers: Vec<Layer> = inputs
            .zip(outputs)
            .map(|(inputs, outputs)| Layer::Dense {
                inputs,
                outputs,
                relu: true,
            })
            .collect();
        if form == Form::Double
            && let Some(Layer::Dense { relu, .. }) = layers.last_mut()
        {
            *relu = false;
        }
        let mut network = Network::new(layers, seed);
        if form == Form::Double {
            network.zero_output();
        }
        Self { form, network }
    }

    /// The legal move of the highest value, the first among equals; none where the game is over.
    pub fn best(&self, game: &GameHistory) -> Option<Move> {
        self.best_with(game, &mut Workspace::default())
    }

    fn best_with(&self, game: &GameHistory, work: &mut Workspace) -> Option<Move> {
        let moves = canonical_moves(game.position());
        let mut inputs = Vec::with_capacity(moves.len() * self.form.inputs());
        self.form.encode_all(game.position(), &moves, &mut inputs);
        let place = highest(self.network.values(&inputs, work))?;
        Some(moves[place])
    }
}

/// The place of the highest value, the first among equals.
fn highest(values: &[f32]) -> Option<usize> {
    let better = |best: usize, other: usize| {
        if values[other] > values[best] {
            other
        } else {
            best
        }
    };
    (0..values.len()).reduce(better)
}

#[cfg(test)]
mod tests {
    use rookery_common::chess::moves::parse_uci;

    use super::*;

    #[test]
    fn both_sides_see_the_board_and_the_move_alike() {
        let of = |fen: &str, m: &str, form: Form| {
            let game = GameHistory::from_fen(fen).unwrap();
            form.encode(game.position(), parse_uci(game.position(), m).unwrap())
        };
        let white = "4k3/P7/8/8/8/8/7q/N3K3 w - - 0 1";
        let black = "n3k3/7Q/8/8/8/8/p7/4K3 b - - 0 1";
        for form in [Form::Published, Form::Double] {
            let input = of(white, "a7a8q", form);
            assert_eq!(input, of(black, "a2a1q", form));
            assert_eq!(input.len(), form.inputs());
        }
        let published = of(white, "a1b3", Form::Published);
        // a1, e1, h2 and a7, as the mover sees them.
        assert_eq!(
            [published[0], published[4], published[15], published[48]],
            [30.0, 900.0, -90.0, 10.0]
        );
        let double = of(white, "a7a8q", Form::Double);
        assert_eq!(
            [double[64 + 48], double[128 + 56], double[192 + 3]],
            [1.0; 3]
        );
        assert_eq!(double[64..].iter().sum::<f32>(), 3.0);
    }
}
