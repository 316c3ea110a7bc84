//! The protobuf messages.

#![expect(
    unreachable_pub,
    clippy::enum_variant_names,
    reason = "generated from proto/lc0_net.proto, which keeps Lc0's names"
)]

include!(concat!(env!("OUT_DIR"), "/pblczero.rs"));

/// What says that a message is a network.
pub(super) const MAGIC: u32 = 0x1c0;

/// How every file begins: field 1, a fixed32, is the magic.
pub(super) const BEGINNING: [u8; 5] = {
    let [a, b, c, d] = MAGIC.to_le_bytes();
    [0x0d, a, b, c, d]
};

/// How files with weights as text begin: with their version.
pub(super) const TEXT_BEGINNINGS: [&[u8]; 4] = [b"1\n", b"1\r\n", b"2\n", b"2\r\n"];
