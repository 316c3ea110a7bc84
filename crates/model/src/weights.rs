//! A network in memory: its specification and its named tensors, 32 bits each number.

use std::collections::BTreeMap;
use std::sync::Arc;

use rookery_common::network::{NetworkSpec, tensors};

use crate::error::{ModelError, Result};

/// Numbers with a shape, the last dimension fastest.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    pub(crate) shape: Vec<u32>,
    pub(crate) values: Vec<f32>,
}

impl Tensor {
    /// The sizes of its dimensions: `[outputs, inputs, height, width]` of a convolution,
    /// `[outputs, inputs]` of a dense layer, `[outputs]` of what is added or multiplied by channel.
    pub fn shape(&self) -> &[u32] {
        &self.shape
    }

    /// The numbers, as many as the product of [`shape`](Self::shape).
    pub fn values(&self) -> &[f32] {
        &self.values
    }
}

/// A network's specification and tensors, complete and of the right shapes.
///
/// A clone shares the tensors' memory until one of them is changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    spec: NetworkSpec,
    tensors: BTreeMap<String, Arc<Tensor>>,
}

impl Weights {
    /// Puts a network together from the numbers of each of its [`tensors`], the last dimension
    /// fastest. Tensors beyond the specification are dropped.
    ///
    /// # Errors
    ///
    /// [`ModelError::Spec`] for a specification outside the bounds, [`ModelError::Program`] for that
    /// of a program, [`ModelError::Tensor`] for a tensor that is missing or has another length.
    ///
    /// # Examples
    ///
    /// ```
    /// use rookery_common::network::{NetworkSpec, tensors};
    /// use rookery_model::Weights;
    ///
    /// let spec = NetworkSpec::resnet(1, 8);
    /// let zeros = tensors(&spec).into_iter();
    /// let zeros = zeros.map(|t| (t.name.clone(), vec![0.0; t.elements() as usize]));
    /// let weights = Weights::new(spec.clone(), zeros.collect())?;
    /// assert_eq!(weights.get("value.dense2.weight")?.shape(), [3, 128]);
    ///
    /// let error = Weights::new(spec, Default::default()).unwrap_err();
    /// assert!(error.to_string().starts_with("tensor \"input.weight\" is missing"));
    /// # Ok::<(), rookery_model::ModelError>(())
    /// ```
    pub fn new(spec: NetworkSpec, mut values: BTreeMap<String, Vec<f32>>) -> Result<Self> {
        Self::complete(spec, |name, shape| {
            let (values, shape) = (values.remove(name)?, shape.to_vec());
            Some(Arc::new(Tensor { shape, values }))
        })
    }

    /// Puts a network together from what `take` gives for each name and shape.
    fn complete(
        spec: NetworkSpec,
        mut take: impl FnMut(&str, &[u32]) -> Option<Arc<Tensor>>,
    ) -> Result<Self> {
        spec.check()?;
        if let Some(program) = spec.program() {
            return Err(ModelError::Program(program));
        }
        let mut kept = BTreeMap::new();
        for layout in tensors(&spec) {
            let fits = |tensor: &Arc<Tensor>| {
                tensor.shape == layout.shape && tensor.values.len() as u64 == layout.elements()
            };
            let Some(tensor) = take(&layout.name, &layout.shape).filter(fits) else {
                return Err(ModelError::Tensor {
                    name: layout.name,
                    expected: layout.shape,
                });
            };
            kept.insert(layout.name, tensor);
        }
        Ok(Self {
            spec,
            tensors: kept,
        })
    }

    /// What the network is.
    pub const fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    /// The same numbers under another specification, for what does not change shapes: creator,
    /// parent, training step.
    ///
    /// # Errors
    ///
    /// [`ModelError::Tensor`] if the new specification asks for other tensors.
    pub fn with_spec(mut self, spec: NetworkSpec) -> Result<Self> {
        Self::complete(spec, |name, _| self.tensors.remove(name))
    }

    /// The tensor of this name.
    ///
    /// # Errors
    ///
    /// [`ModelError::Tensor`] if the network has no such tensor.
    pub fn get(&self, name: &str) -> Result<&Tensor> {
        self.tensors
            .get(name)
            .map(AsRef::as_ref)
            .ok_or_else(|| missing(name))
    }

    /// The numbers of the tensor of this name, to be changed.
    ///
    /// # Errors
    ///
    /// [`ModelError::Tensor`] if the network has no such tensor.
    pub fn get_mut(&mut self, name: &str) -> Result<&mut [f32]> {
        let tensor = self.tensors.get_mut(name).ok_or_else(|| missing(name))?;
        Ok(&mut Arc::make_mut(tensor).values)
    }
}

fn missing(name: &str) -> ModelError {
    ModelError::Tensor {
        name: name.to_owned(),
        expected: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_that_is_changed_leaves_the_original_as_it_is() {
        let weights = Weights::random(NetworkSpec::resnet(1, 8), 1).unwrap();
        let mut changed = weights.clone();
        changed.get_mut("value.dense2.bias").unwrap().fill(2.0);
        let bias = |weights: &Weights| weights.get("value.dense2.bias").unwrap().values[0];
        assert_eq!((bias(&weights), bias(&changed)), (0.0, 2.0));
        assert_ne!(weights, changed);
    }

    #[test]
    fn another_specification_keeps_the_numbers_if_it_asks_for_the_same_tensors() {
        let weights = Weights::random(NetworkSpec::resnet(1, 8), 1).unwrap();
        let mut spec = weights.spec().clone();
        spec.training_step = 7;
        let later = weights.clone().with_spec(spec).unwrap();
        assert_eq!(later.spec().training_step, 7);
        assert_eq!(
            later.get("input.weight").unwrap(),
            weights.get("input.weight").unwrap()
        );
        let refused = later.with_spec(NetworkSpec::resnet(1, 16)).unwrap_err();
        let ModelError::Tensor { name, expected } = refused else {
            panic!("{refused}");
        };
        assert_eq!(
            (name.as_str(), expected),
            ("input.weight", vec![16, 112, 3, 3])
        );
    }

    #[test]
    fn a_tensor_of_another_length_is_refused() {
        let spec = NetworkSpec::resnet(1, 8);
        let mut all: BTreeMap<_, _> = tensors(&spec)
            .into_iter()
            .map(|layout| (layout.name.clone(), vec![0.0; layout.elements() as usize]))
            .collect();
        all.get_mut("policy.planes.bias").unwrap().pop();
        let refused = Weights::new(spec, all).unwrap_err();
        assert!(
            matches!(&refused, ModelError::Tensor { name, .. } if name == "policy.planes.bias"),
            "{refused}"
        );
    }
}
