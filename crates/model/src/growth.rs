//! Growing: a deeper or wider network that computes what the smaller one does, so that training
//! goes on from there (Chen, Goodfellow and Shlens, *Net2Net*, ICLR 2016, arXiv 1511.05641).
//!
//! New blocks end in a normalisation that gives zero, so that they pass on what they are given. New
//! channels are random, and what was there before does not listen to them: the weights from them are
//! zero. Both learn from the first step, as what they are multiplied with is not zero.

use rookery_common::network::{
    Activation, Layers, NetworkSpec, ResidualTower, TensorLayout, Tower, tensors,
};

use crate::error::{ModelError, Result};
use crate::weights::Weights;

impl Weights {
    /// A network of at least these blocks and filters that gives the same policy and value, but for
    /// rounding; none if this one is as large already. `seed` gives the new weights. The rest of the
    /// specification stays; squeeze-excitation has at least as many units as before.
    ///
    /// # Errors
    ///
    /// [`ModelError::Grow`] for more blocks with [`Activation::Mish`], which changes whatever it is
    /// given twice; [`ModelError::Spec`] for sizes outside the bounds.
    ///
    /// # Examples
    ///
    /// ```
    /// use rookery_common::network::NetworkSpec;
    /// use rookery_model::Weights;
    ///
    /// let small = Weights::random(NetworkSpec::resnet(2, 16), 1)?;
    /// let large = small.grown(4, 32, 1)?.expect("it is larger");
    /// assert_eq!(large.spec().shape(), "4x32");
    /// assert!(large.grown(4, 16, 1)?.is_none());
    /// # Ok::<(), rookery_model::ModelError>(())
    /// ```
    pub fn grown(&self, blocks: u32, filters: u32, seed: u64) -> Result<Option<Self>> {
        let before = self.spec().body()?.clone();
        let (blocks, filters) = (blocks.max(before.blocks), filters.max(before.filters));
        if (blocks, filters) == (before.blocks, before.filters) {
            return Ok(None);
        }
        if blocks > before.blocks && before.activation == Activation::Mish {
            return Err(ModelError::Grow);
        }
        let mut spec = self.spec().clone();
        let body = spec.body_mut()?;
        (body.blocks, body.filters) = (blocks, filters);
        body.se_ratio = before.se_ratio.map(|ratio| {
            let usual = NetworkSpec::resnet(blocks, filters);
            let usual = usual.body().ok().and_then(|body| body.se_ratio);
            let units = before.filters / ratio.max(1);
            usual
                .filter(|usual| filters / usual >= units)
                .unwrap_or(ratio)
        });
        let mut grown = Self::random(spec, seed)?;
        let Tower::Residual(tower) = Layers::new(grown.spec())?.tower;
        for layout in tensors(grown.spec()) {
            if let Ok(old) = self.get(&layout.name) {
                let outputs = Outputs::new(&layout, &tower);
                let new = grown.get_mut(&layout.name)?;
                fill(new, &layout.shape, &old.values, &old.shape, outputs);
            }
        }
        for block in &tower.blocks[before.blocks as usize..] {
            grown
                .get_mut(&format!("{}.norm.weight", block.conv2.name))?
                .fill(0.0);
            if let Some(excitation) = &block.excitation {
                for part in ["weight", "bias"] {
                    let name = format!("{}.{part}", excitation.excite.name);
                    let values = grown.get_mut(&name)?;
                    let beta = values.len() / 2;
                    values[beta..].fill(0.0);
                }
            }
        }
        Ok(Some(grown))
    }
}

/// Where a layer's old outputs stand among the new ones.
#[derive(Debug, Clone, Copy)]
enum Outputs {
    /// First.
    First,
    /// The first half first, the second half first in the second half: gamma and beta of channels.
    InHalves,
}

impl Outputs {
    fn new(layout: &TensorLayout, tower: &ResidualTower) -> Self {
        let excites = tower.blocks.iter().flat_map(|block| &block.excitation);
        let layer = layout.name.rsplit_once('.').map(|(layer, _)| layer);
        let mut excites = excites.map(|excitation| excitation.excite.name.as_str());
        if excites.any(|name| layer == Some(name)) {
            Self::InHalves
        } else {
            Self::First
        }
    }

