// The end of a block with squeeze-excitation, of activations for matrices: a workgroup for each position.

@group(0) @binding(0) var<storage, read> excitations: array<f32>;
@group(0) @binding(1) var<storage, read> branch: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read_write> stream: array<vec4<f16>>;

const QUADS: u32 = CHANNELS / 4u;

// Of a share of the squares.
var<workgroup> partial_sums: array<vec4<f32>, SHARES * QUADS>;

// Four channels of a square.
fn place_of(position: u32, square: u32, quad: u32) -> u32 {
    let tile = (64u * (position / TILE) + square) * (CHANNELS / TILE) + quad / (TILE / 4u);
    return (tile * TILE + position % TILE) * (TILE / 4u) + quad % (TILE / 4u);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    for (var item = lane; item < SHARES * QUADS; item += THREADS) {
        var sum = vec4<f32>(0.0);
        for (var square = item / QUADS; square < 64u; square += SHARES) {
            sum += vec4<f32>(branch[place_of(group.x, square, item % QUADS)]);
        }
        partial_sums[item] = sum;
    }
    workgroupBarrier();
    for (var quad = lane; quad < QUADS; quad += THREADS) {
        var sum = vec4<f32>(0.0);
        for (var share = 0u; share < SHARES; share++) {
            sum += partial_sums[share * QUADS + quad];
        }
        sum /= 64.0;
        means[4u * quad] = sum.x;
        means[4u * quad + 1u] = sum.y;
        means[4u * quad + 2u] = sum.z;
        means[4u * quad + 3u] = sum.w;
    }
    find_gates(0u, 0u, lane);
    for (var part = lane; part < 64u * QUADS; part += THREADS) {
        let place = place_of(group.x, part / QUADS, part % QUADS);
        let gate = 4u * (part % QUADS);
        let factor = vec4<f32>(gates[gate], gates[gate + 1u], gates[gate + 2u], gates[gate + 3u]);
        let other = CHANNELS + gate;
        let summand = vec4<f32>(gates[other], gates[other + 1u], gates[other + 2u], gates[other + 3u]);
        let added = fma(vec4<f32>(branch[place]), factor, summand);
        stream[place] = vec4<f16>(activate(vec4<f32>(stream[place]) + added));
    }
}
