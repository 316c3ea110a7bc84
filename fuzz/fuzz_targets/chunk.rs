//! Any bytes as a chunk: an error or games, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rookery_common::chunk::{Caps, read};

fuzz_target!(|bytes: &[u8]| {
    let _ = read(bytes, &Caps::default());
});
