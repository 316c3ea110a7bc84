//! The book from which matches begin, so that deterministic players differ.
//!
//! The built-in book is derived, not copied: every line of two to four plies that can be made of
//! the sensible moves listed here and that leaves neither side ahead in material. An operator's
//! EPD or PGN file can take its place. A match goes through the whole book in an order that
//! follows from its seed before it begins again in another order.

mod file;
mod own;

use std::path::Path;

use anyhow::Context as _;
use rookery_common::ids::Seed;
use rookery_common::protocol::jobs::Opening;

use crate::random;

/// A list of openings, never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpeningBook(Vec<Opening>);

impl OpeningBook {
    /// The built-in book.
    pub fn built_in() -> Self {
        Self(own::lines())
    }

    /// The book in an EPD (`.epd`, a position a line) or PGN (`.pgn`, a game's moves) file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, holds no opening, or one that is not legal; the line is named.
    pub fn from_file(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the opening book {}", path.display()))?;
        let pgn = path
            .extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("pgn"));
        let openings = if pgn {
            file::from_pgn(&text)
        } else {
            file::from_epd(&text)
        };
        let openings =
            openings.with_context(|| format!("in the opening book {}", path.display()))?;
        anyhow::ensure!(
            !openings.is_empty(),
            "the opening book {} is empty",
            path.display()
        );
        Ok(Self(openings))
    }

    /// How many openings there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// A book is never empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The openings of a match's pairs.
    pub fn of_pairs(&self, seed: Seed, pairs: &[u32]) -> Vec<Opening> {
        let size = self.0.len() as u32;
        let mut orders = std::collections::HashMap::new();
        pairs
            .iter()
            .map(|pair| {
                let order = orders
                    .entry(pair / size)
                    .or_insert_with(|| random::shuffled(size, seed.of_game(pair / size)));
                self.0[order[(pair % size) as usize] as usize].clone()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_built_in_book_is_large_legal_and_without_repetition() {
        let book = OpeningBook::built_in();
        assert!(book.len() >= 500, "{}", book.len());
        let lines: HashSet<_> = book.0.iter().map(|opening| opening.moves.clone()).collect();
        assert_eq!(lines.len(), book.len());
        let mut positions = HashSet::new();
        for opening in &book.0 {
            let start = opening.start().unwrap();
            let game = start.history().unwrap();
            assert!(game.end().is_none());
            assert!(
                positions.insert(game.repetition_key()),
                "{:?} transposes",
                opening.moves
            );
        }
    }

    #[test]
    fn a_match_sees_the_whole_book_before_it_repeats() {
        let book = OpeningBook::built_in();
        let size = book.len() as u32;
        let first: HashSet<_> = book
            .of_pairs(Seed(3), &(0..size).collect::<Vec<_>>())
            .into_iter()
            .map(|opening| opening.moves)
            .collect();
        assert_eq!(first.len(), book.len());
        assert_eq!(book.of_pairs(Seed(3), &[7]), book.of_pairs(Seed(3), &[7]));
        assert_ne!(
            book.of_pairs(Seed(3), &[0, 1, 2, 3]),
            book.of_pairs(Seed(4), &[0, 1, 2, 3]),
        );
    }
}
