// Packed planes as activations for matrices. Positions behind the last are zeros.

@group(0) @binding(0) var<storage, read> request: array<u32>;
@group(0) @binding(1) var<storage, read_write> outcome: array<vec4<f16>>;

fn number(position: u32, plane: u32, square: u32) -> f16 {
    if (plane < BINARY) {
        let word = request[HEADER + 2u * (position * BINARY + plane) + square / 32u];
        return f16((word >> (square % 32u)) & 1u);
    }
    if (plane < BINARY + SCALARS) {
        return f16(bitcast<f32>(request[request[2] + position * SCALARS + plane - BINARY]));
    }
    return 0.0h;
}

// A thread for four planes of a square.
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    // The grid has these threads exactly.
    let quad = workgroup.x * THREADS + lane;
    let plane = quad / (TILE * TILE / 4u) % TILES * TILE + quad % (TILE / 4u) * 4u;
    let square = quad / (TILE * TILE / 4u * TILES);
    let position = TILE * workgroup.y + quad / (TILE / 4u) % TILE;
    var numbers = vec4<f16>();
    if (position < request[0]) {
        numbers = vec4<f16>(
            number(position, plane, square),
            number(position, plane + 1u, square),
            number(position, plane + 2u, square),
            number(position, plane + 3u, square),
        );
    }
    outcome[workgroup.y * 16u * TILES * TILE * TILE + quad] = numbers;
}
