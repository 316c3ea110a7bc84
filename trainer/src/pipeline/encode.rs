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
    /// Share of the policy target that is spread evenly over the legal moves.
    pub label_smoothing: f64,
}

impl BatchPlan {
    /// The batches that a network is trained on.
    pub const fn new(spec: &NetworkSpec, params: &TrainingParams) -> Self {
        Self {
            input: spec.input,
            policy: spec.policy.encoding,
            batch_size: params.batch_size as usize,
            q_ratio: params.q_ratio,
            label_smoothing: params.label_smoothing,
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
        push(&mut batch, game, ply, plan);
    }
    batch
}

/// Adds one position with its targets. After a fast search all policy shares are 0: it counts for
/// the value only.
fn push(batch: &mut TrainBatch, game: &StoredGame, ply: u32, plan: &BatchPlan) {
    let history = game.history(ply);
    let legal = canonical_moves(history.position());
    batch.positions.push(&history, &legal);
    batch
        .values
        .push(game.value(ply, history.turn(), plan.q_ratio));
    let weights = game.policy_weights(ply);
    if weights.len() == legal.len() {
        let sum: f32 = weights.iter().map(|weight| f32::from(*weight)).sum();
        let smoothing = plan.label_smoothing as f32;
        let (scale, floor) = (
            (1.0 - smoothing) / sum.max(1.0),
            smoothing / legal.len() as f32,
        );
        let share = |weight: &u16| f32::from(*weight) * scale + floor;
        batch.policy.extend(weights.iter().map(share));
    } else {
        batch.policy.resize(batch.policy.len() + legal.len(), 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::ReplayBuffer;
    use crate::testing;

    fn batch(label_smoothing: f64) -> TrainBatch {
        let mut buffer = ReplayBuffer::new(u64::MAX);
        buffer.add(StoredGame::from_record(&testing::game(5, 40)).unwrap());
        let window = buffer.window(u64::MAX);
        let params = TrainingParams {
            label_smoothing,
            ..TrainingParams::default()
        };
        let plan = BatchPlan::new(&NetworkSpec::resnet(1, 8), &params);
        let ages: Vec<u64> = (0..window.len()).collect();
        encode_batch(&window, &ages, &plan)
    }

    #[test]
    fn smoothing_moves_a_share_of_the_target_to_all_legal_moves() {
        let (plain, smooth) = (batch(0.0), batch(0.2));
        let mut targets = 0;
        for place in 0..plain.values.len() {
            let range = plain.positions.move_range(place);
            let (before, after) = (&plain.policy[range.clone()], &smooth.policy[range]);
            let has_target = before.iter().sum::<f32>() > 0.0;
            targets += usize::from(has_target);
            for (before, after) in before.iter().zip(after) {
                let floor = 0.2 / plain.positions.moves_of(place).len() as f32;
                let expected = if has_target {
                    0.8 * before + floor
                } else {
                    0.0
                };
                assert!((after - expected).abs() < 1e-6);
            }
        }
        assert!(targets > 0 && targets < plain.values.len(), "of both kinds");
    }
}
