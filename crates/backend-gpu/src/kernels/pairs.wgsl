
// 3 x 3 squares of two positions, for which a weight is loaded once.
fn convolve_pair(
    sums: ptr<function, Sums>, others: ptr<function, Sums>, start: u32, position: u32, other: u32, row: u32,
) {
    let inside_above = select(1u, 0u, row == 0u);
    let inside_below = select(1u, 0u, row == 7u);
    let here = 2u + 16u * SOURCE * position + 2u * row;
    let away = 16u * SOURCE * (other - position);
    let above = inside_above * (here - 2u);
    let below = inside_below * (here + 2u);
    for (var channel = 0u; channel < INPUTS; channel++) {
        let place = start + channel * 9u * QUADS;
        let step = 16u * channel;
        let first = taps(place);
        add_taps(sums, first, load(above + inside_above * step));
        add_taps(others, first, load(above + inside_above * (step + away)));
        let second = taps(place + 3u * QUADS);
        add_taps(sums, second, load(here + step));
        add_taps(others, second, load(here + step + away));
        let third = taps(place + 6u * QUADS);
        add_taps(sums, third, load(below + inside_below * step));
        add_taps(others, third, load(below + inside_below * (step + away)));
    }
}

// A thread for each pair of positions.
@compute @workgroup_size(THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x % 8u;
    let quad = id.x / 8u % QUADS;
    let position = 2u * (id.x / 8u / QUADS);
    if (position >= request[0]) {
        return;
    }
    // The last position of an odd batch is its own pair.
    let other = min(position + 1u, request[0] - 1u);
    var sums = biased(bias[quad]);
    var others = sums;
    convolve_pair(&sums, &others, quad, position, other, row);
    put_all(position, quad, row, sums);
    if (other > position) {
        put_all(other, quad, row, others);
    }
}
