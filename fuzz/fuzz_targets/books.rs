//! Any text as an opening book, EPD or PGN. What is read are openings from which games can begin.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rookery_common::openings::OpeningBook;

fuzz_target!(|text: &str| {
    for book in [OpeningBook::from_epd(text), OpeningBook::from_pgn(text)] {
        for opening in book.iter().flat_map(OpeningBook::openings) {
            opening.start().expect("an opening of a book is legal");
        }
    }
});
