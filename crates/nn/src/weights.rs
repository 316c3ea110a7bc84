//! A network in memory: its specification and its named tensors, 32 bits, on the processor.

use std::collections::BTreeMap;

use rookery_common::network::{NetworkSpec, tensors};
use tch::{Device, Kind, Tensor};

use crate::error::{NnError, Result};
use crate::tensors::shape_of;

/// A network's specification and tensors, complete and of the right shapes.
#[derive(Debug)]
pub struct Weights {
    spec: NetworkSpec,
    tensors: BTreeMap<String, Tensor>,
}

impl Weights {
    /// Puts a network together. Tensors are converted to 32-bit floats on the processor.
    ///
    /// # Errors
    ///
    /// [`NnError::Spec`] for a specification outside the bounds, [`NnError::Program`] for that of a
    /// program, [`NnError::Tensor`] for a tensor that is missing or has another shape. Tensors beyond
    /// the specification are dropped.
    pub(crate) fn new(spec: NetworkSpec, mut given: BTreeMap<String, Tensor>) -> Result<Self> {
        spec.check()?;
        if let Some(program) = spec.program() {
            return Err(NnError::Program(program));
        }
        let mut kept = BTreeMap::new();
        for layout in tensors(&spec) {
            let found = given
                .remove(&layout.name)
                .filter(|t| t.size() == shape_of(&layout));
            let Some(tensor) = found else {
                return Err(NnError::Tensor {
                    name: layout.name,
                    expected: layout.shape,
                });
            };
            let tensor = tensor
                .f_detach()?
                .f_to_device(Device::Cpu)?
                .f_to_kind(Kind::Float)?;
            kept.insert(layout.name, tensor.f_contiguous()?);
        }
        Ok(Self {
            spec,
            tensors: kept,
        })
    }

    /// The same numbers once more, in the same memory.
    pub(crate) fn share(&self) -> Self {
        let tensors = self.tensors.iter();
        Self {
            spec: self.spec.clone(),
            tensors: tensors
                .map(|(name, tensor)| (name.clone(), tensor.shallow_clone()))
                .collect(),
        }
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
    /// [`NnError::Tensor`] if the new specification asks for other tensors.
    pub fn with_spec(self, spec: NetworkSpec) -> Result<Self> {
        Self::new(spec, self.tensors)
    }

    /// The tensor of this name.
    pub(crate) fn get(&self, name: &str) -> Result<&Tensor> {
        let missing = || NnError::Tensor {
            name: name.to_owned(),
            expected: Vec::new(),
        };
        self.tensors.get(name).ok_or_else(missing)
    }
}
