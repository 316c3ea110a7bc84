//! The narrow interface between search and whatever evaluates positions.
//!
//! Search fills a [`Batch`] with leaves of many games, an [`Evaluator`] fills [`Evaluations`]. All
//! buffers are reused, so the steady state allocates nothing.

use rookery_common::chess::{GameHistory, PackedMove};
use rookery_common::encoding::{InputEncoding, PolicyEncoding, mirror_planes};
use shakmaty::Move;

/// What the mover can expect: probabilities of a win, a draw and a loss, each from 0 to 1, their
/// sum 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Wdl {
    /// The mover wins.
    pub win: f32,
    /// A draw.
    pub draw: f32,
    /// The mover loses.
    pub loss: f32,
}

impl Wdl {
    /// The mover has won.
    pub const WIN: Self = Self {
        win: 1.0,
        draw: 0.0,
        loss: 0.0,
    };
    /// A draw.
    pub const DRAW: Self = Self {
        win: 0.0,
        draw: 1.0,
        loss: 0.0,
    };
    /// The mover has lost.
    pub const LOSS: Self = Self {
        win: 0.0,
        draw: 0.0,
        loss: 1.0,
    };

    /// The expectation of a scalar value head: `q` from -1 to 1, no draws.
    pub fn from_q(q: f32) -> Self {
        let win = (1.0 + q.clamp(-1.0, 1.0)) / 2.0;
        Self {
            win,
            draw: 0.0,
            loss: 1.0 - win,
        }
    }

    /// The expectation from win minus loss alone, `q` from -1 to 1, in a game that has draws: two
    /// half points, each won by itself with the probability `p = (1 + q) / 2`, so that `p²` is a win, `(1 - p)²` a
    /// loss and `2p(1 - p)` a draw. This is Davidson's model of draws (1970) with its `ν = 2`.
    pub fn from_score(q: f32) -> Self {
        let p = (1.0 + q.clamp(-1.0, 1.0)) / 2.0;
        Self {
            win: p * p,
            draw: 2.0 * p * (1.0 - p),
            loss: (1.0 - p) * (1.0 - p),
        }
    }

    /// The expectation with this `q`, win minus loss, and this probability of a draw, which are together at
    /// most 1.
    pub fn from_q_and_draw(q: f32, draw: f32) -> Self {
        let win = (1.0 - draw + q) / 2.0;
        Self {
            win,
            draw,
            loss: 1.0 - draw - win,
        }
    }

    /// Win minus loss, from -1 to 1.
    pub fn q(self) -> f32 {
        self.win - self.loss
    }

    /// Whether these are three probabilities that add up to one, but for rounding: what a search can reckon with.
    pub fn is_distribution(self) -> bool {
        const ROUNDING: f32 = 0.01;
        let shares = [self.win, self.draw, self.loss];
        let are_shares = shares
            .iter()
            .all(|share| (-ROUNDING..=1.0 + ROUNDING).contains(share));
        are_shares && (shares.iter().sum::<f32>() - 1.0).abs() <= ROUNDING
    }

    /// Linear interpolation: `(1 - share) * self + share * other`, `share` from 0 to 1.
    #[must_use]
    pub fn mixed(self, other: Self, share: f32) -> Self {
        let mix = |own: f32, other: f32| (1.0 - share) * own + share * other;
        Self {
            win: mix(self.win, other.win),
            draw: mix(self.draw, other.draw),
            loss: mix(self.loss, other.loss),
        }
    }

    /// The same as the opponent sees it.
    #[must_use]
    pub const fn flipped(self) -> Self {
        Self {
            win: self.loss,
            draw: self.draw,
            loss: self.win,
        }
    }
}

/// Positions to evaluate, packed for the device.
#[derive(Debug, Clone)]
pub struct Batch {
    input: InputEncoding,
    policy: PolicyEncoding,
    binary: Vec<u64>,
    scalars: Vec<f32>,
    moves: Vec<u16>,
    /// Where each position's moves end in `moves`.
    ends: Vec<u32>,
}

