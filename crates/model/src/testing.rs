//! Networks for tests: small ones of every kind, with numbers that all matter.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::network::{
    Activation, NetworkSpec, PolicyHead, PolicySpec, Role, ValueHead, tensors,
};

use crate::weights::Weights;

/// A network in which no number is trivial: biases, means and variances are random too.
///
/// # Panics
///
/// If the specification is outside the bounds.
#[expect(clippy::unwrap_used, reason = "for tests")]
pub fn busy_weights(spec: &NetworkSpec, seed: u64) -> Weights {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let all = tensors(spec).into_iter().map(|layout| {
        let inputs = layout.elements() as f32 / layout.shape[0] as f32;
        let spread = if inputs > 1.0 {
            (6.0 / inputs).sqrt()
        } else {
            0.3
        };
        let centre = match layout.role {
            Role::NormalizationScale | Role::ResidualScale | Role::RunningVariance => 1.0,
            _ => 0.0,
        };
        let number = |_| centre + rng.random_range(-spread..spread);
        let numbers: Vec<f32> = (0..layout.elements()).map(number).collect();
        (layout.name, numbers)
    });
    Weights::new(spec.clone(), all.collect()).unwrap()
}

/// Small networks of every kind of input, policy and value.
///
/// # Panics
///
/// Never: the specifications are networks'.
#[expect(clippy::unwrap_used, reason = "for tests")]
pub fn small_specs() -> Vec<NetworkSpec> {
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
