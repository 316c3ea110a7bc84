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
    Matrices {
        /// Matrices of output channels that a subgroup sums for each of eight squares.
        outputs: usize,
    },
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

impl fmt::Display for TowerPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fused { boards: 1 } => {
                f.write_str("the tower in one kernel, a workgroup a position")
            }
            Self::Fused { boards } => {
                write!(f, "the tower in one kernel, {boards} positions a workgroup")
            }
            Self::Matrices { outputs } => {
                let tiles = if *outputs == 1 { "tile" } else { "tiles" };
                write!(
                    f,
                    "layer by layer by cooperative matrices, {outputs} {tiles} of outputs a subgroup"
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
