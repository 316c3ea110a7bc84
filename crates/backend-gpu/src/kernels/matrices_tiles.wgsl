// Sums of matrices become activations for matrices. In a block's last convolution `outcome` is the stream that it adds to.

fn put(place: Place, half: u32, output: u32) {
    let tile = OUTPUTS * place.block + output;
    for (var quad = place.lane; quad < MATRIX; quad += place.lanes) {
        let start = 4u * (place.subgroup * MATRIX + quad);
        var sum = vec4<f32>(scratch[start], scratch[start + 1u], scratch[start + 2u], scratch[start + 3u]);
        sum += bias[tile * TILE / 4u + quad % (TILE / 4u)];
        let square = 8u * place.rank + 4u * half + quad / (MATRIX / 4u);
        let written = ((64u * place.group + square) * OUTCOME_TILES + tile) * MATRIX / 4u + quad % (MATRIX / 4u);
        if (RESIDUAL) {
            sum += vec4<f32>(outcome[written]);
        }
        if (ACTIVATED) {
            sum = activate(sum);
        }
        outcome[written] = vec4<f16>(sum);
    }
}
