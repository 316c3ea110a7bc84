//! The tower by cooperative matrices: what NVIDIA calls tensor cores and AMD matrix cores.

use rookery_common::network::{Dense, NormalizedConvolution, ResidualTower, SqueezeExcitation};
use rookery_model::ModelError;

use crate::arrange::{Arranged, excitation, tensor};
use crate::kernel::{self, Kernel, Storage};
use crate::layers::{Planner, Role};
use crate::plan::{Binding, Grid};
use crate::variant::MatrixTiling;

/// Threads of the kernels beside convolutions.
const THREADS: usize = 256;

/// Where a convolution's sums go.
#[derive(Clone, Copy)]
enum Outcome {
    /// Activations for matrices.
    Tiles,
    /// Boards of this many channels, for heads.
    Ranks(usize),
}

/// The weights of a convolution: `[rows of taps][tiles of inputs][tiles of outputs / outputs][taps of a row][outputs]
/// [tile outputs][tile inputs]`. Inputs and outputs behind the last are zeros.
fn arrange(layer: &Arranged, tile: usize, outputs: usize) -> Vec<f32> {
    let (taps, channels) = (layer.kernel * layer.kernel, layer.channels());
    let (inputs, blocks) = (
        layer.inputs.div_ceil(tile),
        channels.div_ceil(tile) / outputs,
    );
    let mut weights = Vec::with_capacity(taps * inputs * blocks * outputs * tile * tile);
    for row in 0..layer.kernel {
        for (input, block) in pairs(inputs, blocks) {
            for (column, output) in pairs(layer.kernel, outputs) {
                let tap = row * layer.kernel + column;
                for (to, from) in pairs(tile, tile) {
                    let (to, from) = ((block * outputs + output) * tile + to, input * tile + from);
                    let inside = from < layer.inputs && to < channels;
                    let place = (from * taps + tap) * channels + to;
                    weights.push(if inside { layer.weight[place] } else { 0.0 });
                }
            }
        }
    }
    weights
}

/// `[units][channels][64 squares]` as `[squares][tiles of channels][tiles of units][tile units][tile channels]`.
fn arrange_hidden(numbers: &[f32], units: usize, tile: usize) -> Vec<f32> {
    let channels = numbers.len() / 64 / units;
    let mut weights = Vec::with_capacity(numbers.len());
    for (square, from) in pairs(64, channels.div_ceil(tile)) {
        for (to, unit) in pairs(units.div_ceil(tile), tile) {
            let unit = to * tile + unit;
            for channel in from * tile..(from + 1) * tile {
                let inside = unit < units && channel < channels;
                let place = (unit * channels + channel) * 64 + square;
                weights.push(if inside { numbers[place] } else { 0.0 });
            }
        }
    }
    weights
}

/// All pairs of numbers below two, the second counting faster.
fn pairs(first: usize, second: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..first).flat_map(move |one| (0..second).map(move |other| (one, other)))
}

/// What is the same for all squares of a rank, written out: drivers keep matrices in registers only where constants choose
/// among them.
fn unrolled(outputs: usize, kernel: usize) -> String {
    let mut lines = vec![
        "fn multiply_row(sums: ptr<function, Sums>, first: u32, taps: u32) {".to_owned(),
        "var left: Left;".to_owned(),
    ];
    for (column, output) in pairs(kernel, outputs) {
        let place = column * outputs + output;
        lines.push(format!(
            "let right{place} = coopLoad<Right>(&weights[taps + {place}u * MATRIX], TILE);"
        ));
    }
    for square in 0..8 {
        lines.push(format!(
            "left = coopLoadT<Left>(&source[first + {square}u * SOURCE_TILES * MATRIX], TILE);"
        ));
        for (column, output) in pairs(kernel, outputs) {
            // A tap to the left of its own square reads this square for the next one.
            let Some(own) = (square + kernel / 2)
                .checked_sub(column)
                .filter(|own| *own < 8)
            else {
                continue;
            };
            let (sum, place) = (own * outputs + output, column * outputs + output);
            lines.push(format!(
                "(*sums)[{sum}] = coopMultiplyAdd(left, right{place}, (*sums)[{sum}]);"
            ));
        }
    }
    lines.push("}".to_owned());
    lines.push("fn finish(sums: ptr<function, Sums>, busy: bool, place: Place) {".to_owned());
    for (half, output) in pairs(2, outputs) {
        lines.push("if (busy) {".to_owned());
        for square in 0..4 {
            let sum = (4 * half + square) * outputs + output;
            lines.push(format!(
                "coopStoreT((*sums)[{sum}], &scratch[(4u * place.subgroup + {square}u) * MATRIX], TILE);"
            ));
        }
        lines.push("}\nworkgroupBarrier();".to_owned());
        lines.push(format!("if (busy) {{ put(place, {half}u, {output}u); }}"));
        lines.push("workgroupBarrier();".to_owned());
    }
    lines.push("}\n".to_owned());
    lines.join("\n")
}

