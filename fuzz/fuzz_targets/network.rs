//! Any bytes as a network file: an error or a specification within bounds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rookery_common::network::verify;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(network) = verify(bytes) {
        assert_eq!(network.spec.check(), Ok(()));
    }
});
