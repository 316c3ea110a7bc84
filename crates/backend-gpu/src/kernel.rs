//! Sources of kernels: constants, then files that are shared between them.

use std::fmt::Write as _;

use rookery_common::network::Activation;
use rookery_engine::Precision;

/// How activations and weights of convolutions are stored. Sums have 32 bits in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    /// 32 bits.
    F32,
    /// 16 bits, IEEE half precision.
    F16,
}

impl Storage {
    /// The same, as programs name it.
    pub(crate) const fn precision(self) -> Precision {
        match self {
            Self::F32 => Precision::F32,
            Self::F16 => Precision::F16,
        }
    }

    /// Bytes of a number.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
        }
    }
}

/// A kernel's source in WGSL as it is put together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Kernel {
    /// What drivers and profilers show.
    pub(crate) name: &'static str,
    pub(crate) source: String,
}

pub(crate) const ACTIVATION: &str = include_str!("kernels/activation.wgsl");
pub(crate) const RANKS: &str = include_str!("kernels/ranks.wgsl");
pub(crate) const PLANES: &str = include_str!("kernels/planes.wgsl");
pub(crate) const BOARD: &str = include_str!("kernels/board.wgsl");
pub(crate) const SOURCE: &str = include_str!("kernels/source.wgsl");
pub(crate) const CONVOLUTION: &str = include_str!("kernels/convolution.wgsl");
pub(crate) const SINGLE: &str = include_str!("kernels/single.wgsl");
pub(crate) const PAIRS: &str = include_str!("kernels/pairs.wgsl");
pub(crate) const EXCITATION: &str = include_str!("kernels/excitation.wgsl");
pub(crate) const BLOCK_END: &str = include_str!("kernels/block_end.wgsl");
pub(crate) const MATRICES: &str = include_str!("kernels/matrices.wgsl");
pub(crate) const MATRICES_TILES: &str = include_str!("kernels/matrices_tiles.wgsl");
pub(crate) const MATRICES_RANKS: &str = include_str!("kernels/matrices_ranks.wgsl");
pub(crate) const MATRICES_PLANES: &str = include_str!("kernels/matrices_planes.wgsl");
pub(crate) const MATRICES_HIDDEN: &str = include_str!("kernels/matrices_hidden.wgsl");
pub(crate) const MATRICES_BLOCK_END: &str = include_str!("kernels/matrices_block_end.wgsl");
pub(crate) const TOWER: &str = include_str!("kernels/tower.wgsl");
pub(crate) const TOWER_EXCITATION: &str = include_str!("kernels/tower_excitation.wgsl");
pub(crate) const POLICY: &str = include_str!("kernels/policy.wgsl");
pub(crate) const HIDDEN: &str = include_str!("kernels/hidden.wgsl");
pub(crate) const VALUE: &str = include_str!("kernels/value.wgsl");

/// The convolution of packed planes in the place of [`SOURCE`].
pub(crate) const FROM_PLANES: &str = "
fn convolve(sums: ptr<function, Sums>, start: u32, position: u32, row: u32) {
    convolve_planes(sums, start, position, row);
}
";

/// A tower without squeeze-excitation in the place of [`TOWER_EXCITATION`].
pub(crate) const NO_EXCITATION: &str =
    "\nfn excite(sums: ptr<function, Sums>, block: u32, quad: u32, board: u32, lane: u32) {}\n";

impl Kernel {
    /// A kernel of numbers that are stored so.
    pub(crate) fn new(name: &'static str, storage: Storage) -> Self {
        let source = match storage {
            Storage::F32 => "alias Number = f32;\nalias Stored = vec4<f32>;\n",
            Storage::F16 => "enable f16;\nalias Number = f16;\nalias Stored = vec4<f16>;\n",
        };
        Self {
            name,
            source: source.to_owned(),
        }
    }

    /// A kernel of cooperative matrices with `tile` rows and columns, the value of TILE in this file.
    pub(crate) fn of_matrices(name: &'static str, tile: usize, file: &str) -> Self {
        let directive = "enable wgpu_cooperative_matrix;\n";
        let mut kernel = Self::new(name, Storage::F16).with(&[("TILE", tile)]);
        // Directives stand before everything else.
        kernel.source.insert_str(0, directive);
        let file = file.replace("TILExTILE", &format!("{tile}x{tile}"));
        kernel.including(&[&file])
    }

    /// With constants.
    pub(crate) fn with(mut self, constants: &[(&str, usize)]) -> Self {
        for (name, value) in constants {
            // Writing to a string never fails.
            let _ = writeln!(self.source, "const {name}: u32 = {value}u;");
        }
        self
    }

    /// With a constant that is true or false.
    pub(crate) fn with_flag(mut self, name: &str, value: bool) -> Self {
        let _ = writeln!(self.source, "const {name}: bool = {value};");
        self
    }

    /// With an activation function.
    pub(crate) fn activated(self, activation: Activation) -> Self {
        let mish = activation == Activation::Mish;
        self.with_flag("MISH", mish).including(&[ACTIVATION])
    }

    /// With files.
    pub(crate) fn including(mut self, files: &[&str]) -> Self {
        files.iter().for_each(|file| self.source.push_str(file));
        self
    }
}
