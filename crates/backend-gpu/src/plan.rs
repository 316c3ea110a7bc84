//! What is computed for a batch: kernels, what each reads and writes, and how many workgroups it takes.
//!
//! ```text
//! matrices: request --planes--> between --matrices--> stream, then block by block as layered
//! fused:    request --tower--> stream
//! layered:  request --convolution--> stream
//!           block: stream --convolution--> between --convolution--> branch --block_end--> stream
//!                  without squeeze-excitation:     --convolution, added to-------------> stream
//! heads:    stream --convolution--> between --policy--> answer
//!           stream --convolution--> branch  --hidden--> hidden --value--> answer
//! ```

/// An array that a kernel reads or writes.
#[derive(Debug, Clone)]
pub(crate) enum Binding {
    /// Weights.
    Weights(wgpu::Buffer),
    /// The positions and moves to evaluate.
    Request,
    /// Activations that blocks add to.
    Stream,
    /// What a block's first convolution gives; the policy's features.
    Between,
    /// What a block's second convolution gives; the value's features.
    Branch,
    /// The value's hidden units, 32 bits each.
    Hidden,
    /// Logits, then values, 32 bits each.
    Answer,
}

/// Workgroups of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grid {
    /// As many as hold `each` threads for every `boards` positions, `threads` in a workgroup.
    Threads {
        each: usize,
        boards: usize,
        threads: usize,
    },
    /// One for this many positions.
    Boards(usize),
    /// For each four positions, this many.
    Fours(usize),
    /// `each` side by side for every `positions` positions.
    Groups { each: usize, positions: usize },
    /// One for each eight moves.
    Moves,
}

impl Grid {
    /// Workgroups along both axes.
    pub(crate) fn workgroups(self, positions: usize, moves: usize) -> [u32; 2] {
        let [x, y] = match self {
            Self::Threads {
                each,
                boards,
                threads,
            } => [(positions.div_ceil(boards) * each).div_ceil(threads), 1],
            Self::Boards(boards) => [positions.div_ceil(boards), 1],
            Self::Fours(each) => [positions.div_ceil(4), each],
            Self::Groups {
                each,
                positions: group,
            } => [each, positions.div_ceil(group)],
            Self::Moves => [moves.div_ceil(8), 1],
        };
        [x as u32, y as u32]
    }
}

/// A kernel with its arrays, in the order of their numbers.
#[derive(Debug)]
pub(crate) struct Step {
    /// The kernel's.
    pub(crate) name: &'static str,
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) grid: Grid,
}

/// Numbers of each position in the arrays between kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Channels of the stream.
    pub(crate) stream: usize,
    /// Channels.
    pub(crate) between: usize,
    /// Channels.
    pub(crate) branch: usize,
    /// Units.
    pub(crate) hidden: usize,
    /// Outputs of the value head: 3 or 1.
    pub(crate) values: usize,
    /// Positions that lie together, a batch being filled up to a multiple.
    pub(crate) group: usize,
}

/// How a network is computed.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) sizes: Sizes,
}
