// The convolution of a position's packed planes, 3 x 3 squares: bits and counts become ranks in registers.

fn byte_of(low: u32, high: u32, row: u32) -> u32 {
    return (select(low, high, row >= 4u) >> (8u * (row & 3u))) & 255u;
}

fn unpacked(byte: u32) -> Rank {
    let bits = vec4<u32>(byte);
    let one = vec4<u32>(1u);
    return Rank(
        vec4<f32>((bits >> vec4<u32>(0u, 1u, 2u, 3u)) & one),
        vec4<f32>((bits >> vec4<u32>(4u, 5u, 6u, 7u)) & one),
    );
}

// `start`: the first weight of these outputs; weights are [planes][9][QUADS].
fn convolve_planes(sums: ptr<function, Sums>, start: u32, position: u32, row: u32) {
    for (var plane = 0u; plane < BINARY; plane++) {
        let word = HEADER + 2u * (position * BINARY + plane);
        let low = request[word];
        let high = request[word + 1u];
        if ((low | high) == 0u) {
            continue;
        }
        let place = start + plane * 9u * QUADS;
        let above = select(byte_of(low, high, row - 1u), 0u, row == 0u);
        let below = select(byte_of(low, high, row + 1u), 0u, row == 7u);
        add_row(sums, place, unpacked(above));
        add_row(sums, place + 3u * QUADS, unpacked(byte_of(low, high, row)));
        add_row(sums, place + 6u * QUADS, unpacked(below));
    }
    for (var plane = 0u; plane < SCALARS; plane++) {
        let count = bitcast<f32>(request[request[2] + position * SCALARS + plane]);
        let place = start + (BINARY + plane) * 9u * QUADS;
        let above = vec4<f32>(select(count, 0.0, row == 0u));
        let below = vec4<f32>(select(count, 0.0, row == 7u));
        add_row(sums, place, Rank(above, above));
        add_row(sums, place + 3u * QUADS, Rank(vec4<f32>(count), vec4<f32>(count)));
        add_row(sums, place + 6u * QUADS, Rank(below, below));
    }
}
