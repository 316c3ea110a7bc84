//! Convolutions for training, and the flat tensors in which a network in training lives.
//!
//! All trainable numbers lie in one flat tensor, all running statistics in another; the network's
//! tensors are views into them, in the order of the layout. So the optimiser, averaging, clipping
//! and checkpoints each handle one tensor, whatever the architecture.

use std::collections::BTreeMap;

use rookery_backend_torch::convolution::{Products, convolve};
use rookery_backend_torch::error::{Result as TorchCrateResult, TorchResult};
use rookery_backend_torch::graph::{Graph, Parts, RawOutputs};
use rookery_backend_torch::tensors::{own_copy, tensor_of, to_f32};
use rookery_common::network::layout::NORM_EPSILON;
use rookery_common::network::{NetworkSpec, NormalizedConvolution, TensorLayout, tensors};
use rookery_model::{ModelError, Weights};
use tch::{Device, Kind, Tensor};

use crate::error::Result;

/// Share of a batch's statistics in the running ones, each step.
const NORM_MOMENTUM: f64 = 0.1;

/// Which statistics normalisations use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The batch's, which also move the running ones.
    Train,
    /// The running ones.
    Evaluate,
}

/// A convolution and its normalisation, apart.
#[derive(Debug)]
pub(crate) struct NormedConvolution {
    weight: Tensor,
    gamma: Tensor,
    beta: Tensor,
    mean: Tensor,
    variance: Tensor,
}

impl NormedConvolution {
    fn apply(&self, x: &Tensor, mode: Mode) -> TorchResult<Tensor> {
        convolve(x, &self.weight, None, Products::Fast)?.f_batch_norm(
            Some(&self.gamma),
            Some(&self.beta),
            Some(&self.mean),
            Some(&self.variance),
            mode == Mode::Train,
            NORM_MOMENTUM,
            NORM_EPSILON,
            true,
        )
    }
}

/// A network's numbers as two flat tensors on a device.
#[derive(Debug)]
pub(crate) struct FlatWeights {
    /// Everything that gradients move.
    pub(crate) trainable: Tensor,
    /// The running means and variances.
    pub(crate) statistics: Tensor,
}

impl FlatWeights {
    /// Lays a network's numbers out.
    pub(crate) fn new(weights: &Weights, device: Device) -> Result<Self> {
        let mut parts = (Vec::new(), Vec::new());
        for layout in tensors(weights.spec()) {
            let list = if layout.role.is_statistic() {
                &mut parts.1
            } else {
                &mut parts.0
            };
            list.push(tensor_of(weights, &layout.name)?.f_flatten(0, -1)?);
        }
        let flat = |list: &[Tensor]| Tensor::f_cat(list, 0)?.f_to_device(device);
        Ok(Self {
            trainable: flat(&parts.0)?,
            statistics: flat(&parts.1)?,
        })
    }

    /// A second copy of the same numbers.
    pub(crate) fn copy(&self) -> Result<Self> {
        let (trainable, statistics) = (own_copy(&self.trainable)?, own_copy(&self.statistics)?);
        Ok(Self {
            trainable,
            statistics,
        })
    }

    /// The network's tensors as views, in the order of the layout.
    fn views(&self, spec: &NetworkSpec) -> Result<Vec<(TensorLayout, Tensor)>> {
        let mut offsets = (0, 0);
        let mut views = Vec::new();
        for layout in tensors(spec) {
            let (flat, offset) = if layout.role.is_statistic() {
                (&self.statistics, &mut offsets.1)
            } else {
                (&self.trainable, &mut offsets.0)
            };
            let length = layout.elements() as i64;
            let view = flat
                .f_narrow(0, *offset, length)?
                .f_reshape(shape_of(&layout))?;
            *offset += length;
            views.push((layout, view));
        }
        Ok(views)
    }

    /// A copy as a network of its own.
    pub(crate) fn to_weights(&self, spec: NetworkSpec) -> Result<Weights> {
        let copies = self.views(&spec)?.into_iter();
        let copies = copies.map(|(layout, view)| Ok((layout.name, to_f32(&view.f_detach()?)?)));
        let all = copies.collect::<Result<BTreeMap<_, _>>>()?;
        Ok(Weights::new(spec, all)?)
    }

