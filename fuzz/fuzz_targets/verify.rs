//! Any games under the indices and seeds of a lease, against that lease: an error, or exactly
//! those games, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rookery_common::chunk::{Caps, GameKind, Lease, encode, read, verify};
use rookery_common::ids::{ContentHash, Seed};
use rookery_common::params::SelfPlayParams;
use rookery_common::protocol::jobs::Work;

fuzz_target!(|content: &[u8]| {
    let Ok(framed) = zstd::encode_all(content, 1) else {
        return;
    };
    let caps = Caps::default();
    let Ok((header, mut games)) = read(&framed, &caps) else {
        return;
    };
    let seed = Seed(7);
    for (index, game) in (0..).zip(&mut games) {
        game.index = index;
        game.seed = seed.of_game(index);
        // Nobody leased openings.
        game.start.moves.clear();
        game.start.fen = None;
    }
    let Ok(bytes) = encode(&header, &games) else {
        return;
    };
    let work = Work::SelfPlay {
        network: header.networks.first().copied().unwrap_or(ContentHash::of(b"")),
        games: games.len() as u32,
        openings: Vec::new(),
        params: SelfPlayParams::default(),
    };
    let lease = Lease { run: &header.run, job: header.job, seed, work: &work, tables: None };
    if let Ok(verified) = verify(&bytes, &caps, &lease) {
        assert_eq!(verified.games.len(), games.len());
        assert!(games.iter().all(|game| matches!(game.kind, GameKind::SelfPlay { .. })));
    }
});
