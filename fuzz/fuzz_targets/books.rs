//! Any text as an opening book, EPD, PGN or a table. What is read are openings from which games can begin.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use rookery_common::openings::OpeningBook;

fuzz_target!(|text: &str| {
    let file = OpeningBook::from_file(Path::new("book"), text.as_bytes());
    let file = file.map(|read| read.book);
    for book in [OpeningBook::from_epd(text), OpeningBook::from_pgn(text), file] {
        for opening in book.iter().flat_map(OpeningBook::openings) {
            opening.start().expect("an opening of a book is legal");
        }
    }
});
