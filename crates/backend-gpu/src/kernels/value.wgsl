// The value head's last layer, a workgroup for each position. Its outputs stand behind the logits.

@group(0) @binding(0) var<storage, read> request: array<u32>;
// [outputs][units].
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read> hidden: array<f32>;
@group(0) @binding(4) var<storage, read_write> answer: array<f32>;

var<workgroup> partial_sums: array<f32, 64u * OUTPUTS>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    for (var output = 0u; output < OUTPUTS; output++) {
        var sum = 0.0;
        for (var unit = lane; unit < UNITS; unit += 64u) {
            sum = fma(hidden[group.x * UNITS + unit], weights[output * UNITS + unit], sum);
        }
        partial_sums[64u * output + lane] = sum;
    }
    workgroupBarrier();
    if (lane < OUTPUTS) {
        var sum = bias[lane];
        for (var part = 0u; part < 64u; part++) {
            sum += partial_sums[64u * lane + part];
        }
        answer[request[1] + OUTPUTS * group.x + lane] = sum;
    }
}
