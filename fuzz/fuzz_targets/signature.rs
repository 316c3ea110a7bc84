//! Any text as a key, as a signature by a key, and as a history of keys.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rookery_common::signing::{RunKey, RunKeyInfo, Signature, SigningKey, successor};

const KEY: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";

fuzz_target!(|text: &str| {
    let _ = SigningKey::from_text(text);
    let (Ok(key), Ok(run)) = (KEY.parse::<RunKey>(), "main".parse()) else {
        return;
    };
    assert!(key.verify(b"test", &Signature(text.to_owned())).is_err() || text.contains("trusted comment: "));
    if let Ok(other) = text.parse::<RunKey>() {
        let _ = other.verify(b"test", &Signature(text.to_owned()));
    }
    if let Ok(history) = serde_json::from_str::<Vec<RunKeyInfo>>(text) {
        let _ = successor(&key, &run, &history);
    }
});
