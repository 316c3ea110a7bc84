//! Random networks: the same seed always gives the same numbers, on every machine.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rookery_common::network::{NetworkSpec, TensorLayout, tensors};

use crate::error::Result;
use crate::weights::Weights;

/// Scale of the last layer of each head: a fresh network gives all moves about the same prior and
/// all positions about the same value.
const OUTPUT_GAIN: f32 = 0.1;

/// Scale of the normalisation that ends a block, so that a deep tower starts near the identity.
const RESIDUAL_GAIN: f32 = 0.5;

impl Weights {
    /// A network of random weights: normal with variance `2 / inputs` for convolutions and dense
    /// layers (He et al. 2015), smaller in the last layer of each head; zero biases.
    ///
    /// # Errors
    ///
    /// [`ModelError::Spec`](crate::ModelError::Spec) for a specification outside the bounds.
    pub fn random(spec: NetworkSpec, seed: u64) -> Result<Self> {
        spec.check()?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut all = BTreeMap::new();
        for layout in tensors(&spec) {
            let numbers = initial(&layout, &mut rng);
            all.insert(layout.name, numbers);
        }
        Self::new(spec, all)
    }
}

fn initial(layout: &TensorLayout, rng: &mut ChaCha8Rng) -> Vec<f32> {
    let count = layout.elements() as usize;
    let name = layout.name.as_str();
    if name.ends_with(".bias") || name.ends_with(".norm.mean") {
        return vec![0.0; count];
    }
    if name.ends_with(".conv2.norm.weight") {
        return vec![RESIDUAL_GAIN; count];
    }
    if name.ends_with(".norm.weight") || name.ends_with(".norm.variance") {
        return vec![1.0; count];
    }
    let outputs = f64::from(layout.shape[0]);
    let inputs = count as f64 / outputs;
    let deviation = (2.0 / inputs).sqrt() as f32 * gain(name);
    let normal = |number: f32| number * deviation;
    StandardNormal
        .sample_iter(rng)
        .take(count)
        .map(normal)
        .collect()
}

fn gain(name: &str) -> f32 {
    match name {
        "policy.planes.weight" | "policy.dense.weight" | "value.dense2.weight" => OUTPUT_GAIN,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_one_network() {
        let of = |seed| Weights::random(NetworkSpec::resnet(1, 8), seed).unwrap();
        let first = |weights: Weights| {
            let tensor = weights.get("blocks.0.conv1.weight").unwrap();
            tensor.values().to_vec()
        };
        let (a, again, b) = (first(of(1)), first(of(1)), first(of(2)));
        assert_eq!(a, again);
        assert_ne!(a, b);
        let variance = a.iter().map(|x| x * x).sum::<f32>() / a.len() as f32;
        assert!((variance * 72.0 - 2.0).abs() < 0.5, "{variance}");
    }
}
