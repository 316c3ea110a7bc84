// A convolution of a whole batch: a thread for each position, or pair of positions, four output channels and rank.

@group(0) @binding(0) var<storage, read> request: array<u32>;
@group(0) @binding(1) var<storage, read> weights: array<Stored>;
@group(0) @binding(2) var<storage, read> bias: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> outcome: array<Stored>;

// In a block's last convolution `outcome` is the stream that it adds to.
fn put(place: u32, sum: Rank) {
    var rank = sum;
    if (RESIDUAL) {
        rank.left += vec4<f32>(outcome[place]);
        rank.right += vec4<f32>(outcome[place + 1u]);
    }
    if (ACTIVATED) {
        rank = activated(rank);
    }
    outcome[place] = Stored(rank.left);
    outcome[place + 1u] = Stored(rank.right);
}

fn put_all(position: u32, quad: u32, row: u32, sums: Sums) {
    let place = 2u + 64u * (position * QUADS + quad) + 2u * row;
    put(place, sums.a);
    put(place + 16u, sums.b);
    put(place + 32u, sums.c);
    put(place + 48u, sums.d);
}
