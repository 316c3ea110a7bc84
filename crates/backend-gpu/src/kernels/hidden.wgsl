// The value head's hidden layer: a thread for each unit of four positions.

@group(0) @binding(0) var<storage, read> request: array<u32>;
// [inputs / 4][units] of four inputs each.
@group(0) @binding(1) var<storage, read> weights: array<Stored>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read> features: array<Stored>;
@group(0) @binding(4) var<storage, read_write> outcome: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let unit = 64u * group.y + lane;
    if (unit >= UNITS) {
        return;
    }
    let last = request[0] - 1u;
    let first = 4u * group.x;
    let positions = min(vec4<u32>(first, first + 1u, first + 2u, first + 3u), vec4<u32>(last));
    let places = vec4<u32>(2u) + 16u * SOURCE * positions;
    var sums = vec4<f32>(bias[unit]);
    for (var input = 0u; input < 16u * CHANNELS; input++) {
        let weight = vec4<f32>(weights[input * UNITS + unit]);
        sums += vec4<f32>(
            dot(weight, vec4<f32>(features[places.x + input])),
            dot(weight, vec4<f32>(features[places.y + input])),
            dot(weight, vec4<f32>(features[places.z + input])),
            dot(weight, vec4<f32>(features[places.w + input])),
        );
    }
    sums = activate(sums);
    for (var index = 0u; index < 4u && first + index <= last; index++) {
        outcome[(first + index) * UNITS + unit] = sums[index];
    }
}
