// Convolutions of activations: [channels][8 ranks][2] behind a rank of zeros, which stands for the ranks beyond the edge.

// 3 x 3 squares. `start`: the first weight of these outputs, of [inputs][9][QUADS]; `origin`: the first rank of the board.
fn convolve_board(sums: ptr<function, Sums>, start: u32, origin: u32, row: u32) {
    let inside_above = select(1u, 0u, row == 0u);
    let inside_below = select(1u, 0u, row == 7u);
    let here = origin + 2u * row;
    let above = inside_above * (here - 2u);
    let below = inside_below * (here + 2u);
    for (var channel = 0u; channel < INPUTS; channel++) {
        let place = start + channel * 9u * QUADS;
        let step = 16u * channel;
        add_row(sums, place, load(above + inside_above * step));
        add_row(sums, place + 3u * QUADS, load(here + step));
        add_row(sums, place + 6u * QUADS, load(below + inside_below * step));
    }
}

// Single squares, weights being [inputs][QUADS].
fn multiply_board(sums: ptr<function, Sums>, start: u32, origin: u32, row: u32) {
    for (var channel = 0u; channel < INPUTS; channel++) {
        let x = load(origin + 2u * row + 16u * channel);
        add_products(sums, vec4<f32>(weights[start + channel * QUADS]), x);
    }
}
