// A whole residual tower, a workgroup for each BOARDS positions, each of THREADS threads. The board that a convolution reads is in workgroup memory, the
// stream that blocks add to in registers, 32 bits each number. Boards share the rank of zeros.

@group(0) @binding(0) var<storage, read> request: array<u32>;
// Of the planes' convolution, then of each block's two.
@group(0) @binding(1) var<storage, read> weights: array<Stored>;
@group(0) @binding(2) var<storage, read> bias: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> outcome: array<Stored>;

var<workgroup> board: array<Stored, 2u + BOARDS * 16u * CHANNELS>;

fn load(place: u32) -> Rank {
    return Rank(vec4<f32>(board[place]), vec4<f32>(board[place + 1u]));
}

fn put(place: u32, rank: Rank) {
    board[place] = Stored(rank.left);
    board[place + 1u] = Stored(rank.right);
}

fn put_all(place: u32, sums: Sums) {
    put(place, sums.a);
    put(place + 16u, sums.b);
    put(place + 32u, sums.c);
    put(place + 48u, sums.d);
}

fn emit(place: u32, rank: Rank) {
    outcome[place] = Stored(rank.left);
    outcome[place + 1u] = Stored(rank.right);
}

fn all_activated(sums: Sums) -> Sums {
    return Sums(activated(sums.a), activated(sums.b), activated(sums.c), activated(sums.d));
}

fn plus(x: Rank, y: Rank) -> Rank {
    return Rank(x.left + y.left, x.right + y.right);
}

@compute @workgroup_size(BOARDS * THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let place = thread / THREADS;
    let lane = thread % THREADS;
    let row = lane % 8u;
    let quad = lane / 8u;
    // Where positions have ended, the last is computed once more, as all threads have to meet.
    let position = min(BOARDS * group.x + place, request[0] - 1u);
    let origin = 2u + 16u * CHANNELS * place;
    let own = origin + 64u * quad + 2u * row;
    if (thread < 2u) {
        board[thread] = Stored();
    }
    var stream = biased(bias[quad]);
    convolve_planes(&stream, quad, position, row);
    stream = all_activated(stream);
    put_all(own, stream);
    workgroupBarrier();
    for (var block = 0u; block < BLOCKS; block++) {
        let first = (1u + 2u * block) * QUADS + quad;
        let start = ((BINARY + SCALARS) + 2u * block * CHANNELS) * 9u * QUADS + quad;
        var sums = biased(bias[first]);
        convolve_board(&sums, start, origin, row);
        workgroupBarrier();
        put_all(own, all_activated(sums));
        workgroupBarrier();
        sums = biased(bias[first + QUADS]);
        convolve_board(&sums, start + CHANNELS * 9u * QUADS, origin, row);
        excite(&sums, block, quad, place, lane);
        stream = all_activated(Sums(
            plus(stream.a, sums.a), plus(stream.b, sums.b), plus(stream.c, sums.c), plus(stream.d, sums.d),
        ));
        workgroupBarrier();
        put_all(own, stream);
        workgroupBarrier();
    }
    if (BOARDS * group.x + place >= request[0]) {
        return;
    }
    let out = 2u + 16u * CHANNELS * position + 64u * quad + 2u * row;
    emit(out, stream.a);
    emit(out + 16u, stream.b);
    emit(out + 32u, stream.c);
    emit(out + 48u, stream.d);
}
