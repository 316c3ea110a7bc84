// Ranks of a board in registers: a thread computes four output channels on the eight squares of one rank.

struct Rank {
    left: vec4<f32>,
    right: vec4<f32>,
}

// Sums of four channels, a rank each.
struct Sums {
    a: Rank,
    b: Rank,
    c: Rank,
    d: Rank,
}

fn biased(bias: vec4<f32>) -> Sums {
    return Sums(
        Rank(vec4<f32>(bias.x), vec4<f32>(bias.x)),
        Rank(vec4<f32>(bias.y), vec4<f32>(bias.y)),
        Rank(vec4<f32>(bias.z), vec4<f32>(bias.z)),
        Rank(vec4<f32>(bias.w), vec4<f32>(bias.w)),
    );
}

// GPUs do this in one instruction. Asked for by name, fma is a call on processors without it.
fn multiply_add(weight: f32, x: Rank, sum: Rank) -> Rank {
    return Rank(weight * x.left + sum.left, weight * x.right + sum.right);
}

fn add_products(sums: ptr<function, Sums>, weight: vec4<f32>, x: Rank) {
    (*sums).a = multiply_add(weight.x, x, (*sums).a);
    (*sums).b = multiply_add(weight.y, x, (*sums).b);
    (*sums).c = multiply_add(weight.z, x, (*sums).c);
    (*sums).d = multiply_add(weight.w, x, (*sums).d);
}

// Three taps of a kernel's row.
struct Taps {
    west: vec4<f32>,
    here: vec4<f32>,
    east: vec4<f32>,
}

fn taps(place: u32) -> Taps {
    return Taps(
        vec4<f32>(weights[place]), vec4<f32>(weights[place + QUADS]), vec4<f32>(weights[place + 2u * QUADS]),
    );
}

fn add_taps(sums: ptr<function, Sums>, row: Taps, x: Rank) {
    let west = Rank(vec4<f32>(0.0, x.left.xyz), vec4<f32>(x.left.w, x.right.xyz));
    let east = Rank(vec4<f32>(x.left.yzw, x.right.x), vec4<f32>(x.right.yzw, 0.0));
    add_products(sums, row.west, west);
    add_products(sums, row.here, x);
    add_products(sums, row.east, east);
}

// The taps of a kernel's row, whose weights begin at `place`.
fn add_row(sums: ptr<function, Sums>, place: u32, x: Rank) {
    add_taps(sums, taps(place), x);
}

fn activated(x: Rank) -> Rank {
    return Rank(activate(x.left), activate(x.right));
}
