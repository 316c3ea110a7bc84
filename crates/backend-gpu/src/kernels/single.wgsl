
// A thread for each position.
@compute @workgroup_size(THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x % 8u;
    let quad = id.x / 8u % QUADS;
    let position = id.x / 8u / QUADS;
    if (position >= request[0]) {
        return;
    }
    var sums = biased(bias[quad]);
    convolve(&sums, quad, position, row);
    put_all(position, quad, row, sums);
}
