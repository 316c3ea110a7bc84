//! Any bytes as Lichess's puzzle database: puzzles that can be posed, or rows that are passed over.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rookery_common::puzzle::table::{self, Filter, RatingRange};

/// The header that Lichess's file begins with.
const HEADER: &[u8] = b"PuzzleId,FEN,Moves,Rating,RatingDeviation,Popularity,NbPlays,Themes,GameUrl,OpeningTags\n";

fuzz_target!(|rows: &[u8]| {
    let filter = Filter {
        themes: Vec::new(),
        rating: RatingRange { low: 0, high: u32::MAX },
        count: usize::MAX,
    };
    // A file of a stranger's, and one with an honest header.
    let _ = table::read(rows, &filter);
    if let Ok(imported) = table::read(&[HEADER, rows].concat()[..], &filter) {
        for puzzle in &imported.puzzles {
            puzzle.pose().expect("an imported puzzle can be posed");
        }
    }
});
