// Where a convolution of a whole batch reads: activations of SOURCE channels.

@group(0) @binding(4) var<storage, read> source: array<Stored>;

fn load(place: u32) -> Rank {
    return Rank(vec4<f32>(source[place]), vec4<f32>(source[place + 1u]));
}

fn convolve(sums: ptr<function, Sums>, start: u32, position: u32, row: u32) {
    let origin = 2u + 16u * SOURCE * position;
    if (KERNEL == 3u) {
        convolve_board(sums, start, origin, row);
    } else {
        multiply_board(sums, start, origin, row);
    }
}
