// Sums of matrices become [positions][CHANNELS][8 ranks][2] behind a rank of zeros, as heads read them.

@group(0) @binding(4) var<storage, read> request: array<u32>;

fn put(place: Place, half: u32, output: u32) {
    for (var number = place.lane; number < MATRIX; number += place.lanes) {
        let position = TILE * place.group + number / TILE;
        let channel = (OUTPUTS * place.block + output) * TILE + number % TILE;
        if (position >= request[0] || channel >= CHANNELS) {
            continue;
        }
        let start = 4u * place.subgroup * MATRIX + number;
        let squares = vec4<f32>(
            scratch[start], scratch[start + MATRIX], scratch[start + 2u * MATRIX], scratch[start + 3u * MATRIX],
        );
        let sum = activate(squares + bias[channel / 4u][channel % 4u]);
        outcome[2u + 16u * (position * CHANNELS + channel) + 2u * place.rank + half] = vec4<f16>(sum);
    }
}