    /// Where an old output lies among the new ones; `olds` and `news` are their numbers.
    const fn place(self, old: usize, olds: usize, news: usize) -> usize {
        match self {
            Self::InHalves if old >= olds / 2 => news / 2 + old - olds / 2,
            Self::InHalves | Self::First => old,
        }
    }
}

/// Puts old numbers among new ones; old outputs do not hear new inputs. Shapes are
/// `[outputs, inputs, ...]` or `[outputs]`.
fn fill(new: &mut [f32], shape: &[u32], old: &[f32], old_shape: &[u32], outputs: Outputs) {
    let rows = |shape: &[u32]| shape.first().map_or(0, |rows| *rows as usize);
    let (news, olds) = (rows(shape), rows(old_shape));
    if news == 0 || olds == 0 {
        return;
    }
    let (row, old_row) = (new.len() / news, old.len() / olds);
    for (number, numbers) in old.chunks(old_row).enumerate() {
        let start = outputs.place(number, olds, news) * row;
        let target = &mut new[start..start + row];
        target[..old_row].copy_from_slice(numbers);
        target[old_row..].fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::network::{AuxiliaryHead, SpecError};

    use super::*;
    use crate::testing::{busy_weights, small_specs};

    #[test]
    fn old_numbers_stand_first_and_hear_nothing_new() {
        let mut new = vec![9.0; 3 * 3];
        fill(
            &mut new,
            &[3, 3],
            &[1.0, 2.0, 3.0, 4.0],
            &[2, 2],
            Outputs::First,
        );
        assert_eq!(new, [1.0, 2.0, 0.0, 3.0, 4.0, 0.0, 9.0, 9.0, 9.0]);
        let mut new = vec![9.0; 4];
        fill(&mut new, &[4], &[1.0, 2.0], &[2], Outputs::InHalves);
        assert_eq!(new, [1.0, 9.0, 2.0, 9.0]);
    }

    #[test]
    fn only_sizes_change_and_what_is_as_large_stays() {
        for spec in small_specs() {
            let weights = busy_weights(&spec, 1);
            let (blocks, filters) = {
                let body = spec.body().unwrap();
                (body.blocks, body.filters)
            };
            assert!(weights.grown(blocks, filters - 8, 1).unwrap().is_none());
            let wide = weights.grown(1, filters + 8, 1).unwrap().unwrap();
            let mut expected = spec.clone();
            expected.body_mut().unwrap().filters += 8;
            assert_eq!(wide.spec(), &expected);
        }
    }

    #[test]
    fn a_deeper_network_with_mish_is_refused_as_it_would_be_another() {
        let mut spec = NetworkSpec::resnet(1, 8);
        spec.body_mut().unwrap().activation = Activation::Mish;
        let weights = busy_weights(&spec, 1);
        assert!(matches!(weights.grown(2, 8, 1), Err(ModelError::Grow)));
        assert!(weights.grown(1, 16, 1).unwrap().is_some());
    }

    #[test]
    fn squeeze_excitation_keeps_its_units_and_heads_for_training_grow_too() {
        let mut spec = NetworkSpec::resnet(1, 32);
        spec.auxiliary = AuxiliaryHead::ALL.to_vec();
        let weights = busy_weights(&spec, 1);
        let grown = weights.grown(1, 64, 1).unwrap().unwrap();
        // 32 / 4 and 64 / 8.
        assert_eq!(grown.spec().body().unwrap().se_ratio, Some(8));
        let grown = weights.grown(1, 40, 1).unwrap().unwrap();
        assert_eq!(grown.spec().body().unwrap().se_ratio, Some(4));
    }

    #[test]
    fn a_shape_outside_the_bounds_is_refused() {
        let weights = busy_weights(&NetworkSpec::resnet(1, 8), 1);
        assert!(matches!(
            weights.grown(65, 8, 1),
            Err(ModelError::Spec(SpecError::OutOfBounds { .. }))
        ));
    }
}