impl Batch {
    /// An empty batch for an evaluator of these encodings.
    pub const fn new(input: InputEncoding, policy: PolicyEncoding) -> Self {
        Self {
            input,
            policy,
            binary: Vec::new(),
            scalars: Vec::new(),
            moves: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Checks that the batch has the encodings of a network.
    ///
    /// # Errors
    ///
    /// [`EvaluatorError`] if it has others.
    pub fn check_encodings(
        &self,
        input: InputEncoding,
        policy: PolicyEncoding,
    ) -> Result<(), EvaluatorError> {
        if (self.input, self.policy) == (input, policy) {
            return Ok(());
        }
        let (input, policy) = (input.name(), policy.name());
        Err(EvaluatorError(format!(
            "this network takes {input} and gives {policy}"
        )))
    }

    /// Empties the batch, keeping its memory.
    pub fn clear(&mut self) {
        self.binary.clear();
        self.scalars.clear();
        self.moves.clear();
        self.ends.clear();
    }

    /// Adds the position on the board with its legal moves, in the order in which logits are
    /// wanted.
    pub fn push(&mut self, game: &GameHistory, legal: &[Move]) {
        self.push_packed(game, legal.iter().map(|m| PackedMove::pack(*m)));
    }

    /// As [`push`](Self::push), with packed moves.
    pub(crate) fn push_packed(
        &mut self,
        game: &GameHistory,
        legal: impl IntoIterator<Item = PackedMove>,
    ) {
        self.push_planes(game);
        self.policy
            .indices_into(legal, game.position(), &mut self.moves);
        self.ends.push(self.moves.len() as u32);
    }

    /// Adds the position on the board with policy indices instead of moves, legal or not.
    pub fn push_indices(&mut self, game: &GameHistory, indices: impl IntoIterator<Item = u16>) {
        self.push_planes(game);
        self.moves.extend(indices);
        self.ends.push(self.moves.len() as u32);
    }

    /// Adds a position that is encoded already: its planes, and the policy indices of its moves.
    ///
    /// # Panics
    ///
    /// If there are not as many planes as the input encoding has.
    pub fn push_encoded(&mut self, binary: &[u64], scalars: &[f32], moves: &[u16]) {
        assert_eq!(binary.len(), self.input.binary_planes(), "binary planes");
        assert_eq!(scalars.len(), self.input.scalar_planes(), "scalar planes");
        self.binary.extend_from_slice(binary);
        self.scalars.extend_from_slice(scalars);
        self.moves.extend_from_slice(moves);
        self.ends.push(self.moves.len() as u32);
    }

    fn push_planes(&mut self, game: &GameHistory) {
        let binary = self.binary.len();
        let scalars = self.scalars.len();
        self.binary.resize(binary + self.input.binary_planes(), 0);
        self.scalars
            .resize(scalars + self.input.scalar_planes(), 0.0);
        self.input.encode_into(
            game,
            &mut self.binary[binary..],
            &mut self.scalars[scalars..],
        );
    }

    /// Adds the position at `index` of another batch of the same encodings.
    pub fn push_from(&mut self, other: &Self, index: usize) {
        let (binary, scalars) = (other.binary_of(index), other.scalars_of(index));
        self.push_encoded(binary, scalars, other.moves_of(index));
    }

    /// Mirrors the position at `index` with its moves: files a to h become h to a. For positions that
    /// [`can_mirror`](rookery_common::encoding::can_mirror) allows.
    pub fn mirror(&mut self, index: usize) {
        let planes = self.input.binary_planes();
        mirror_planes(&mut self.binary[index * planes..(index + 1) * planes]);
        let range = self.move_range(index);
        for m in &mut self.moves[range] {
            *m = self.policy.mirrored(*m);
        }
    }

    /// Takes the last position out again.
    pub fn pop(&mut self) {
        if self.ends.pop().is_some() {
            let positions = self.ends.len();
            self.binary.truncate(positions * self.input.binary_planes());
            self.scalars
                .truncate(positions * self.input.scalar_planes());
            self.moves
                .truncate(self.ends.last().map_or(0, |end| *end as usize));
        }
    }

    /// Number of positions.
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no position.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The input encoding of the positions.
    pub const fn input(&self) -> InputEncoding {
        self.input
    }

    /// The policy encoding of the moves.
    pub const fn policy(&self) -> PolicyEncoding {
        self.policy
    }

    /// Binary planes of all positions, position after position.
    pub fn binary(&self) -> &[u64] {
        &self.binary
    }

    /// Scalar planes of all positions, position after position, as counted.
    pub fn scalars(&self) -> &[f32] {
        &self.scalars
    }

    /// Policy indices of the legal moves of all positions, position after position.
    pub fn moves(&self) -> &[u16] {
        &self.moves
    }

    /// Where each position's moves end in [`moves`](Self::moves).
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Binary planes of one position.
    pub fn binary_of(&self, index: usize) -> &[u64] {
        let planes = self.input.binary_planes();
        &self.binary[index * planes..(index + 1) * planes]
    }

    /// Scalar planes of one position.
    pub fn scalars_of(&self, index: usize) -> &[f32] {
        let planes = self.input.scalar_planes();
        &self.scalars[index * planes..(index + 1) * planes]
    }

    /// Where the moves of one position lie in [`moves`](Self::moves), and its logits in
    /// [`Evaluations::logits`].
    pub fn move_range(&self, index: usize) -> std::ops::Range<usize> {
        let start = index
            .checked_sub(1)
            .map_or(0, |before| self.ends[before] as usize);
        start..self.ends[index] as usize
    }

    /// Policy indices of the legal moves of one position.
    pub fn moves_of(&self, index: usize) -> &[u16] {
        &self.moves[self.move_range(index)]
    }
}

/// What an evaluator says of a batch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evaluations {
    /// A policy logit for each of the batch's legal moves, in the same order.
    pub logits: Vec<f32>,
    /// The value of each position for its mover.
    pub values: Vec<Wdl>,
}

impl Evaluations {
    /// Empties the answer, keeping its memory.
    pub fn clear(&mut self) {
        self.logits.clear();
        self.values.clear();
    }

