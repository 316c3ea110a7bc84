//! Targets of a batch as tensors, and the losses against them.

use rookery_backend_cpu::PolicyCells;
use rookery_backend_torch::error::TorchResult;
use rookery_backend_torch::graph::RawOutputs;
use rookery_backend_torch::tensors::upload;
use rookery_common::network::{AuxiliaryHead, ValueHead};
use tch::{Device, Kind, Reduction, Tensor};

use crate::error::{Result, TrainError};
use crate::trainer::{AuxiliaryTargets, BoardsAhead, TrainBatch};

/// The plies that the moves left head's output counts in ones.
const PLIES_UNIT: f32 = 20.0;

/// A logit that no softmax gives weight to, yet finite.
const NEVER: f64 = -1e9;

/// The temperature of the soft policy target, and what each legal move's share gets before (KataGo).
const SOFT_TEMPERATURE: f64 = 4.0;
const SOFT_FLOOR: f64 = 1e-7;

/// What the network ought to say.
#[derive(Debug)]
pub(crate) struct Targets {
    policy: PolicyTargets,
    /// `[positions, 3]`: win, draw, loss.
    value: Tensor,
    /// What auxiliary heads ought to say, for networks that have some.
    ahead: Option<AheadTargets>,
    /// What the opponent will play, for networks that learn it.
    replies: Option<PolicyTargets>,
    /// What stands on the squares later, for networks that learn it.
    boards: Option<BoardTargets>,
}

#[derive(Debug)]
struct BoardTargets {
    /// `[positions, 1, 8, 8]`: classes of squares some plies later.
    future: Tensor,
    /// The same at the game's end.
    last: Tensor,
    /// `[positions]`: one where the boards are known, else zero.
    known: Tensor,
}

/// Distributions over legal moves, each row padded to the longest list of them.
#[derive(Debug)]
struct PolicyTargets {
    /// `[positions, moves]`: the cells of the legal moves.
    cells: Tensor,
    /// `[positions, moves]`: where there is no move.
    padding: Tensor,
    /// `[positions, moves]`: the target distribution.
    shares: Tensor,
}

#[derive(Debug)]
struct AheadTargets {
    /// `[positions]`: plies until the game's end, in units of [`PLIES_UNIT`]; 0 where it is unknown.
    plies: Tensor,
    /// `[positions]`: one where the plies are known, else zero.
    known: Tensor,
    /// `[positions, 3]`: win, draw, loss.
    short_value: Tensor,
}

/// The losses as tensors that gradients flow from.
pub(crate) struct LossTensors {
    /// Policy cross-entropy, mean over the positions that have a policy target.
    pub(crate) policy: Tensor,
    /// Value cross-entropy or squared error, mean over positions.
    pub(crate) value: Tensor,
    /// Of the auxiliary heads, in the order of [`AuxiliaryHead::ALL`]; none of those that the network
    /// does not have. Smooth absolute error of the plies left in units of 20 plies, else cross-entropy.
    pub(crate) auxiliary: [Option<Tensor>; AuxiliaryHead::ALL.len()],
    /// Share of positions with a policy target whose likeliest move is the target's.
    pub(crate) accuracy: Tensor,
}

impl Targets {
    /// Checks a batch's targets and brings them to the device.
    pub(crate) fn new(batch: &TrainBatch, cells: &PolicyCells, device: Device) -> Result<Self> {
        batch.check()?;
        let positions = &batch.positions;
        let rows = positions.len();
        let played = |row: usize| {
            (
                positions.moves_of(row),
                &batch.policy[positions.move_range(row)],
            )
        };
        let replies = (!batch.replies.is_empty())
            .then(|| PolicyTargets::new(rows, |row| batch.replies.of(row), cells, device));
        let value = batch.values.iter().flat_map(|v| [v.win, v.draw, v.loss]);
        let value: Vec<f32> = value.collect();
        Ok(Self {
            policy: PolicyTargets::new(rows, played, cells, device)?,
            value: upload(
                &Tensor::f_from_slice(&value)?.f_reshape([rows as i64, 3])?,
                device,
            )?,
            ahead: AheadTargets::new(&batch.ahead, device)?,
            replies: replies.transpose()?,
            boards: BoardTargets::new(&batch.boards, device)?,
        })
    }

    /// The losses of a network's outputs.
    pub(crate) fn losses(&self, raw: &RawOutputs, head: ValueHead) -> TorchResult<LossTensors> {
        let logits = self.policy.logits(&raw.policy)?;
        let mut auxiliary = [const { None }; AuxiliaryHead::ALL.len()];
        for (kind, output) in &raw.auxiliary {
            auxiliary[kind.index()] = self.auxiliary_loss(*kind, output)?;
        }
        Ok(LossTensors {
            policy: self.policy.cross_entropy(&logits)?,
            value: self.value_loss(&raw.value.f_to_kind(Kind::Float)?, head)?,
            auxiliary,
            accuracy: self.policy.accuracy(&logits.f_detach()?)?,
        })
    }

