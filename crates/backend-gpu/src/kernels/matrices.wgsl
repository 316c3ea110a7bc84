// A convolution by cooperative matrices: products of TILE positions with TILE channels, a subgroup for each rank of a group of TILE positions and OUTPUTS
// tiles of output channels.
//
// Activations are [groups of positions][64 squares][tiles of channels][TILE positions][TILE channels], so that a matrix is one square. What a tap reads is
// another square's matrix, and a tap beyond the edge is none.

alias Left = coop_matTILExTILE<f16, A>;
alias Right = coop_matTILExTILE<f16, B>;
alias Sum = coop_matTILExTILE<f32, C>;
// Of the eight squares of a rank, OUTPUTS each.
alias Sums = array<Sum, 8u * OUTPUTS>;

// [three rows of taps, or one][tiles of inputs][tiles of outputs / OUTPUTS][taps of a row][OUTPUTS][TILE outputs][TILE inputs].
@group(0) @binding(0) var<storage, read> weights: array<f16>;
// Four outputs each.
@group(0) @binding(1) var<storage, read> bias: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> outcome: array<vec4<f16>>;
@group(0) @binding(3) var<storage, read> source: array<f16>;

const MATRIX: u32 = TILE * TILE;
// Subgroups that share a workgroup: RANKS ranks, each with PLACES places among the outputs.
const TASKS: u32 = RANKS * PLACES;

// Half a rank of sums, of each subgroup.
var<workgroup> scratch: array<f32, TASKS * 4u * MATRIX>;

fn multiply(sums: ptr<function, Sums>, group: u32, rank: u32, block: u32) {
    for (var row = 0u; row < ROWS; row++) {
        // The rank that the taps read, from 1.
        let read = select(rank + 1u, rank + row, ROWS == 3u);
        if (read == 0u || read > 8u) {
            continue;
        }
        let first = (64u * group + 8u * (read - 1u)) * SOURCE_TILES * MATRIX;
        for (var input = 0u; input < SOURCE_TILES; input++) {
            let taps = ((row * SOURCE_TILES + input) * BLOCKS + block) * ROWS * OUTPUTS * MATRIX;
            multiply_row(sums, first + input * MATRIX, taps);
        }
    }
}

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) subgroups: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) lanes: u32,
) {
    let group = workgroup.y;
    for (var begin = 0u; begin < TASKS; begin += subgroups) {
        let task = begin + subgroup;
        let rank = RANKS * (workgroup.x % (8u / RANKS)) + task % RANKS;
        let block = PLACES * (workgroup.x / (8u / RANKS)) + task / RANKS;
        let busy = task < TASKS && block < BLOCKS;
        var sums: Sums;
        if (busy) {
            multiply(&sums, group, rank, block);
        }
        finish(&sums, busy, Place(group, rank, block, subgroup, lane, lanes));
    }
}

// Where a subgroup's sums belong.
struct Place {
    group: u32,
    rank: u32,
    block: u32,
    subgroup: u32,
    lane: u32,
    lanes: u32,
}