    /// The largest difference from what is expected: of logits relative to `1 + |logit|`, of probabilities as they are.
    /// Infinite where there are more numbers or fewer, and NaN where one of them is NaN.
    pub fn largest_difference(&self, expected: &Self) -> f32 {
        if (self.logits.len(), self.values.len()) != (expected.logits.len(), expected.values.len())
        {
            return f32::INFINITY;
        }
        let logits = self.logits.iter().zip(&expected.logits);
        let logits = logits.map(|(a, b)| (a - b).abs() / (1.0 + b.abs()));
        let values = self.values.iter().zip(&expected.values);
        let values = values.flat_map(|(a, b)| [a.win - b.win, a.draw - b.draw, a.loss - b.loss]);
        let larger = |most: f32, apart: f32| {
            if apart > most || apart.is_nan() {
                apart
            } else {
                most
            }
        };
        logits.chain(values.map(f32::abs)).fold(0.0, larger)
    }

    /// The answer to each position of the batch: the logits of its legal moves, and its value.
    pub(crate) fn of_batch<'a>(
        &'a self,
        batch: &'a Batch,
    ) -> Result<impl Iterator<Item = (&'a [f32], Wdl)>, EvaluatorError> {
        if self.values.len() != batch.len() || self.logits.len() != batch.moves().len() {
            let text = "the answer does not fit the question";
            return Err(EvaluatorError(text.to_owned()));
        }
        let logits = |index| &self.logits[batch.move_range(index)];
        Ok((0..batch.len()).map(move |index| (logits(index), self.values[index])))
    }
}

/// An evaluator that could not answer: a device that failed, an answer that is not finite.
#[derive(Debug, thiserror::Error)]
#[error("evaluation failed: {0}")]
pub struct EvaluatorError(pub String);

/// Something that evaluates positions: a network on a device, or a stand-in for tests.
pub trait Evaluator {
    /// The input encoding that batches must have.
    fn input(&self) -> InputEncoding;

    /// The policy encoding that batches must have.
    fn policy(&self) -> PolicyEncoding;

    /// Evaluates every position of `batch` into `answer`, whose old content is dropped.
    ///
    /// # Errors
    ///
    /// [`EvaluatorError`] if the device failed or an output is not finite; `answer` is then
    /// unspecified.
    fn evaluate(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError>;
}

impl<E: Evaluator + ?Sized> Evaluator for Box<E> {
    fn input(&self) -> InputEncoding {
        (**self).input()
    }

    fn policy(&self) -> PolicyEncoding {
        (**self).policy()
    }

    fn evaluate(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        (**self).evaluate(batch, answer)
    }
}

impl<E: Evaluator + ?Sized> Evaluator for &mut E {
    fn input(&self) -> InputEncoding {
        (**self).input()
    }

    fn policy(&self) -> PolicyEncoding {
        (**self).policy()
    }

    fn evaluate(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        (**self).evaluate(batch, answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_keeps_its_expectation_and_leaves_room_for_draws() {
        for (q, draw) in [
            (-1.0, 0.0),
            (-0.6, 0.32),
            (0.0, 0.5),
            (0.2, 0.48),
            (1.0, 0.0),
        ] {
            let wdl = Wdl::from_score(q);
            assert!((wdl.q() - q).abs() < 1e-6, "{wdl:?}");
            assert!((wdl.draw - draw).abs() < 1e-6, "{wdl:?}");
            assert!(
                (wdl.win + wdl.draw + wdl.loss - 1.0).abs() < 1e-6,
                "{wdl:?}"
            );
        }
        assert_eq!(Wdl::from_score(7.0), Wdl::WIN);
    }
    #[test]
    fn answers_that_lack_numbers_are_near_none() {
        let answer = |logits: &[f32], win: f32| Evaluations {
            logits: logits.to_vec(),
            values: vec![Wdl { win, ..Wdl::LOSS }],
        };
        let expected = answer(&[1.0, 3.0], 0.5);
        let apart = |logits: &[f32], win| answer(logits, win).largest_difference(&expected);
        assert_eq!(apart(&[1.0, 3.0], 0.5), 0.0);
        assert_eq!(apart(&[1.0, 4.0], 0.5), 0.25);
        assert_eq!(apart(&[1.0, 4.0], 1.0), 0.5);
        assert_eq!(apart(&[1.0], 0.5), f32::INFINITY);
        assert!(apart(&[f32::NAN, 4.0], 0.5).is_nan());
    }
}
