//! The policy and the value.

use rookery_common::network::{Dense, NormalizedConvolution, PolicyOutput};
use rookery_model::ModelError;

use crate::arrange::{by_fours, tensor};
use crate::kernel::{self, Kernel};
use crate::layers::{Planner, Role};
use crate::plan::{Binding, Grid};
use crate::variant::TowerPath;

impl Planner<'_> {
    /// The policy head. Gives the channels of its features.
    pub(crate) fn policy(&mut self) -> Result<usize, ModelError> {
        let layers = self.layers.policy.clone();
        let role = Role::plain(Some(Binding::Stream), Binding::Between);
        let features = self.normalized(&layers.convolution, self.stream(), role)?;
        let (name, planes) = match &layers.output {
            PolicyOutput::Planes(planes) => (&planes.name, Some(planes.outputs as usize)),
            PolicyOutput::Dense(dense) => (&dense.name, None),
        };
        let kernel = Kernel::new("policy", self.storage)
            .with(&[
                ("CHANNELS", layers.convolution.outputs as usize),
                ("SOURCE", features),
            ])
            .with(&[("PLANES", planes.unwrap_or(1))])
            .with_flag("CONVOLUTION", planes.is_some())
            .including(&[kernel::POLICY]);
        let bindings = vec![
            Binding::Request,
            self.exact(tensor(self.weights, name, "weight")?),
            self.exact(tensor(self.weights, name, "bias")?),
            Binding::Between,
            Binding::Answer,
        ];
        self.step(kernel, bindings, Grid::Moves);
        Ok(features)
    }

    /// The value head. Gives the channels of its features.
    pub(crate) fn value(&mut self) -> Result<usize, ModelError> {
        let layers = self.layers.value.clone();
        let (hidden, output) = (&layers.hidden, &layers.output);
        let features = match self.path {
            TowerPath::Matrices(tiling) => self.matrix_hidden(&layers.convolution, hidden, tiling),
            _ => self.hidden(&layers.convolution, hidden),
        }?;
        let units = hidden.outputs as usize;
        let kernel = Kernel::new("value", self.storage)
            .with(&[("UNITS", units), ("OUTPUTS", output.outputs as usize)])
            .including(&[kernel::VALUE]);
        let bindings = vec![
            Binding::Request,
            self.exact(tensor(self.weights, &output.name, "weight")?),
            self.exact(tensor(self.weights, &output.name, "bias")?),
            Binding::Hidden,
            Binding::Answer,
        ];
        self.step(kernel, bindings, Grid::Boards(1));
        Ok(features)
    }

    /// The value head's convolution and hidden layer. Gives the channels of its features.
    fn hidden(
        &mut self,
        convolution: &NormalizedConvolution,
        hidden: &Dense,
    ) -> Result<usize, ModelError> {
        let role = Role::plain(Some(Binding::Stream), Binding::Branch);
        let features = self.normalized(convolution, self.stream(), role)?;
        let units = hidden.outputs as usize;
        let weight = by_fours(tensor(self.weights, &hidden.name, "weight")?, units);
        let kernel = Kernel::new("hidden", self.storage)
            .with(&[
                ("CHANNELS", convolution.outputs as usize),
                ("SOURCE", features),
            ])
            .with(&[("UNITS", units)])
            .activated(self.activation())
            .including(&[kernel::HIDDEN]);
        let bindings = vec![
            Binding::Request,
            self.array(&format!("{}.weight", hidden.name), &weight)?,
            self.exact(tensor(self.weights, &hidden.name, "bias")?),
            Binding::Branch,
            Binding::Hidden,
        ];
        self.step(kernel, bindings, Grid::Fours(units.div_ceil(64)));
        Ok(features)
    }
}
