//! Any text as what stands in an address: identifiers, names, numbers, kinds. What is read is
//! written and read again.

#![no_main]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use libfuzzer_sys::fuzz_target;
use rookery_common::ids::{
    AnchorName, ContentHash, GameId, JobId, MatchId, NetworkNumber, RunName,
};
use rookery_common::network::Program;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::networks::{ExportFormat, NetworkName};
use rookery_common::protocol::user_name::{NAME_CHARS, is_user_name, skeleton, user_name};
use rookery_common::rating::AnchorElo;
use rookery_common::text::{is_blank, is_plain};

/// Reads a text, and what was read once more from how it is written.
fn read<T: FromStr + Display + PartialEq + Debug>(text: &str) {
    if let Ok(read) = text.parse::<T>() {
        let again = read.to_string().parse::<T>();
        assert_eq!(again.ok(), Some(read));
    }
}

fuzz_target!(|text: &str| {
    read::<RunName>(text);
    read::<AnchorName>(text);
    read::<AnchorElo>(text);
    read::<ContentHash>(text);
    read::<NetworkName>(text);
    read::<NetworkNumber>(text);
    read::<MatchId>(text);
    read::<GameId>(text);
    read::<JobId>(text);
    read::<Program>(text);
    if let Some(kind) = WorkKind::from_name(text) {
        assert_eq!(kind.name(), text);
    }
    if let Some(format) = ExportFormat::from_name(text) {
        assert_eq!(format.name(), text);
    }
    assert!(!is_user_name(text) || user_name(text).as_deref() == Some(text));
    if let Some(name) = user_name(text) {
        assert!(is_user_name(&name) && is_plain(&name, NAME_CHARS) && !is_blank(&name));
        assert!(!skeleton(&name).is_empty());
    }
});
