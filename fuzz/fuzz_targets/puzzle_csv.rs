//! Any bytes as Lichess's puzzle database: puzzles that can be posed, or rows that are passed over.

#![no_main]

use libfuzzer_sys::fuzz_target;

/// The coordinator's own file: the whole crate would take long to build.
#[allow(dead_code)]
#[path = "../../coordinator/src/commands/puzzles/import.rs"]
mod import;

/// The header that Lichess's file begins with.
const HEADER: &[u8] = b"PuzzleId,FEN,Moves,Rating,RatingDeviation,Popularity,NbPlays,Themes,GameUrl,OpeningTags\n";

fuzz_target!(|rows: &[u8]| {
    let filter = import::Filter {
        themes: Vec::new(),
        rating: import::RatingRange { low: 0, high: u32::MAX },
        count: usize::MAX,
    };
    // A file of a stranger's, and one with an honest header.
    let _ = import::read(rows, &filter);
    if let Ok(imported) = import::read(&[HEADER, rows].concat()[..], &filter) {
        for puzzle in &imported.puzzles {
            puzzle.pose().expect("an imported puzzle can be posed");
        }
    }
});
