//! From the layers of a network to a [`Plan`].

use rookery_common::network::{
    Activation, Layers, NormalizedConvolution, ResidualTower, Tower as Body,
};
use rookery_model::{ModelError, Weights};

use crate::arrange::{Arranged, stored};
use crate::gpu::Gpu;
use crate::kernel::{self, Kernel, Storage};
use crate::plan::{Binding, Grid, Plan, Sizes, Step};
use crate::request::HEADER;
use crate::variant::{MatrixTiling, Tiling, TowerPath};

/// Most channels of a tower in one kernel: 256 threads, whose registers hold the stream.
const MOST_FUSED_CHANNELS: usize = 128;
/// Most threads of a workgroup that has several boards.
const MOST_FUSED_THREADS: usize = 512;

/// Puts a plan together.
pub(crate) struct Planner<'a> {
    gpu: &'a Gpu,
    pub(crate) weights: &'a Weights,
    pub(crate) layers: Layers,
    pub(crate) storage: Storage,
    pub(crate) path: TowerPath,
    steps: Vec<Step>,
}

/// Which arrays a convolution reads and writes, and what it does with its sums.
pub(crate) struct Role {
    /// None: the packed planes.
    pub(crate) source: Option<Binding>,
    pub(crate) outcome: Binding,
    pub(crate) residual: bool,
    pub(crate) activated: bool,
}

impl Role {
    /// Adds to nothing, and activates its sums.
    pub(crate) const fn plain(source: Option<Binding>, outcome: Binding) -> Self {
        Self {
            source,
            outcome,
            residual: false,
            activated: true,
        }
    }

    /// A block's last convolution, which ends the block unless a squeeze-excitation follows.
    pub(crate) const fn last_of_block(ends: bool) -> Self {
        Self {
            source: Some(Binding::Between),
            outcome: if ends {
                Binding::Stream
            } else {
                Binding::Branch
            },
            residual: ends,
            activated: ends,
        }
    }
}

impl<'a> Planner<'a> {
    pub(crate) fn new(
        gpu: &'a Gpu,
        weights: &'a Weights,
        storage: Storage,
    ) -> Result<Self, ModelError> {
        Ok(Self {
            gpu,
            weights,
            layers: Layers::new(weights.spec())?,
            storage,
            path: TowerPath::Layered(Tiling::DEFAULT),
            steps: Vec::new(),
        })
    }

    /// The ways of computing the tower for which the GPU is large enough, never none. The first suits it as far as its
    /// limits say.
    pub(crate) fn variants(&self) -> Vec<TowerPath> {
        let limit = self.gpu.adapter.workgroup_threads as usize;
        let fused = [1, 2, 4].map(|boards| TowerPath::Fused { boards });
        let layered = Tiling::ALL.map(TowerPath::Layered);
        let matrices = MatrixTiling::ALL.map(TowerPath::Matrices);
        let fits = |path: &TowerPath| match path {
            TowerPath::Fused { boards } => self.fuses(*boards),
            TowerPath::Layered(tiling) => tiling.threads <= limit,
            TowerPath::Matrices(tiling) => self.multiplies(*tiling),
        };
        let all = matrices.into_iter().chain(fused).chain(layered);
        let mut variants: Vec<TowerPath> = all.filter(fits).collect();
        if variants.is_empty() {
            variants.push(TowerPath::Layered(Tiling::DEFAULT));
        }
        variants
    }

    /// Whether the GPU's workgroups hold this many boards.
    fn fuses(&self, boards: usize) -> bool {
        let Body::Residual(tower) = &self.layers.tower;
        let channels = tower.input.outputs as usize;
        let threads = boards * 8 * channels.div_ceil(4);
        let adapter = &self.gpu.adapter;
        channels <= MOST_FUSED_CHANNELS
            && threads <= adapter.workgroup_threads as usize
            && (boards == 1 || threads <= MOST_FUSED_THREADS)
            && boards * self.fused_bytes(tower) <= adapter.workgroup_bytes as usize
            && self.fused_weight_bytes(tower) <= adapter.binding_bytes
    }

    /// Whether the GPU has matrices that hold the network.
    fn multiplies(&self, tiling: MatrixTiling) -> bool {
        let Some(tile) = self.matrix_tile() else {
            return false;
        };
        let adapter = &self.gpu.adapter;
        self.storage == Storage::F16
            && self.stream().is_multiple_of(tile * tiling.outputs)
            && tiling.workgroup_bytes(tile) <= adapter.workgroup_bytes as usize
            && tiling.subgroups() * self.subgroup_threads() <= adapter.workgroup_threads as usize
    }

    /// Rows and columns of cooperative matrices.
    pub(crate) fn matrix_tile(&self) -> Option<usize> {
        self.gpu.matrix_tile
    }

    /// Threads of a subgroup at least.
    pub(crate) fn subgroup_threads(&self) -> usize {
        self.gpu.adapter.subgroup_threads as usize
    }

    /// Workgroup memory of a board in one kernel for the tower.
    fn fused_bytes(&self, tower: &ResidualTower) -> usize {
        let channels = tower.input.outputs as usize;
        let excitation = tower
            .blocks
            .first()
            .and_then(|block| block.excitation.as_ref());
        let excitation = excitation.map_or(0, |layers| {
            // Means, units, gates, and sums of ranks.
            4 * (3 * channels + layers.squeeze.outputs as usize) + 16 * 2 * channels
        });
        (64 * channels + 8) * self.storage.bytes() + excitation
    }

