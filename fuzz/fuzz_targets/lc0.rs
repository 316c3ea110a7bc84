//! Any bytes as a network file of Lc0: an error, or a network that can be written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rookery_nn::lc0;

fuzz_target!(|bytes: &[u8]| {
    let Ok(weights) = lc0::from_bytes(bytes) else {
        return;
    };
    assert_eq!(weights.spec().check(), Ok(()));
    if let Ok(written) = lc0::to_bytes(&weights) {
        assert!(lc0::from_bytes(&written).is_ok());
    }
});
