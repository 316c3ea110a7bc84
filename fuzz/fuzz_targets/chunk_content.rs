//! Any bytes as a chunk's content behind an honest frame. What is read as games must be written
//! and read again as the same games.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rookery_common::chunk::{Caps, encode, read};

fuzz_target!(|content: &[u8]| {
    let Ok(framed) = zstd::encode_all(content, 1) else {
        return;
    };
    if let Ok((header, games)) = read(&framed, &Caps::default()) {
        let bytes = encode(&header, &games).expect("games that were read are games");
        assert_eq!(read(&bytes, &Caps::default()), Ok((header, games)));
    }
});
