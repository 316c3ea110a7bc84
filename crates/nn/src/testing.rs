//! What this crate's tests share: batches of positions from random games, networks that use
//! every part of their numbers.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::GameHistory;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::network::{NetworkSpec, tensors};
use rookery_engine::Batch;
use shakmaty::Position;
use tch::Tensor;

use crate::tensors::shape_of;
use crate::weights::Weights;

/// `count` positions of random games, with all their legal moves.
pub(crate) fn random_batch(
    input: InputEncoding,
    policy: PolicyEncoding,
    count: usize,
    seed: u64,
) -> Batch {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut batch = Batch::new(input, policy);
    let mut game = GameHistory::default();
    while batch.len() < count {
        if game.end().is_some() || game.plies() > 150 {
            game = GameHistory::default();
        }
        let moves = game.position().legal_moves();
        if rng.random_bool(0.2) {
            batch.push(&game, &moves);
        }
        game.push(moves[rng.random_range(0..moves.len())]);
    }
    batch
}

/// A network in which no number is trivial: biases, means and variances are random too.
pub(crate) fn busy_weights(spec: &NetworkSpec, seed: u64) -> Weights {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let all = tensors(spec).into_iter().map(|layout| {
        let inputs = layout.elements() as f32 / layout.shape[0] as f32;
        let spread = if inputs > 1.0 {
            (6.0 / inputs).sqrt()
        } else {
            0.3
        };
        let centre = match layout.name.rsplit('.').next() {
            Some("variance") => 1.0,
            Some("weight") if layout.name.contains(".norm.") => 1.0,
            _ => 0.0,
        };
        let number = |_| centre + rng.random_range(-spread..spread);
        let numbers: Vec<f32> = (0..layout.elements()).map(number).collect();
        let tensor = Tensor::from_slice(&numbers).reshape(shape_of(&layout));
        (layout.name, tensor)
    });
    Weights::new(spec.clone(), all.collect()).unwrap()
}

/// Small networks of every kind of input, policy and value.
pub(crate) fn small_specs() -> Vec<NetworkSpec> {
    use rookery_common::network::{Activation, PolicyHead, PolicySpec, ValueHead};

    let lc0 = NetworkSpec::resnet(2, 16);
    let mut az = NetworkSpec::resnet(1, 8);
    az.input = InputEncoding::Az119;
    az.policy = PolicySpec {
        encoding: PolicyEncoding::Az73,
        head: PolicyHead::Convolution,
    };
    az.value = ValueHead::Scalar {
        channels: 4,
        hidden: 16,
    };
    let body = az.body_mut().unwrap();
    body.se_ratio = None;
    let mut flat = NetworkSpec::resnet(1, 8);
    flat.input = InputEncoding::Classic19;
    let head = PolicyHead::Dense { channels: 4 };
    flat.policy = PolicySpec {
        encoding: PolicyEncoding::Flat1968,
        head,
    };
    let body = flat.body_mut().unwrap();
    body.activation = Activation::Mish;
    vec![lc0, az, flat]
}
