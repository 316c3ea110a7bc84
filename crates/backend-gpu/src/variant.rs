//! Ways of computing a network's tower. All of them sum in the same order: in 32 bits they give the same numbers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How the residual tower is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TowerPath {
    /// In one kernel.
    Fused {
        /// Positions of a workgroup.
        boards: usize,
    },
    /// In a kernel or more for each layer.
    Layered(Tiling),
    /// In a kernel or more for each layer, by cooperative matrices.
    Matrices(MatrixTiling),
}

/// How a convolution in a kernel of its own is divided among threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tiling {
    /// Threads of a workgroup.
    pub(crate) threads: usize,
    /// Whether a thread computes two positions, for which it loads each weight once.
    pub(crate) pairs: bool,
}

impl Tiling {
    /// What suits most GPUs.
    pub(crate) const DEFAULT: Self = Self {
        threads: 128,
        pairs: false,
    };

    /// What is tried, the default first.
    pub(crate) const ALL: [Self; 6] = [
        Self::DEFAULT,
        Self::new(128, true),
        Self::new(64, true),
        Self::new(256, true),
        Self::new(64, false),
        Self::new(256, false),
    ];

    const fn new(threads: usize, pairs: bool) -> Self {
        Self { threads, pairs }
    }
}

/// How a convolution by cooperative matrices is divided among subgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MatrixTiling {
    /// Matrices of output channels that a subgroup sums for each square of a rank.
    pub(crate) outputs: usize,
    /// Ranks of a workgroup, a divisor of eight.
    pub(crate) ranks: usize,
    /// Subgroups of a workgroup for each rank, which sum other outputs.
    pub(crate) places: usize,
}

impl MatrixTiling {
    /// What is tried, what suits most GPUs first.
    pub(crate) const ALL: [Self; 6] = [
        Self::new(2, 2, 2),
        Self::new(1, 2, 2),
        Self::new(2, 4, 1),
        Self::new(2, 2, 1),
        Self::new(2, 1, 4),
        Self::new(1, 4, 2),
    ];

    const fn new(outputs: usize, ranks: usize, places: usize) -> Self {
        Self {
            outputs,
            ranks,
            places,
        }
    }

    /// Subgroups of a workgroup.
    pub(crate) const fn subgroups(self) -> usize {
        self.ranks * self.places
    }

    /// Workgroup memory of a convolution whose matrices have `tile` rows: half a rank of each subgroup.
    pub(crate) const fn workgroup_bytes(self, tile: usize) -> usize {
        self.subgroups() * 4 * tile * tile * 4
    }
}

impl fmt::Display for TowerPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fused { boards: 1 } => {
                f.write_str("the tower in one kernel, a workgroup a position")
            }
            Self::Fused { boards } => {
                write!(f, "the tower in one kernel, {boards} positions a workgroup")
            }
            Self::Matrices(MatrixTiling {
                outputs,
                ranks,
                places,
            }) => {
                let tiles = if *outputs == 1 { "tile" } else { "tiles" };
                write!(
                    f,
                    "layer by layer by cooperative matrices, {outputs} {tiles} of outputs a subgroup, {ranks} x {places} subgroups a workgroup"
                )
            }
            Self::Layered(Tiling { threads, pairs }) => {
                let boards = if *pairs { "2 positions" } else { "a position" };
                write!(
                    f,
                    "layer by layer, {boards} a thread, {threads} threads a workgroup"
                )
            }
        }
    }
}