    /// The loss of what a head that only training uses says; none without its targets.
    fn auxiliary_loss(&self, head: AuxiliaryHead, output: &Tensor) -> TorchResult<Option<Tensor>> {
        match head {
            AuxiliaryHead::MovesLeft | AuxiliaryHead::ShortValue => {
                let ahead = self.ahead.as_ref();
                ahead.map(|ahead| ahead.loss(head, output)).transpose()
            }
            AuxiliaryHead::OpponentReply => {
                let replies = self.replies.as_ref();
                replies.map(|replies| replies.loss(output)).transpose()
            }
            AuxiliaryHead::FutureBoard | AuxiliaryHead::FinalBoard => {
                let boards = self.boards.as_ref();
                boards.map(|boards| boards.loss(head, output)).transpose()
            }
            AuxiliaryHead::SoftPolicy => self.policy.softened()?.loss(output).map(Some),
        }
    }

    fn value_loss(&self, value: &Tensor, head: ValueHead) -> TorchResult<Tensor> {
        let each = match head {
            ValueHead::Wdl { .. } => cross_entropy(value, &self.value)?,
            ValueHead::Scalar { .. } => {
                let q = self
                    .value
                    .f_select(1, 0)?
                    .f_sub(&self.value.f_select(1, 2)?)?;
                value.f_tanh()?.f_flatten(0, -1)?.f_sub(&q)?.f_square()?
            }
        };
        each.f_mean(None)
    }
}

impl PolicyTargets {
    /// Of `rows` positions, each with the policy indices of its legal moves and their shares.
    fn new<'a>(
        rows: usize,
        row: impl Fn(usize) -> (&'a [u16], &'a [f32]),
        cells: &PolicyCells,
        device: Device,
    ) -> Result<Self> {
        // A column at least, so that there is something to look for the largest in.
        let longest = (0..rows).map(|place| row(place).0.len()).max();
        let longest = longest.unwrap_or(0).max(1);
        let mut padded = Padded::new(rows, longest);
        for place in 0..rows {
            let (moves, shares) = row(place);
            for (column, (index, share)) in moves.iter().zip(shares).enumerate() {
                let cell = cells.of(*index).ok_or_else(|| {
                    TrainError::Batch(format!(
                        "position {place} has a move of policy index {index}"
                    ))
                })?;
                padded.set(place * longest + column, cell, *share);
            }
        }
        let shaped = |tensor: Tensor| -> TorchResult<Tensor> {
            upload(&tensor.f_reshape([rows as i64, longest as i64])?, device)
        };
        Ok(Self {
            cells: shaped(Tensor::f_from_slice(&padded.cells)?)?,
            padding: shaped(Tensor::f_from_slice(&padded.padding)?)?,
            shares: shaped(Tensor::f_from_slice(&padded.policy)?)?,
        })
    }

    /// `[positions, moves]`: what `policy`, `[positions, cells]`, says of the legal moves.
    fn logits(&self, policy: &Tensor) -> TorchResult<Tensor> {
        let logits = policy
            .f_gather(1, &self.cells, false)?
            .f_to_kind(Kind::Float)?;
        logits.f_masked_fill(&self.padding, NEVER)
    }

    /// Cross-entropy over the legal moves, mean over the positions that have a target.
    fn cross_entropy(&self, logits: &Tensor) -> TorchResult<Tensor> {
        let weight = self.shares.f_sum(None)?.f_clamp_min(1e-9)?;
        let cross = self.shares.f_mul(&logits.f_log_softmax(1, Kind::Float)?)?;
        cross.f_sum(None)?.f_div(&weight)?.f_neg()
    }

    /// The same of a policy, `[positions, cells]`.
    fn loss(&self, policy: &Tensor) -> TorchResult<Tensor> {
        self.cross_entropy(&self.logits(policy)?)
    }

    /// The same targets with a temperature: the root of each share, normalised. What has no target gets none.
    fn softened(&self) -> TorchResult<Self> {
        let raised = self.shares.f_add_scalar(SOFT_FLOOR)?;
        let raised = raised.f_pow_tensor_scalar(1.0 / SOFT_TEMPERATURE)?;
        let raised = raised.f_masked_fill(&self.padding, 0.0)?;
        let sums = raised.f_sum_dim_intlist(1, true, None)?.f_clamp_min(1e-9)?;
        Ok(Self {
            cells: self.cells.shallow_clone(),
            padding: self.padding.shallow_clone(),
            shares: raised
                .f_div(&sums)?
                .f_mul(&self.taught()?.f_unsqueeze(1)?)?,
        })
    }

    /// One for each position that has a target, else zero.
    fn taught(&self) -> TorchResult<Tensor> {
        let sums = self.shares.f_sum_dim_intlist(1, false, None)?;
        sums.f_gt(0.0)?.f_to_kind(Kind::Float)
    }

    fn accuracy(&self, logits: &Tensor) -> TorchResult<Tensor> {
        let has_target = self.shares.f_sum_dim_intlist(1, false, None)?.f_gt(0.0)?;
        let right = logits
            .f_argmax(1, false)?
            .f_eq_tensor(&self.shares.f_argmax(1, false)?)?;
        let right = right.f_logical_and(&has_target)?.f_sum(Kind::Float)?;
        right.f_div(&has_target.f_sum(Kind::Float)?.f_clamp_min(1.0)?)
    }
}

