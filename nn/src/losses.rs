//! Targets of a batch as tensors, and the losses against them.

use rookery_common::network::{AuxiliaryHead, ValueHead};
use rookery_engine::Wdl;
use tch::{Device, Kind, Reduction, Tensor};

use crate::error::{NnError, Result, TorchResult};
use crate::graph::RawOutputs;
use crate::outputs::PolicyCells;
use crate::train::{Ahead, TrainBatch};

/// The plies that the moves left head's output counts in ones.
const PLIES_UNIT: f32 = 20.0;

/// A logit that no softmax gives weight to, yet finite.
const NEVER: f64 = -1e9;

/// What the network ought to say, each row padded to the longest list of legal moves.
#[derive(Debug)]
pub(crate) struct Targets {
    /// `[positions, moves]`: the cells of the legal moves.
    cells: Tensor,
    /// `[positions, moves]`: where there is no move.
    padding: Tensor,
    /// `[positions, moves]`: the target distribution.
    policy: Tensor,
    /// `[positions, 3]`: win, draw, loss.
    value: Tensor,
    /// What auxiliary heads ought to say, for networks that have some.
    ahead: Option<AheadTargets>,
}

#[derive(Debug)]
struct AheadTargets {
    /// `[positions]`: plies until the game's end, in units of [`PLIES_UNIT`].
    plies: Tensor,
    /// `[positions, 3]`: win, draw, loss.
    short_value: Tensor,
}

/// The losses as tensors that gradients flow from.
pub(crate) struct LossTensors {
    /// Policy cross-entropy, mean over the positions that have a policy target.
    pub(crate) policy: Tensor,
    /// Value cross-entropy or squared error, mean over positions.
    pub(crate) value: Tensor,
    /// Of the plies left, smooth absolute error in units of 20 plies; none without that head.
    pub(crate) moves_left: Option<Tensor>,
    /// Of the short value, cross-entropy; none without that head.
    pub(crate) short_value: Option<Tensor>,
    /// Share of positions with a policy target whose likeliest move is the target's.
    pub(crate) accuracy: Tensor,
}

impl Targets {
    /// Checks a batch's targets and brings them to the device.
    pub(crate) fn new(batch: &TrainBatch, cells: &PolicyCells, device: Device) -> Result<Self> {
        check(batch)?;
        let positions = &batch.positions;
        let rows = positions.len();
        let longest = (0..rows)
            .map(|row| positions.moves_of(row).len())
            .max()
            .unwrap_or(0);
        let mut padded = Padded::new(rows, longest);
        for row in 0..rows {
            let range = positions.move_range(row);
            let moves = &positions.moves()[range.clone()];
            for (column, (index, share)) in moves.iter().zip(&batch.policy[range]).enumerate() {
                let cell = cells.of(*index).ok_or_else(|| {
                    NnError::Batch(format!("position {row} has a move of policy index {index}"))
                })?;
                padded.set(row * longest + column, cell, *share);
            }
        }
        let value: Vec<f32> = batch
            .values
            .iter()
            .flat_map(|v| [v.win, v.draw, v.loss])
            .collect();
        let place = |tensor: Tensor, width: usize| -> TorchResult<Tensor> {
            tensor
                .f_reshape([rows as i64, width as i64])?
                .f_to_device(device)
        };
        Ok(Self {
            cells: place(Tensor::f_from_slice(&padded.cells)?, longest)?,
            padding: place(Tensor::f_from_slice(&padded.padding)?, longest)?,
            policy: place(Tensor::f_from_slice(&padded.policy)?, longest)?,
            value: place(Tensor::f_from_slice(&value)?, 3)?,
            ahead: AheadTargets::new(&batch.ahead, device)?,
        })
    }

    /// The losses of a network's outputs.
    pub(crate) fn losses(&self, raw: &RawOutputs, head: ValueHead) -> TorchResult<LossTensors> {
        let logits = raw
            .policy
            .f_gather(1, &self.cells, false)?
            .f_to_kind(Kind::Float)?;
        let logits = logits.f_masked_fill(&self.padding, NEVER)?;
        let weight = self.policy.f_sum(None)?.f_clamp_min(1e-9)?;
        let cross = self.policy.f_mul(&logits.f_log_softmax(1, Kind::Float)?)?;
        Ok(LossTensors {
            policy: cross.f_sum(None)?.f_div(&weight)?.f_neg()?,
            value: self.value_loss(&raw.value.f_to_kind(Kind::Float)?, head)?,
            moves_left: self.moves_left(raw.auxiliary(AuxiliaryHead::MovesLeft))?,
            short_value: self.short_value(raw.auxiliary(AuxiliaryHead::ShortValue))?,
            accuracy: self.accuracy(&logits.f_detach()?)?,
        })
    }

    fn moves_left(&self, output: Option<&Tensor>) -> TorchResult<Option<Tensor>> {
        let (Some(output), Some(ahead)) = (output, &self.ahead) else {
            return Ok(None);
        };
        let said = output.f_to_kind(Kind::Float)?.f_flatten(0, -1)?;
        let loss = said.f_smooth_l1_loss(&ahead.plies, Reduction::Mean, 1.0)?;
        Ok(Some(loss))
    }

    fn short_value(&self, output: Option<&Tensor>) -> TorchResult<Option<Tensor>> {
        let (Some(output), Some(ahead)) = (output, &self.ahead) else {
            return Ok(None);
        };
        let output = output.f_to_kind(Kind::Float)?;
        cross_entropy(&output, &ahead.short_value)?
            .f_mean(None)
            .map(Some)
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

    fn accuracy(&self, logits: &Tensor) -> TorchResult<Tensor> {
        let has_target = self.policy.f_sum_dim_intlist(1, false, None)?.f_gt(0.0)?;
        let right = logits
            .f_argmax(1, false)?
            .f_eq_tensor(&self.policy.f_argmax(1, false)?)?;
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
        let plies = ahead.iter().map(|ahead| ahead.plies / PLIES_UNIT);
        let plies: Vec<f32> = plies.collect();
        let values = ahead.iter().map(|ahead| ahead.short_value);
        let values: Vec<f32> = values.flat_map(|v| [v.win, v.draw, v.loss]).collect();
        Ok(Some(Self {
            plies: Tensor::f_from_slice(&plies)?.f_to_device(device)?,
            short_value: Tensor::f_from_slice(&values)?
                .f_reshape([ahead.len() as i64, 3])?
                .f_to_device(device)?,
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
    let refuse = |text: String| Err(NnError::Batch(text));
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
    let usable = |number: f32| (0.0..=1.0).contains(&number);
    let usable_value = |v: &Wdl| [v.win, v.draw, v.loss].into_iter().all(usable);
    let usable_ahead = |ahead: &Ahead| {
        usable_value(&ahead.short_value) && ahead.plies.is_finite() && ahead.plies >= 0.0
    };
    if !batch.policy.iter().copied().all(usable)
        || !batch.values.iter().all(usable_value)
        || !batch.ahead.iter().all(usable_ahead)
    {
        return refuse("a target is outside its range".into());
    }
    Ok(())
}
