//! The residual tower, in one kernel or layer by layer.

use rookery_common::network::ResidualTower;
use rookery_model::ModelError;

use crate::arrange::{Arranged, excitation};
use crate::kernel::{self, Kernel};
use crate::layers::{Planner, Role};
use crate::plan::{Binding, Grid};

/// Threads of a workgroup that ends a block.
const BLOCK_END_THREADS: usize = 256;

impl Planner<'_> {
    /// `boards`: the positions of a workgroup.
    pub(crate) fn fused_tower(
        &mut self,
        tower: &ResidualTower,
        boards: usize,
    ) -> Result<(), ModelError> {
        let first = self.input(&tower.input)?;
        let (channels, quads) = (first.channels(), first.quads);
        let (mut weights, mut bias) = (first.weight, first.bias);
        let mut excitations = Vec::new();
        for block in &tower.blocks {
            for layer in [&block.conv1, &block.conv2] {
                let arranged = Arranged::new(self.weights, layer, &[])?;
                weights.extend(arranged.weight);
                bias.extend(arranged.bias);
            }
            if let Some(layers) = &block.excitation {
                excitations.extend(excitation(self.weights, layers)?);
            }
        }
        let units = tower
            .blocks
            .iter()
            .find_map(|block| block.excitation.as_ref());
        let units = units.map(|layers| layers.squeeze.outputs as usize);
        let kernel = Kernel::new("tower", self.storage)
            .with(&self.planes())
            .with(&[
                ("INPUTS", channels),
                ("CHANNELS", channels),
                ("QUADS", quads),
            ])
            .with(&[("THREADS", 8 * quads), ("BLOCKS", tower.blocks.len())])
            .with(&[("BOARDS", boards)])
            .activated(self.activation())
            .including(&[kernel::RANKS, kernel::PLANES, kernel::BOARD, kernel::TOWER]);
        let mut bindings = vec![
            Binding::Request,
            self.array("the tower's weights", &weights)?,
            self.exact(&bias),
            Binding::Stream,
        ];
        let kernel = if let Some(units) = units {
            bindings.push(self.exact(&excitations));
            let files = [kernel::TOWER_EXCITATION, kernel::EXCITATION];
            kernel.with(&[("UNITS", units)]).including(&files)
        } else {
            kernel.including(&[kernel::NO_EXCITATION])
        };
        self.step(kernel, bindings, Grid::Boards(boards));
        Ok(())
    }

    pub(crate) fn layered_tower(&mut self, tower: &ResidualTower) -> Result<(), ModelError> {
        let first = self.input(&tower.input)?;
        let channels = first.channels();
        self.convolution(
            &tower.input.name,
            &first,
            0,
            Role::plain(None, Binding::Stream),
        )?;
        for block in &tower.blocks {
            let role = Role::plain(Some(Binding::Stream), Binding::Between);
            self.normalized(&block.conv1, channels, role)?;
            let role = Role::last_of_block(block.excitation.is_none());
            self.normalized(&block.conv2, channels, role)?;
            if let Some(layers) = &block.excitation {
                let numbers = excitation(self.weights, layers)?;
                let units = layers.squeeze.outputs as usize;
                let kernel = Kernel::new("block_end", self.storage)
                    .with(&[("CHANNELS", channels), ("UNITS", units)])
                    .with(&[("THREADS", BLOCK_END_THREADS), ("BOARDS", 1)])
                    .activated(self.activation())
                    .including(&[kernel::EXCITATION, kernel::BLOCK_END]);
                let bindings = vec![self.exact(&numbers), Binding::Branch, Binding::Stream];
                self.step(kernel, bindings, Grid::Boards(1));
            }
        }
        Ok(())
    }
}
