// The value head's hidden layer by cooperative matrices: a subgroup for each TILE units of TILE positions.

alias Left = coop_matTILExTILE<f16, A>;
alias Right = coop_matTILExTILE<f16, B>;
alias Sum = coop_matTILExTILE<f32, C>;

@group(0) @binding(0) var<storage, read> request: array<u32>;
// [squares][tiles of channels][tiles of units][TILE units][TILE channels].
@group(0) @binding(1) var<storage, read> weights: array<f16>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read> features: array<f16>;
@group(0) @binding(4) var<storage, read_write> outcome: array<f32>;

const MATRIX: u32 = TILE * TILE;
const INPUTS: u32 = 64u * SOURCE_TILES;

var<workgroup> scratch: array<f32, SUBGROUPS * MATRIX>;

fn multiply(group: u32, tile: u32, subgroup: u32) {
    var sum: Sum;
    for (var input = 0u; input < INPUTS; input++) {
        let left = coopLoadT<Left>(&features[(group * INPUTS + input) * MATRIX], TILE);
        let right = coopLoad<Right>(&weights[(input * UNIT_TILES + tile) * MATRIX], TILE);
        sum = coopMultiplyAdd(left, right, sum);
    }
    coopStoreT(sum, &scratch[subgroup * MATRIX], TILE);
}

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) subgroups: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) lanes: u32,
) {
    for (var begin = 0u; begin < SUBGROUPS; begin += subgroups) {
        let tile = SUBGROUPS * workgroup.x + begin + subgroup;
        let busy = begin + subgroup < SUBGROUPS && tile < UNIT_TILES;
        if (busy) {
            multiply(workgroup.y, tile, subgroup);
        }
        workgroupBarrier();
        for (var number = lane; busy && number < MATRIX; number += lanes) {
            let position = TILE * workgroup.y + number / TILE;
            let unit = TILE * tile + number % TILE;
            if (position < request[0] && unit < UNITS) {
                let sum = scratch[subgroup * MATRIX + number] + bias[unit];
                outcome[position * UNITS + unit] = activate(vec4<f32>(sum)).x;
            }
        }
        workgroupBarrier();
    }
}
