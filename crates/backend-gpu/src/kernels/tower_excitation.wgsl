// Squeeze-excitation within a tower that is computed in workgroup memory.

@group(0) @binding(4) var<storage, read> excitations: array<f32>;

// Sums of a rank of four channels.
var<workgroup> partial_sums: array<vec4<f32>, BOARDS * THREADS>;

fn sum_of(x: Rank) -> f32 {
    let sum = x.left + x.right;
    return sum.x + sum.y + sum.z + sum.w;
}

// `gate`: the place of the factor.
fn gated(x: Rank, gate: u32) -> Rank {
    let factor = vec4<f32>(gates[gate]);
    let summand = vec4<f32>(gates[CHANNELS + gate]);
    return Rank(fma(factor, x.left, summand), fma(factor, x.right, summand));
}

fn excite(sums: ptr<function, Sums>, block: u32, quad: u32, board: u32, lane: u32) {
    let y = *sums;
    partial_sums[board * THREADS + lane] = vec4<f32>(sum_of(y.a), sum_of(y.b), sum_of(y.c), sum_of(y.d));
    workgroupBarrier();
    if (lane < QUADS) {
        var sum = vec4<f32>(0.0);
        for (var row = 0u; row < 8u; row++) {
            sum += partial_sums[board * THREADS + 8u * lane + row];
        }
        sum /= 64.0;
        let first = board * CHANNELS + 4u * lane;
        means[first] = sum.x;
        means[first + 1u] = sum.y;
        means[first + 2u] = sum.z;
        means[first + 3u] = sum.w;
    }
    find_gates(block * (3u * CHANNELS * UNITS + UNITS + 2u * CHANNELS), board, lane);
    let gate = board * 2u * CHANNELS + 4u * quad;
    *sums = Sums(gated(y.a, gate), gated(y.b, gate + 1u), gated(y.c, gate + 2u), gated(y.d, gate + 3u));
}
