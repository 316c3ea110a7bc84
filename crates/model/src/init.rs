//! Random networks: the same seed always gives the same numbers, on every machine.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rookery_common::network::{NetworkSpec, Role, TensorLayout, tensors};

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
    let gain = match layout.role {
        Role::Bias | Role::NormalizationBias | Role::RunningMean => return vec![0.0; count],
        Role::NormalizationScale | Role::RunningVariance => return vec![1.0; count],
        Role::ResidualScale => return vec![RESIDUAL_GAIN; count],
        Role::OutputWeight => OUTPUT_GAIN,
        Role::ConvolutionWeight | Role::DenseWeight => 1.0,
    };
    let outputs = f64::from(layout.shape[0]);
    let inputs = count as f64 / outputs;
    let deviation = (2.0 / inputs).sqrt() as f32 * gain;
    let normal = |number: f32| number * deviation;
    StandardNormal
        .sample_iter(rng)
        .take(count)
        .map(normal)
        .collect()
}

#[cfg(test)]
mod tests {
    use rookery_common::ids::ContentHash;
    use rookery_common::network::AuxiliaryHead;

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

    /// Runs are begun by a seed, so its numbers never change.
    #[test]
    fn the_numbers_of_a_seed_never_change() {
        let mut spec = NetworkSpec::resnet(2, 16);
        spec.auxiliary = vec![
            AuxiliaryHead::MovesLeft,
            AuxiliaryHead::ShortValue,
            AuxiliaryHead::OpponentReply,
        ];
        let weights = Weights::random(spec.clone(), 7).unwrap();
        let all = tensors(&spec).into_iter().flat_map(|layout| {
            let values = weights.get(&layout.name).unwrap().values();
            values
                .iter()
                .flat_map(|n| n.to_le_bytes())
                .collect::<Vec<_>>()
        });
        let hash = ContentHash::of(&all.collect::<Vec<_>>()).to_string();
        assert_eq!(
            hash,
            "d826e3296eee41a145ec488f27cdf9191d351b0ecdf2309725f4538a33ea1bc4"
        );
    }
}
