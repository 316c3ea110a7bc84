//! From sampled positions to a training batch.

use rookery_common::chess::moves::canonical_moves;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::network::NetworkSpec;
use rookery_common::params::TrainingParams;
use rookery_engine::Batch;
use rookery_nn::TrainBatch;

use crate::buffer::{StoredGame, Window};

/// What every batch of a candidate has in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchPlan {
    /// What the network sees.
    pub input: InputEncoding,
    /// What its policy means.
    pub policy: PolicyEncoding,
    /// Positions of a batch.
    pub batch_size: usize,
    /// Share of the search's value in the value target.
    pub q_ratio: f64,
}

impl BatchPlan {
    /// The batches that a network is trained on.
    pub const fn new(spec: &NetworkSpec, params: &TrainingParams) -> Self {
        Self {
            input: spec.input,
            policy: spec.policy.encoding,
            batch_size: params.batch_size as usize,
            q_ratio: params.q_ratio,
        }
    }

    /// An empty batch.
    pub const fn empty(&self) -> TrainBatch {
        let positions = Batch::new(self.input, self.policy);
        TrainBatch {
            positions,
            policy: Vec::new(),
            values: Vec::new(),
        }
    }
}

/// Encodes the positions of these ages; ages outside the window are left out.
pub fn encode_batch(window: &Window, ages: &[u64], plan: &BatchPlan) -> TrainBatch {
    let mut batch = plan.empty();
    for (game, ply) in ages.iter().filter_map(|age| window.position(*age)) {
        push(&mut batch, game, ply, plan.q_ratio);
    }
    batch
}

/// Adds one position with its targets. After a fast search all policy shares are 0: it counts for
/// the value only.
fn push(batch: &mut TrainBatch, game: &StoredGame, ply: u32, q_ratio: f64) {
    let history = game.history(ply);
    let legal = canonical_moves(history.position());
    batch.positions.push(&history, &legal);
    batch.values.push(game.value(ply, history.turn(), q_ratio));
    let weights = game.policy_weights(ply);
    if weights.len() == legal.len() {
        let sum: f32 = weights.iter().map(|weight| f32::from(*weight)).sum();
        let share = |weight: &u16| f32::from(*weight) / sum.max(1.0);
        batch.policy.extend(weights.iter().map(share));
    } else {
        batch.policy.resize(batch.policy.len() + legal.len(), 0.0);
    }
}
