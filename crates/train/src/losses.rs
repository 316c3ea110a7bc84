//! Targets of a batch as tensors, and the losses against them.

use rookery_backend_cpu::PolicyCells;
use rookery_backend_torch::error::TorchResult;
use rookery_backend_torch::graph::RawOutputs;
use rookery_backend_torch::tensors::upload;
use rookery_common::network::{AuxiliaryHead, ValueHead};
use rookery_engine::Wdl;
use tch::{Device, Kind, Reduction, Tensor};

use crate::error::{Result, TrainError};
use crate::trainer::{Ahead, TrainBatch};

/// The plies that the moves left head's output counts in ones.
const PLIES_UNIT: f32 = 20.0;

/// A logit that no softmax gives weight to, yet finite.
const NEVER: f64 = -1e9;

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
    /// `[positions]`: plies until the game's end, in units of [`PLIES_UNIT`]; 0 where nobody knows.
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
        check(batch)?;
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
        let loss = match (head, &self.ahead, &self.replies) {
            (AuxiliaryHead::MovesLeft, Some(ahead), _) => {
                let said = output.f_to_kind(Kind::Float)?.f_flatten(0, -1)?;
                let each = said.f_smooth_l1_loss(&ahead.plies, Reduction::None, 1.0)?;
                let count = ahead.known.f_sum(None)?.f_clamp_min(1.0)?;
                each.f_mul(&ahead.known)?.f_sum(None)?.f_div(&count)
            }
            (AuxiliaryHead::ShortValue, Some(ahead), _) => {
                let output = output.f_to_kind(Kind::Float)?;
                cross_entropy(&output, &ahead.short_value)?.f_mean(None)
            }
            (AuxiliaryHead::OpponentReply, _, Some(replies)) => {
                replies.cross_entropy(&replies.logits(output)?)
            }
            _ => return Ok(None),
        };
        loss.map(Some)
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
    fn new(ahead: &[Ahead], device: Device) -> TorchResult<Option<Self>> {
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

fn check(batch: &TrainBatch) -> Result<()> {
    let refuse = |text: String| Err(TrainError::Batch(text));
    let (positions, moves) = (batch.positions.len(), batch.positions.moves().len());
    if positions == 0 {
        return refuse("it holds no position".into());
    }
    if batch.policy.len() != moves || batch.values.len() != positions {
        let (policy, values) = (batch.policy.len(), batch.values.len());
        return refuse(format!(
            "{policy} policy targets for {moves} moves, {values} value targets for {positions} \
             positions"
        ));
    }
    if let Some(row) = (0..positions).find(|row| batch.positions.moves_of(*row).is_empty()) {
        return refuse(format!("position {row} has no legal move"));
    }
    if !batch.ahead.is_empty() && batch.ahead.len() != positions {
        let ahead = batch.ahead.len();
        return refuse(format!(
            "{ahead} targets of what is ahead for {positions} positions"
        ));
    }
    let replies = batch.replies.len();
    if replies != 0 && replies != positions {
        return refuse(format!("{replies} replies for {positions} positions"));
    }
    let usable = |number: f32| (0.0..=1.0).contains(&number);
    let usable_value = |v: &Wdl| [v.win, v.draw, v.loss].into_iter().all(usable);
    let usable_plies = |plies: f32| plies.is_finite() && plies >= 0.0;
    let usable_ahead =
        |ahead: &Ahead| usable_value(&ahead.short_value) && ahead.plies.is_none_or(usable_plies);
    if !batch.policy.iter().copied().all(usable)
        || !batch.values.iter().all(usable_value)
        || !batch.ahead.iter().all(usable_ahead)
        || !batch.replies.shares().iter().copied().all(usable)
    {
        return refuse("a target is outside its range".into());
    }
    Ok(())
}
