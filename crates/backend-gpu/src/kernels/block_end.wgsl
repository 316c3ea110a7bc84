// The end of a block with squeeze-excitation, a workgroup for each position.

@group(0) @binding(0) var<storage, read> excitations: array<f32>;
@group(0) @binding(1) var<storage, read> branch: array<Stored>;
@group(0) @binding(2) var<storage, read_write> stream: array<Stored>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let origin = 2u + 16u * CHANNELS * group.x;
    for (var channel = lane; channel < CHANNELS; channel += THREADS) {
        var sum = vec4<f32>(0.0);
        for (var part = 0u; part < 16u; part++) {
            sum += vec4<f32>(branch[origin + 16u * channel + part]);
        }
        means[channel] = (sum.x + sum.y + sum.z + sum.w) / 64.0;
    }
    find_gates(0u, 0u, lane);
    for (var part = lane; part < 16u * CHANNELS; part += THREADS) {
        let place = origin + part;
        let added = fma(vec4<f32>(branch[place]), vec4<f32>(gates[part / 16u]), vec4<f32>(gates[CHANNELS + part / 16u]));
        stream[place] = Stored(activate(vec4<f32>(stream[place]) + added));
    }
}