    fn fused_weight_bytes(&self, tower: &ResidualTower) -> u64 {
        let [channels, planes] = [tower.input.outputs, tower.input.inputs].map(u64::from);
        let inputs = planes + 2 * tower.blocks.len() as u64 * channels;
        9 * channels * inputs * self.storage.bytes() as u64
    }

    /// The whole plan.
    ///
    /// # Errors
    ///
    /// [`ModelError`] for weights that the storage cannot hold.
    pub(crate) fn plan(mut self, path: TowerPath) -> Result<Plan, ModelError> {
        let layers = self.layers.clone();
        let Body::Residual(tower) = &layers.tower;
        self.path = path;
        match path {
            TowerPath::Fused { boards } => self.fused_tower(tower, boards)?,
            TowerPath::Layered(_) => self.layered_tower(tower)?,
            TowerPath::Matrices(tiling) => self.matrix_tower(tower, tiling)?,
        }
        let policy = self.policy()?;
        let value = self.value()?;
        let channels = tower.input.outputs as usize;
        let (group, [between, branch]) = match path {
            TowerPath::Fused { .. } => (1, [0, 0]),
            TowerPath::Layered(_) => (1, [channels, channels]),
            TowerPath::Matrices(_) => {
                let tile = self.matrix_tile().unwrap_or(1);
                let planes = (tower.input.inputs as usize).next_multiple_of(tile);
                (tile, [channels.max(planes), channels])
            }
        };
        Ok(Plan {
            sizes: Sizes {
                stream: channels,
                between: between.max(policy),
                branch: branch.max(value),
                hidden: layers.value.hidden.outputs as usize,
                values: layers.value.output.outputs as usize,
                group,
            },
            steps: self.steps,
        })
    }

    pub(crate) fn activation(&self) -> Activation {
        self.layers.activation
    }

    pub(crate) fn array(&self, name: &str, numbers: &[f32]) -> Result<Binding, ModelError> {
        let bytes = stored(name, numbers, self.storage)?;
        Ok(Binding::Weights(self.gpu.array(&bytes)))
    }

    /// An array of 32 bits, whatever the storage.
    pub(crate) fn exact(&self, numbers: &[f32]) -> Binding {
        Binding::Weights(self.gpu.array(bytemuck::cast_slice(numbers)))
    }

    pub(crate) fn step(&mut self, kernel: Kernel, bindings: Vec<Binding>, grid: Grid) {
        self.steps.push(Step {
            name: kernel.name,
            pipeline: self.gpu.pipeline(kernel),
            bindings,
            grid,
        });
    }

    /// Constants of kernels that read packed planes.
    pub(crate) fn planes(&self) -> [(&'static str, usize); 3] {
        let input = self.weights.spec().input;
        [
            ("HEADER", HEADER),
            ("BINARY", input.binary_planes()),
            ("SCALARS", input.scalar_planes()),
        ]
    }

    /// The convolution of the planes, which divides counts by their scales.
    pub(crate) fn input(&self, layer: &NormalizedConvolution) -> Result<Arranged, ModelError> {
        let input = self.weights.spec().input;
        let binary = std::iter::repeat_n(1.0, input.binary_planes());
        let scales: Vec<f32> = binary
            .chain(input.scalar_scales().iter().copied())
            .collect();
        Arranged::new(self.weights, layer, &scales)
    }

    /// A convolution of an array whose boards have `source` channels. Gives its own channels.
    pub(crate) fn normalized(
        &mut self,
        layer: &NormalizedConvolution,
        source: usize,
        role: Role,
    ) -> Result<usize, ModelError> {
        let arranged = Arranged::new(self.weights, layer, &[])?;
        self.convolution(&layer.name, &arranged, source, role)?;
        Ok(arranged.channels())
    }

    pub(crate) fn convolution(
        &mut self,
        name: &str,
        layer: &Arranged,
        source: usize,
        role: Role,
    ) -> Result<(), ModelError> {
        let tiling = match self.path {
            TowerPath::Matrices(tiling) => {
                return self.matrix_head(name, layer, role, tiling);
            }
            TowerPath::Layered(tiling) => tiling,
            TowerPath::Fused { .. } => Tiling::DEFAULT,
        };
        let mut kernel = Kernel::new("convolution", self.storage)
            .with(&[("INPUTS", layer.inputs), ("QUADS", layer.quads)])
            .with(&[("KERNEL", layer.kernel), ("SOURCE", source)])
            .with_flag("RESIDUAL", role.residual)
            .with_flag("ACTIVATED", role.activated)
            .with(&[("THREADS", tiling.threads)])
            .activated(self.activation())
            .including(&[kernel::RANKS, kernel::CONVOLUTION]);
        let mut bindings = vec![
            Binding::Request,
            self.array(&format!("{name}.weight"), &layer.weight)?,
            self.exact(&layer.bias),
            role.outcome,
        ];
        let in_pairs = tiling.pairs && role.source.is_some() && layer.kernel == 3;
        kernel = if let Some(source) = role.source {
            bindings.push(source);
            kernel.including(&[kernel::BOARD, kernel::SOURCE])
        } else {
            kernel
                .with(&self.planes())
                .including(&[kernel::PLANES, kernel::FROM_PLANES])
        };
        let (main, boards) = if in_pairs {
            (kernel::PAIRS, 2)
        } else {
            (kernel::SINGLE, 1)
        };
        let grid = Grid::Threads {
            each: 8 * layer.quads,
            boards,
            threads: tiling.threads,
        };
        self.step(kernel.including(&[main]), bindings, grid);
        Ok(())
    }

    /// Channels of the stream.
    pub(crate) fn stream(&self) -> usize {
        let Body::Residual(tower) = &self.layers.tower;
        tower.input.outputs as usize
    }
}