impl Planner<'_> {
    /// Rows and columns of the GPU's matrices.
    fn tile(&self) -> Result<usize, ModelError> {
        let none = || ModelError::NotComputable("the tower without matrices".to_owned());
        self.matrix_tile().ok_or_else(none)
    }

    pub(crate) fn matrix_tower(
        &mut self,
        tower: &ResidualTower,
        tiling: MatrixTiling,
    ) -> Result<(), ModelError> {
        let first = self.input(&tower.input)?;
        self.matrix_planes(first.inputs)?;
        let plain = |source, outcome| Role::plain(Some(source), outcome);
        let role = plain(Binding::Between, Binding::Stream);
        self.matrix_layer(&tower.input.name, &first, role, tiling, Outcome::Tiles)?;
        for block in &tower.blocks {
            let role = plain(Binding::Stream, Binding::Between);
            let layer = Arranged::new(self.weights, &block.conv1, &[])?;
            self.matrix_layer(&block.conv1.name, &layer, role, tiling, Outcome::Tiles)?;
            let role = Role::last_of_block(block.excitation.is_none());
            let layer = Arranged::new(self.weights, &block.conv2, &[])?;
            self.matrix_layer(&block.conv2.name, &layer, role, tiling, Outcome::Tiles)?;
            if let Some(layers) = &block.excitation {
                self.matrix_block_end(layers, layer.channels())?;
            }
        }
        Ok(())
    }

    /// A convolution of the stream whose features a head reads.
    pub(crate) fn matrix_head(
        &mut self,
        name: &str,
        layer: &Arranged,
        role: Role,
        tiling: MatrixTiling,
    ) -> Result<(), ModelError> {
        let outcome = Outcome::Ranks(layer.channels());
        self.matrix_layer(name, layer, role, tiling, outcome)
    }

    /// Unpacks planes into `Between`.
    fn matrix_planes(&mut self, planes: usize) -> Result<(), ModelError> {
        let tile = self.tile()?;
        let tiles = planes.div_ceil(tile);
        let kernel = Kernel::new("planes", Storage::F16)
            .with(&self.planes())
            .with(&[("TILE", tile), ("TILES", tiles), ("THREADS", 64)])
            .including(&[kernel::MATRICES_PLANES]);
        // A quarter as many threads as numbers: 64 squares of them.
        let grid = Grid::Groups {
            each: tiles * tile * tile / 4,
            positions: tile,
        };
        self.step(kernel, vec![Binding::Request, Binding::Between], grid);
        Ok(())
    }

    fn matrix_layer(
        &mut self,
        name: &str,
        layer: &Arranged,
        role: Role,
        tiling: MatrixTiling,
        outcome: Outcome,
    ) -> Result<(), ModelError> {
        let tile = self.tile()?;
        let tiles = layer.channels().div_ceil(tile);
        let outputs = if tiles.is_multiple_of(tiling.outputs) {
            tiling.outputs
        } else {
            1
        };
        let blocks = tiles / outputs;
        let mut bias = layer.bias.clone();
        bias.resize(tiles * tile, 0.0);
        let (end, request, channels) = match outcome {
            Outcome::Tiles => (kernel::MATRICES_TILES, None, tiles * tile),
            Outcome::Ranks(channels) => (kernel::MATRICES_RANKS, Some(Binding::Request), channels),
        };
        let kernel = Kernel::of_matrices("matrices", tile, kernel::MATRICES)
            .with(&[
                ("OUTPUTS", outputs),
                ("BLOCKS", blocks),
                ("ROWS", layer.kernel),
            ])
            .with(&[
                ("SOURCE_TILES", layer.inputs.div_ceil(tile)),
                ("OUTCOME_TILES", tiles),
            ])
            .with(&[
                ("CHANNELS", channels),
                ("RANKS", tiling.ranks),
                ("PLACES", tiling.places),
            ])
            .with(&[("THREADS", tiling.subgroups() * self.subgroup_threads())])
            .with_flag("RESIDUAL", role.residual)
            .with_flag("ACTIVATED", role.activated)
            .activated(self.activation())
            .including(&[end, &unrolled(outputs, layer.kernel)]);
        let mut bindings = vec![
            self.array(&format!("{name}.weight"), &arrange(layer, tile, outputs))?,
            self.exact(&bias),
            role.outcome,
        ];
        bindings.extend(role.source);
        bindings.extend(request);
        let grid = Grid::Groups {
            each: 8 / tiling.ranks * blocks.div_ceil(tiling.places),
            positions: tile,
        };
        self.step(kernel, bindings, grid);
        Ok(())
    }

    fn matrix_block_end(
        &mut self,
        layers: &SqueezeExcitation,
        channels: usize,
    ) -> Result<(), ModelError> {
        let tile = self.tile()?;
        let numbers = excitation(self.weights, layers)?;
        let shares = (4 * THREADS / channels).clamp(1, 64);
        let kernel = Kernel::new("block_end", Storage::F16)
            .with(&[
                ("CHANNELS", channels),
                ("UNITS", layers.squeeze.outputs as usize),
            ])
            .with(&[("THREADS", THREADS), ("BOARDS", 1)])
            .with(&[("TILE", tile), ("SHARES", shares)])
            .activated(self.activation())
            .including(&[kernel::EXCITATION, kernel::MATRICES_BLOCK_END]);
        let bindings = vec![self.exact(&numbers), Binding::Branch, Binding::Stream];
        self.step(kernel, bindings, Grid::Boards(1));
        Ok(())
    }

    /// The value head's convolution and hidden layer. Gives the channels of its features.
    pub(crate) fn matrix_hidden(
        &mut self,
        layer: &NormalizedConvolution,
        hidden: &Dense,
        tiling: MatrixTiling,
    ) -> Result<usize, ModelError> {
        let tile = self.tile()?;
        let arranged = Arranged::new(self.weights, layer, &[])?;
        let role = Role::plain(Some(Binding::Stream), Binding::Branch);
        self.matrix_layer(&layer.name, &arranged, role, tiling, Outcome::Tiles)?;
        let units = hidden.outputs as usize;
        let (tiles, unit_tiles) = (arranged.channels().div_ceil(tile), units.div_ceil(tile));
        let weight = tensor(self.weights, &hidden.name, "weight")?;
        let kernel = Kernel::of_matrices("hidden", tile, kernel::MATRICES_HIDDEN)
            .with(&[
                ("SOURCE_TILES", tiles),
                ("UNIT_TILES", unit_tiles),
                ("UNITS", units),
            ])
            .with(&[("SUBGROUPS", tiling.subgroups())])
            .with(&[("THREADS", tiling.subgroups() * self.subgroup_threads())])
            .activated(self.activation());
        let bindings = vec![
            Binding::Request,
            self.array(
                &format!("{}.weight", hidden.name),
                &arrange_hidden(weight, units, tile),
            )?,
            self.exact(tensor(self.weights, &hidden.name, "bias")?),
            Binding::Branch,
            Binding::Hidden,
        ];
        let grid = Grid::Groups {
            each: unit_tiles.div_ceil(tiling.subgroups()),
            positions: tile,
        };
        self.step(kernel, bindings, grid);
        Ok(tiles * tile)
    }
}
