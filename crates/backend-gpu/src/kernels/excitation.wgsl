// Squeeze-excitation: from the means of a board's channels to a factor and a summand for each. A workgroup has BOARDS
// boards, each of THREADS threads.

var<workgroup> means: array<f32, BOARDS * CHANNELS>;
var<workgroup> units: array<f32, BOARDS * UNITS>;
// Of each board the factors of the channels, then summands.
var<workgroup> gates: array<f32, BOARDS * 2u * CHANNELS>;

// `start`: the block's first number in `excitations`: [channels][units], [units], [units][2 * channels], [2 * channels].
fn find_gates(start: u32, board: u32, lane: u32) {
    workgroupBarrier();
    let squeeze_bias = start + CHANNELS * UNITS;
    let excite = squeeze_bias + UNITS;
    let excite_bias = excite + 2u * CHANNELS * UNITS;
    for (var unit = lane; unit < UNITS; unit += THREADS) {
        var sum = excitations[squeeze_bias + unit];
        for (var channel = 0u; channel < CHANNELS; channel++) {
            sum = fma(means[board * CHANNELS + channel], excitations[start + channel * UNITS + unit], sum);
        }
        units[board * UNITS + unit] = activate(vec4<f32>(sum)).x;
    }
    workgroupBarrier();
    for (var gate = lane; gate < 2u * CHANNELS; gate += THREADS) {
        var sum = excitations[excite_bias + gate];
        for (var unit = 0u; unit < UNITS; unit++) {
            sum = fma(units[board * UNITS + unit], excitations[excite + unit * 2u * CHANNELS + gate], sum);
        }
        gates[board * 2u * CHANNELS + gate] = select(sum, 1.0 / (1.0 + exp(-sum)), gate < CHANNELS);
    }
    workgroupBarrier();
}
