// Logits of the legal moves: eight threads for each.

@group(0) @binding(0) var<storage, read> request: array<u32>;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read> features: array<Number>;
@group(0) @binding(4) var<storage, read_write> answer: array<f32>;

var<workgroup> partial_sums: array<f32, 64>;

// Each plane's kernel is [channels][3][3].
fn around(position: u32, cell: u32, part: u32) -> f32 {
    let square = cell / PLANES;
    let plane = cell % PLANES;
    let row = square / 8u;
    let column = square % 8u;
    var sum = 0.0;
    for (var channel = part; channel < CHANNELS; channel += 8u) {
        let board = 8u + 64u * (position * SOURCE + channel);
        let kernel = 9u * (plane * CHANNELS + channel);
        for (var tap = 0u; tap < 9u; tap++) {
            // Beyond the edge these wrap around to large numbers.
            let other_row = row + tap / 3u - 1u;
            let other_column = column + tap % 3u - 1u;
            if (other_row < 8u && other_column < 8u) {
                sum = fma(f32(features[board + 8u * other_row + other_column]), weights[kernel + tap], sum);
            }
        }
    }
    return sum;
}

// Each cell's weights are [channels][64].
fn everywhere(position: u32, cell: u32, part: u32) -> f32 {
    let board = 8u + 64u * position * SOURCE;
    let row = cell * 64u * CHANNELS;
    var sum = 0.0;
    for (var input = part; input < 64u * CHANNELS; input += 8u) {
        sum = fma(f32(features[board + input]), weights[row + input], sum);
    }
    return sum;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = 8u * group.x + lane / 8u;
    let part = lane % 8u;
    let inside = index < request[1];
    var sum = 0.0;
    var bias_place = 0u;
    if (inside) {
        let chosen = request[request[3] + index];
        let position = chosen >> 16u;
        let cell = chosen & 65535u;
        if (CONVOLUTION) {
            sum = around(position, cell, part);
            bias_place = cell % PLANES;
        } else {
            sum = everywhere(position, cell, part);
            bias_place = cell;
        }
    }
    partial_sums[lane] = sum;
    workgroupBarrier();
    if (inside && part == 0u) {
        var logit = bias[bias_place];
        for (var other = 0u; other < 8u; other++) {
            logit += partial_sums[lane + other];
        }
        answer[index] = logit;
    }
}