    /// One where weight decay applies: the weights of convolutions and dense layers, but neither
    /// biases nor normalisations; zero elsewhere. As long as `trainable`.
    pub(crate) fn decay_mask(&self, spec: &NetworkSpec) -> Result<Tensor> {
        let parts = tensors(spec)
            .into_iter()
            .filter(|layout| !layout.role.is_statistic())
            .map(|layout| {
                let value = if layout.role.decays() { 1.0 } else { 0.0 };
                let options = (Kind::Float, self.trainable.device());
                Tensor::f_full([layout.elements() as i64], value, options)
            });
        let parts = parts.collect::<TorchResult<Vec<_>>>()?;
        Ok(Tensor::f_cat(&parts, 0)?)
    }
}

/// A network that can be trained: its graph computes on views into its flat weights.
#[derive(Debug)]
pub(crate) struct TrainableNetwork {
    pub(crate) flat: FlatWeights,
    leaves: Vec<Tensor>,
    graph: Graph<NormedConvolution>,
    dropout: f64,
}

impl TrainableNetwork {
    pub(crate) fn new(spec: &NetworkSpec, flat: FlatWeights) -> Result<Self> {
        let mut leaves = Vec::new();
        let mut named = BTreeMap::new();
        for (layout, view) in flat.views(spec)? {
            let view = view.f_detach()?;
            if !layout.role.is_statistic() {
                leaves.push(view.f_set_requires_grad(true)?);
            }
            named.insert(layout.name, view);
        }
        let graph = Graph::new(spec, &Named(named))?;
        Ok(Self {
            flat,
            leaves,
            graph,
            dropout: f64::from(spec.value_dropout),
        })
    }

    /// Computes `[positions, planes, 8, 8]` in the numbers of `planes`.
    pub(crate) fn forward(&self, planes: &Tensor, mode: Mode) -> TorchResult<RawOutputs> {
        let dropout = match mode {
            Mode::Train => self.dropout,
            Mode::Evaluate => 0.0,
        };
        let convolve = |convolution: &NormedConvolution, x: &Tensor| convolution.apply(x, mode);
        self.graph.forward(planes, &convolve, dropout)
    }

    /// The gradient of `loss` as one flat tensor. libtorch keeps no sums of gradients meanwhile, which would cost
    /// two small operators for each of the network's tensors.
    pub(crate) fn gradient(&self, loss: &Tensor) -> TorchResult<Tensor> {
        let gradients = Tensor::f_run_backward(&[loss], &self.leaves, false, false)?;
        let gradients = self.leaves.iter().zip(gradients).map(|(leaf, gradient)| {
            if gradient.defined() {
                gradient.f_flatten(0, -1)
            } else {
                leaf.f_detach()?.f_zeros_like()?.f_flatten(0, -1)
            }
        });
        Tensor::f_cat(&gradients.collect::<TorchResult<Vec<_>>>()?, 0)
    }
}

struct Named(BTreeMap<String, Tensor>);

impl Parts<NormedConvolution> for Named {
    fn convolution(&self, layer: &NormalizedConvolution) -> TorchCrateResult<NormedConvolution> {
        let part = |part: &str| self.tensor(&format!("{}.{part}", layer.name));
        Ok(NormedConvolution {
            weight: part("weight")?,
            gamma: part("norm.weight")?,
            beta: part("norm.bias")?,
            mean: part("norm.mean")?,
            variance: part("norm.variance")?,
        })
    }

    fn tensor(&self, name: &str) -> TorchCrateResult<Tensor> {
        let missing = || ModelError::Tensor {
            name: name.to_owned(),
            expected: Vec::new(),
        };
        Ok(self.0.get(name).ok_or_else(missing)?.shallow_clone())
    }

    fn exact(&self, name: &str) -> TorchCrateResult<Tensor> {
        self.tensor(name)
    }

    fn trains(&self) -> bool {
        true
    }
}

/// A layout's shape as libtorch takes it.
fn shape_of(layout: &TensorLayout) -> Vec<i64> {
    layout.shape.iter().map(|n| i64::from(*n)).collect()
}

#[cfg(test)]
mod tests;