/// Cross-entropy of each row of logits against a distribution.
fn cross_entropy(logits: &Tensor, target: &Tensor) -> TorchResult<Tensor> {
    let log = logits.f_log_softmax(1, Kind::Float)?;
    target
        .f_mul(&log)?
        .f_sum_dim_intlist(1, false, None)?
        .f_neg()
}

impl AheadTargets {
    fn new(ahead: &[AuxiliaryTargets], device: Device) -> TorchResult<Option<Self>> {
        if ahead.is_empty() {
            return Ok(None);
        }
        let plies = ahead.iter().map(|ahead| ahead.plies.unwrap_or(0.0));
        let plies: Vec<f32> = plies.map(|plies| plies / PLIES_UNIT).collect();
        let known = ahead
            .iter()
            .map(|ahead| f32::from(u8::from(ahead.plies.is_some())));
        let known: Vec<f32> = known.collect();
        let values = ahead.iter().map(|ahead| ahead.short_value);
        let values: Vec<f32> = values.flat_map(|v| [v.win, v.draw, v.loss]).collect();
        Ok(Some(Self {
            plies: upload(&Tensor::f_from_slice(&plies)?, device)?,
            known: upload(&Tensor::f_from_slice(&known)?, device)?,
            short_value: upload(
                &Tensor::f_from_slice(&values)?.f_reshape([ahead.len() as i64, 3])?,
                device,
            )?,
        }))
    }

    /// The loss of the plies left or, of another head, that of the value.
    fn loss(&self, head: AuxiliaryHead, output: &Tensor) -> TorchResult<Tensor> {
        let output = output.f_to_kind(Kind::Float)?;
        if head != AuxiliaryHead::MovesLeft {
            return cross_entropy(&output, &self.short_value)?.f_mean(None);
        }
        let each = output
            .f_flatten(0, -1)?
            .f_smooth_l1_loss(&self.plies, Reduction::None, 1.0)?;
        let count = self.known.f_sum(None)?.f_clamp_min(1.0)?;
        each.f_mul(&self.known)?.f_sum(None)?.f_div(&count)
    }
}

impl BoardTargets {
    fn new(boards: &[Option<BoardsAhead>], device: Device) -> TorchResult<Option<Self>> {
        if boards.is_empty() {
            return Ok(None);
        }
        let shaped = |board: fn(&BoardsAhead) -> &[u8; 64]| {
            let each = |ahead: &Option<BoardsAhead>| ahead.as_ref().map_or([0; 64], |a| *board(a));
            let classes = boards.iter().flat_map(each).map(i64::from);
            let classes = Tensor::f_from_slice(&classes.collect::<Vec<i64>>())?;
            upload(&classes.f_reshape([boards.len() as i64, 1, 8, 8])?, device)
        };
        let known = boards
            .iter()
            .map(|ahead| f32::from(u8::from(ahead.is_some())));
        let known = Tensor::f_from_slice(&known.collect::<Vec<f32>>())?;
        Ok(Some(Self {
            future: shaped(|boards| &boards.future)?,
            last: shaped(|boards| &boards.last)?,
            known: upload(&known, device)?,
        }))
    }

    /// Cross-entropy of the squares, mean over all that are known: of the board some plies later or, of another head, of
    /// the last.
    fn loss(&self, head: AuxiliaryHead, output: &Tensor) -> TorchResult<Tensor> {
        let target = match head {
            AuxiliaryHead::FutureBoard => &self.future,
            _ => &self.last,
        };
        let log = output
            .f_to_kind(Kind::Float)?
            .f_log_softmax(1, Kind::Float)?;
        let said = log.f_gather(1, target, false)?;
        let each = said.f_mean_dim([1_i64, 2, 3].as_slice(), false, None)?;
        let count = self.known.f_sum(None)?.f_clamp_min(1.0)?;
        each.f_mul(&self.known)?.f_sum(None)?.f_div(&count)?.f_neg()
    }
}

/// Rows of equal length, filled with padding.
struct Padded {
    cells: Vec<i64>,
    padding: Vec<bool>,
    policy: Vec<f32>,
}

impl Padded {
    fn new(rows: usize, width: usize) -> Self {
        let size = rows * width;
        Self {
            cells: vec![0; size],
            padding: vec![true; size],
            policy: vec![0.0; size],
        }
    }

    fn set(&mut self, slot: usize, cell: i64, share: f32) {
        self.cells[slot] = cell;
        self.padding[slot] = false;
        self.policy[slot] = share;
    }
}

#[cfg(test)]
mod tests;
