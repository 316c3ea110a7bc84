//! Any bytes as a network of Lc0: an error or a network within bounds. Random bytes are hardly ever a
//! protobuf with layers of the right lengths, so a sound file is also damaged in the places that the input names.

#![no_main]

use std::io::Read as _;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rookery_common::network::{NetworkSpec, PolicyHead, ValueHead};
use rookery_common::unpack::GzipMembers;
use rookery_model::{Weights, lc0};

/// How every file begins: with the magic.
const BEGINNING: &[u8] = &[0x0d, 0xc0, 0x01, 0, 0];

/// A small network's file, unpacked.
static SOUND: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut spec = NetworkSpec::resnet(1, 8);
    spec.policy.head = PolicyHead::Dense { channels: 1 };
    spec.value = ValueHead::Scalar { channels: 1, hidden: 1 };
    let weights = Weights::random(spec, 1).expect("a small network is within bounds");
    let packed = lc0::to_bytes(&weights).expect("Lc0 has such networks");
    let mut bytes = Vec::new();
    let mut unpacked = GzipMembers::new(&packed[..]);
    unpacked.read_to_end(&mut bytes).expect("what was packed unpacks");
    lc0::from_bytes(&bytes).expect("what was written is read");
    bytes
});

fuzz_target!(|input: &[u8]| {
    read(input);
    read(&[BEGINNING, input].concat());
    let mut damaged = SOUND.clone();
    for damage in input.as_chunks::<4>().0 {
        let [place @ .., byte] = *damage;
        let place = u32::from_le_bytes([place[0], place[1], place[2], 0]) as usize;
        let place = place % damaged.len();
        damaged[place] = byte;
    }
    read(&damaged);
});

fn read(bytes: &[u8]) {
    if let Ok(weights) = lc0::from_bytes(bytes) {
        assert_eq!(weights.spec().check(), Ok(()));
    }
}
