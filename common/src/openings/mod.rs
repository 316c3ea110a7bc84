//! Books from which matches begin, so that deterministic players differ, and self-play games, so
//! that they see more of chess.
//!
//! The built-in book is derived, not copied: every line of two to four plies that can be made of
//! the sensible moves listed there and that leaves neither side ahead in material. A file of positions or games
//! (EPD, PGN, CSV) can take its place. A match goes through the whole book in an order that follows from its
//! seed before it begins again in another order.

mod file;
mod own;
mod table;

use std::path::Path;

use crate::ids::{ContentHash, Seed};
use crate::protocol::jobs::Opening;

/// A list of openings, never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpeningBook {
    openings: Vec<Opening>,
    hash: ContentHash,
}

/// A text that is not a book.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BookError {
    /// A line cannot be read or played.
    #[error("line {line}: {reason}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// It holds no opening.
    #[error("it holds no opening")]
    Empty,
    /// None of its games can be used.
    #[error("none of its games can be used: {0}")]
    PassedOver(String),
    /// It cannot be unpacked, or is something else.
    #[error("{0}")]
    File(String),
}

/// A book as a file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookFile {
    /// The book.
    pub book: OpeningBook,
    /// Why games of the file were passed over, a line for each reason, for people.
    pub passed_over: Vec<String>,
}

impl OpeningBook {
    /// The built-in book.
    pub fn built_in() -> Self {
        Self::hashed(own::lines())
    }

    /// A book of EPD lines, a position each.
    ///
    /// # Errors
    ///
    /// [`BookError`] naming the first line that is not legal.
    pub fn from_epd(text: &str) -> Result<Self, BookError> {
        Ok(file::from_epd(text)?.book)
    }

    /// A book as it stands in a file, plain or compressed by gzip or zstd: positions (EPD), games (PGN), or a table
    /// (CSV, TSV) with a column of either. Its content says which; the name counts for what could be both. Names in
    /// other alphabets than UTF-8 do not matter.
    ///
    /// # Errors
    ///
    /// [`BookError`] naming the first line that is no legal position, or why no game can be used.
    pub fn from_file(name: &Path, bytes: &[u8]) -> Result<BookFile, BookError> {
        file::read(name, bytes)
    }

    /// A book of PGN games, an opening each: their first 40 plies. Games that cannot be read are left out.
    ///
    /// # Errors
    ///
    /// [`BookError`] if no game can be used.
    pub fn from_pgn(text: &str) -> Result<Self, BookError> {
        Ok(file::from_pgn(text)?.book)
    }

    fn hashed(openings: Vec<Opening>) -> Self {
        let hash = ContentHash::of(lines(&openings).as_bytes());
        Self { openings, hash }
    }

    /// The openings, at least one.
    pub fn openings(&self) -> &[Opening] {
        &self.openings
    }

    /// The SHA-256 of [`to_lines`](Self::to_lines): equal books have equal hashes.
    pub const fn hash(&self) -> ContentHash {
        self.hash
    }

    /// The book as text: of each opening a line with its FEN (empty for the standard start), a tab, and
    /// its moves in UCI. [`from_lines`](Self::from_lines) reads it back.
    ///
    /// ```
    /// use rookery_common::openings::OpeningBook;
    ///
    /// let book = OpeningBook::built_in();
    /// assert_eq!(OpeningBook::from_lines(&book.to_lines()).unwrap(), book);
    /// ```
    pub fn to_lines(&self) -> String {
        lines(&self.openings)
    }

    /// Reads a text of [`to_lines`](Self::to_lines). Positions and moves are taken as they stand.
    ///
    /// # Errors
    ///
    /// [`BookError::Line`] for a line without a tab, [`BookError::Empty`] if there is no line.
    pub fn from_lines(text: &str) -> Result<Self, BookError> {
        let opening = |(index, line): (usize, &str)| {
            let (fen, moves) = line.split_once('\t').ok_or_else(|| BookError::Line {
                line: index + 1,
                reason: "it has no tab".to_owned(),
            })?;
            Ok(Opening {
                fen: (!fen.is_empty()).then(|| fen.to_owned()),
                moves: moves.split_whitespace().map(str::to_owned).collect(),
            })
        };
        let openings = text.lines().enumerate().map(opening);
        let openings: Vec<Opening> = openings.collect::<Result<_, BookError>>()?;
        if openings.is_empty() {
            return Err(BookError::Empty);
        }
        Ok(Self::hashed(openings))
    }

    /// The opening of a match's pair, from 0.
    pub fn of_pair(&self, seed: Seed, pair: u32) -> &Opening {
        let size = self.openings.len();
        let (round, place) = (pair / size as u32, pair as usize % size);
        &self.openings[order(size, seed.of_game(round))[place]]
    }

    /// The openings of `count` pairs from `first` on, each as [`of_pair`](Self::of_pair) gives it; an order is
    /// made once for all pairs that lie in it.
    pub fn of_pairs(&self, seed: Seed, first: u32, count: u32) -> Vec<&Opening> {
        let size = self.openings.len();
        let mut made: Option<(u32, Vec<usize>)> = None;
        let mut found = Vec::with_capacity(count as usize);
        for pair in first..first.saturating_add(count) {
            let (round, place) = (pair / size as u32, pair as usize % size);
            let (_, order) = match made.take() {
                Some(known) if known.0 == round => made.insert(known),
                _ => made.insert((round, order(size, seed.of_game(round)))),
            };
            found.push(&self.openings[order[place]]);
        }
        found
    }

