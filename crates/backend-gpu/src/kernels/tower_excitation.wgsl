// Squeeze-excitation within a tower that is computed in workgroup memory.

@group(0) @binding(4) var<storage, read> excitations: array<f32>;

// Sums of a rank of four channels.
var<workgroup> partial_sums: array<vec4<f32>, THREADS>;

fn sum_of(x: Rank) -> f32 {
    let sum = x.left + x.right;
    return sum.x + sum.y + sum.z + sum.w;
}

fn gated(x: Rank, channel: u32) -> Rank {
    let factor = vec4<f32>(gates[channel]);
    let summand = vec4<f32>(gates[CHANNELS + channel]);
    return Rank(fma(factor, x.left, summand), fma(factor, x.right, summand));
}

fn excite(sums: ptr<function, Sums>, block: u32, quad: u32, lane: u32) {
    let y = *sums;
    partial_sums[lane] = vec4<f32>(sum_of(y.a), sum_of(y.b), sum_of(y.c), sum_of(y.d));
    workgroupBarrier();
    if (lane < QUADS) {
        var sum = vec4<f32>(0.0);
        for (var row = 0u; row < 8u; row++) {
            sum += partial_sums[8u * lane + row];
        }
        sum /= 64.0;
        means[4u * lane] = sum.x;
        means[4u * lane + 1u] = sum.y;
        means[4u * lane + 2u] = sum.z;
        means[4u * lane + 3u] = sum.w;
    }
    find_gates(block * (3u * CHANNELS * UNITS + UNITS + 2u * CHANNELS), lane);
    let channel = 4u * quad;
    *sums = Sums(gated(y.a, channel), gated(y.b, channel + 1u), gated(y.c, channel + 2u), gated(y.d, channel + 3u));
}
