//! The tower by cooperative matrices: what NVIDIA calls tensor cores and AMD matrix cores.

use rookery_common::network::{ResidualTower, SqueezeExcitation};
use rookery_model::ModelError;

use crate::arrange::{Arranged, excitation};
use crate::kernel::{self, Kernel, Storage};
use crate::layers::{Planner, Role};
use crate::plan::{Binding, Grid};

/// Subgroups of a workgroup: four ranks, two places among the outputs.
const SUBGROUPS: usize = 8;
/// Ranks of a workgroup.
const RANKS: usize = 4;
/// Threads of the kernels beside convolutions.
const THREADS: usize = 256;

/// How matrices are used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatrixTiling {
    /// Rows and columns of a matrix: positions and channels.
    pub(crate) tile: usize,
    /// Matrices of output channels that a subgroup sums for each of eight squares.
    pub(crate) outputs: usize,
}

/// Where a convolution's sums go.
enum Outcome {
    /// Activations for matrices.
    Tiles,
    /// Boards of this many channels, for heads.
    Ranks(usize),
}

impl MatrixTiling {
    /// Workgroup memory of a convolution.
    pub(crate) const fn workgroup_bytes(self) -> usize {
        4 * SUBGROUPS * 4 * self.tile * self.tile
    }

    const fn tiles(self, channels: usize) -> usize {
        channels.div_ceil(self.tile)
    }

    /// The weights of a convolution: `[rows of taps][tiles of inputs][tiles of outputs / outputs][taps of a row][outputs]
    /// [tile outputs][tile inputs]`. Inputs and outputs behind the last are zeros.
    fn arrange(self, layer: &Arranged) -> Vec<f32> {
        let Self { tile, outputs } = self;
        let (taps, channels) = (layer.kernel * layer.kernel, layer.channels());
        let (inputs, blocks) = (self.tiles(layer.inputs), self.tiles(channels) / outputs);
        let mut weights = Vec::with_capacity(taps * inputs * blocks * outputs * tile * tile);
        for row in 0..layer.kernel {
            for (input, block) in pairs(inputs, blocks) {
                for (column, output) in pairs(layer.kernel, outputs) {
                    let tap = row * layer.kernel + column;
                    for (place, from) in pairs(tile, tile) {
                        let (to, from) = (
                            (block * outputs + output) * tile + place,
                            input * tile + from,
                        );
                        let inside = from < layer.inputs && to < channels;
                        let place = (from * taps + tap) * channels + to;
                        weights.push(if inside { layer.weight[place] } else { 0.0 });
                    }
                }
            }
        }
        weights
    }
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
    fn tiling(&self, outputs: usize) -> Result<MatrixTiling, ModelError> {
        let tile = self.matrix_tile();
        let none = || ModelError::NotComputable("the tower without matrices".to_owned());
        tile.map(|tile| MatrixTiling { tile, outputs })
            .ok_or_else(none)
    }