    /// Openings for the first of a job's self-play games: for `share` of them, the fraction of one
    /// that is over decided by the seed, each drawn by itself.
    pub fn draw(&self, share: f32, games: u32, seed: Seed) -> Vec<Opening> {
        let wanted = f64::from(share) * f64::from(games);
        // Games have the seeds from 0 on.
        let chance = seed.of_game(u32::MAX).0 as f64 / u64::MAX as f64;
        let count = ((wanted + chance).floor() as u32).min(games);
        let size = self.openings.len() as u64;
        let line = |game| &self.openings[(seed.of_game(game).0 % size) as usize];
        (0..count).map(|game| line(game).clone()).collect()
    }
}

/// The text of [`OpeningBook::to_lines`].
fn lines(openings: &[Opening]) -> String {
    let mut text = String::new();
    for opening in openings {
        text.push_str(opening.fen.as_deref().unwrap_or_default());
        text.push('\t');
        text.push_str(&opening.moves.join(" "));
        text.push('\n');
    }
    text
}

/// A reproducible order of 0 to `count` - 1 (Fisher and Yates).
fn order(count: usize, seed: Seed) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for i in (1..count).rev() {
        let draw = seed.of_game(i as u32).0 % (i as u64 + 1);
        order.swap(i, draw as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_built_in_book_is_large_legal_and_without_repetition() {
        let book = OpeningBook::built_in();
        assert!(book.openings().len() >= 500, "{}", book.openings().len());
        let mut keys = HashSet::new();
        for opening in book.openings() {
            let game = opening.start().unwrap().history().unwrap();
            assert!(keys.insert(game.repetition_key()), "{opening:?}");
            assert_eq!(game.end(), None);
        }
    }

    #[test]
    fn a_share_of_self_play_games_begins_in_the_book() {
        let book = OpeningBook::built_in();
        assert_eq!(book.draw(0.0, 32, Seed(1)), []);
        assert_eq!(book.draw(1.0, 32, Seed(1)).len(), 32);
        let counts: Vec<usize> = (0..1000)
            .map(|seed| book.draw(0.3, 4, Seed(seed)).len())
            .collect();
        assert!(
            counts.iter().all(|count| (1..=2).contains(count)),
            "1.2 of 4"
        );
        let sum: usize = counts.iter().sum();
        assert!((1150..1250).contains(&sum), "{sum}");
        let lines = book.draw(1.0, 1000, Seed(1));
        let distinct: HashSet<_> = lines.iter().map(|line| &line.moves).collect();
        assert!(distinct.len() > 300, "{}", distinct.len());
        assert_eq!(lines, book.draw(1.0, 1000, Seed(1)));
        assert_ne!(lines, book.draw(1.0, 1000, Seed(2)));
    }

    #[test]
    fn a_match_goes_through_the_whole_book_in_an_order_of_its_own() {
        let text = "4k3/8/8/8/8/8/4P3/4K3 w - -\n4k3/8/8/8/8/8/3P4/4K3 w - -\n\
                    4k3/8/8/8/8/8/2P5/4K3 w - -\n";
        let book = OpeningBook::from_epd(text).unwrap();
        let first: HashSet<_> = (0..3)
            .map(|pair| book.of_pair(Seed(1), pair).fen.clone())
            .collect();
        assert_eq!(first.len(), 3);
        let of = |seed| {
            (0..30)
                .map(|pair| book.of_pair(Seed(seed), pair))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert_eq!(OpeningBook::from_pgn("*"), Err(BookError::Empty));
    }

    /// Coordinators keep leases as a book's hash and a seed, and find the openings again by them.
    #[test]
    fn the_same_seed_gives_the_same_openings_in_every_version() {
        let text: String = (0..100).map(|n| format!("\t{n}\n")).collect();
        let book = OpeningBook::from_lines(&text).unwrap();
        assert_eq!(book.to_lines(), text);
        let drawn = |openings: &[&Opening]| {
            let moves = openings.iter().map(|opening| opening.moves.join(" "));
            moves.collect::<Vec<_>>().join(" ")
        };
        let (match_seed, first, job_seed) = (Seed(7), 198, Seed(9));
        let pairs = book.of_pairs(match_seed, first, 300);
        for (pair, opening) in (first..).zip(&pairs) {
            assert_eq!(*opening, book.of_pair(match_seed, pair));
        }
        assert_eq!(drawn(&pairs[..5]), "73 77 44 32 87");
        let games = book.draw(1.0, 5, job_seed);
        assert_eq!(drawn(&games.iter().collect::<Vec<_>>()), "28 6 38 84 1");
    }

    #[test]
    fn a_book_is_read_back_from_its_lines_and_known_by_its_hash() {
        let epd = OpeningBook::from_epd("4k3/8/8/8/8/8/4P3/4K3 w - -\n").unwrap();
        assert_eq!(OpeningBook::from_lines(&epd.to_lines()), Ok(epd.clone()));
        assert_ne!(epd.hash(), OpeningBook::built_in().hash());
        assert!(OpeningBook::from_lines("no tab\n").is_err());
        assert_eq!(OpeningBook::from_lines(""), Err(BookError::Empty));
    }
}