    pub(crate) fn matrix_tower(
        &mut self,
        tower: &ResidualTower,
        outputs: usize,
    ) -> Result<(), ModelError> {
        let tiling = self.tiling(outputs)?;
        let first = self.input(&tower.input)?;
        self.matrix_planes(first.inputs, tiling);
        let plain = |source, outcome| Role {
            source: Some(source),
            outcome,
            residual: false,
            activated: true,
        };
        let role = plain(Binding::Between, Binding::Stream);
        self.matrix_layer(&tower.input.name, &first, role, tiling, Outcome::Tiles)?;
        for block in &tower.blocks {
            let role = plain(Binding::Stream, Binding::Between);
            let layer = Arranged::new(self.weights, &block.conv1, &[])?;
            self.matrix_layer(&block.conv1.name, &layer, role, tiling, Outcome::Tiles)?;
            let ends = block.excitation.is_none();
            let role = Role {
                source: Some(Binding::Between),
                outcome: if ends {
                    Binding::Stream
                } else {
                    Binding::Branch
                },
                residual: ends,
                activated: ends,
            };
            let layer = Arranged::new(self.weights, &block.conv2, &[])?;
            self.matrix_layer(&block.conv2.name, &layer, role, tiling, Outcome::Tiles)?;
            if let Some(layers) = &block.excitation {
                self.matrix_block_end(layers, layer.channels(), tiling)?;
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
        outputs: usize,
    ) -> Result<(), ModelError> {
        let tiling = self.tiling(outputs)?;
        let outcome = Outcome::Ranks(layer.channels());
        self.matrix_layer(name, layer, role, tiling, outcome)
    }

    /// Unpacks planes into `Between`.
    fn matrix_planes(&mut self, planes: usize, tiling: MatrixTiling) {
        let (tile, tiles) = (tiling.tile, tiling.tiles(planes));
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
    }

    fn matrix_layer(
        &mut self,
        name: &str,
        layer: &Arranged,
        role: Role,
        tiling: MatrixTiling,
        outcome: Outcome,
    ) -> Result<(), ModelError> {
        let MatrixTiling { tile, mut outputs } = tiling;
        let tiles = tiling.tiles(layer.channels());
        if tiles % outputs != 0 {
            outputs = 1;
        }
        let tiling = MatrixTiling { tile, outputs };
        let blocks = tiles / outputs;
        let mut bias = layer.bias.clone();
        bias.resize(tiles * tile, 0.0);
        let (end, request) = match outcome {
            Outcome::Tiles => (kernel::MATRICES_TILES, None),
            Outcome::Ranks(_) => (kernel::MATRICES_RANKS, Some(Binding::Request)),
        };
        let channels = match outcome {
            Outcome::Tiles => tiles * tile,
            Outcome::Ranks(channels) => channels,
        };
        let matrices = kernel::MATRICES.replace("TILExTILE", &format!("{tile}x{tile}"));
        let kernel = Kernel::new("matrices", Storage::F16)
            .using_matrices()
            .with(&[("TILE", tile), ("OUTPUTS", outputs), ("BLOCKS", blocks)])
            .with(&[
                ("ROWS", layer.kernel),
                ("SOURCE_TILES", tiling.tiles(layer.inputs)),
            ])
            .with(&[("OUTCOME_TILES", tiles), ("CHANNELS", channels)])
            .with(&[("THREADS", SUBGROUPS * self.subgroup_threads())])
            .with_flag("RESIDUAL", role.residual)
            .with_flag("ACTIVATED", role.activated)
            .activated(self.activation())
            .including(&[&matrices, end, &unrolled(outputs, layer.kernel)]);
        let mut bindings = vec![
            self.array(&format!("{name}.weight"), &tiling.arrange(layer))?,
            self.exact(&bias),
            role.outcome,
        ];
        bindings.extend(role.source);
        bindings.extend(request);
        let grid = Grid::Groups {
            each: 8 / RANKS * blocks.div_ceil(SUBGROUPS / RANKS),
            positions: tile,
        };
        self.step(kernel, bindings, grid);
        Ok(())
    }

    fn matrix_block_end(
        &mut self,
        layers: &SqueezeExcitation,
        channels: usize,
        tiling: MatrixTiling,
    ) -> Result<(), ModelError> {
        let numbers = excitation(self.weights, layers)?;
        let shares = (4 * THREADS / channels).clamp(1, 64);
        let kernel = Kernel::new("block_end", Storage::F16)
            .with(&[
                ("CHANNELS", channels),
                ("UNITS", layers.squeeze.outputs as usize),
            ])
            .with(&[("THREADS", THREADS), ("BOARDS", 1)])
            .with(&[("TILE", tiling.tile), ("SHARES", shares)])
            .activated(self.activation())
            .including(&[kernel::EXCITATION, kernel::MATRICES_BLOCK_END]);
        let bindings = vec![self.exact(&numbers), Binding::Branch, Binding::Stream];
        self.step(kernel, bindings, Grid::Boards(1));
        Ok(())
    }
}
