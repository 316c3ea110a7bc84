//! Lichess's puzzle database: CSV lines in, puzzles out.
//!
//! The file is read as a stream, line by line, each line under a cap, so that neither its size nor
//! an endless line costs memory. Columns are found by the names in the header, or stand as Lichess
//! has them where there is none; commas, semicolons or tabs are between them. Every puzzle that
//! passes the filter is posed once; a row that cannot be used is counted under its reason and never
//! ends the import.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::io::{BufRead, Read as _};
use std::str::FromStr;

use super::{Puzzle, PuzzleError};
use crate::chess::StartError;
use crate::text::is_plain;

/// Longest line that is read, in bytes; Lichess's longest are below 1,000.
const LINE_CAP: usize = 16 << 10;

/// Longest identifier of a puzzle.
const ID_CAP: usize = 32;

/// Most themes of a puzzle, and their longest name; Lichess has fewer than ten, of up to 20 characters.
const THEMES_CAP: usize = 32;
const THEME_CAP: usize = 40;

/// What a text may begin with, before its first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The names of the columns that matter.
const NAMES: [&str; 5] = ["PuzzleId", "FEN", "Moves", "Rating", "Themes"];

/// Most moves of a puzzle; Lichess's longest have 40.
const MOVES_CAP: usize = 100;

/// Which puzzles are taken.
#[derive(Debug, Clone)]
pub struct Filter {
    /// A puzzle needs one of these themes; none given means any.
    pub themes: Vec<String>,
    /// Allowed ratings.
    pub rating: RatingRange,
    /// Most puzzles.
    pub count: usize,
}

/// A table that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// Reading failed.
    #[error("the puzzle file cannot be read")]
    Read(#[from] std::io::Error),
    /// There is no row.
    #[error("the file is empty or its first line is no row of a table")]
    Empty,
    /// The first line has no columns.
    #[error("the first line is no text of a table")]
    NotText,
    /// The header lacks a column.
    #[error(
        "RK-0225: the header has no column {0}; expected Lichess's PuzzleId,FEN,Moves,Rating,…,Themes,… in the \
         first line, or rows with these columns in this order"
    )]
    Column(&'static str),
}

/// Ratings from `low` to `high`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RatingRange {
    /// Lowest.
    pub low: u32,
    /// Highest.
    pub high: u32,
}

impl FromStr for RatingRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("{text:?} is not a rating range; write LOW-HIGH, such as 600-1500");
        let (low, high) = text.split_once('-').ok_or_else(refuse)?;
        let number = |part: &str| part.trim().parse().map_err(|_| refuse());
        let range = Self {
            low: number(low)?,
            high: number(high)?,
        };
        if range.low > range.high {
            return Err(format!("{text:?} begins above its end"));
        }
        Ok(range)
    }
}

/// Why a row was not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skipped {
    /// The line is longer than the cap.
    TooLong,
    /// The line is no UTF-8 text.
    NotText,
    /// A column is missing.
    MissingColumn,
    /// The identifier is empty, too long, came before, or has characters that cannot be shown.
    BadId,
    /// There are too many themes, or one is too long or has characters that cannot be shown.
    BadThemes,
    /// The rating is not a number.
    BadRating,
    /// The FEN cannot be read, or describes an illegal position.
    BadPosition,
    /// A move is not legal, or there are too many.
    BadMoves,
    /// There is nothing to solve.
    NoSolution,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the line is too long",
            Self::NotText => "the line is not UTF-8",
            Self::MissingColumn => "a column is missing",
            Self::BadId => "the PuzzleId is empty, too long, repeated or no plain text",
            Self::BadThemes => "the Themes are too many, too long or no plain text",
            Self::BadRating => "the Rating is not a number",
            Self::BadPosition => "the FEN is not a legal position",
            Self::BadMoves => "a move of Moves is not legal",
            Self::NoSolution => "Moves has no solution",
        })
    }
}

/// What came of an import.
#[derive(Debug, Default)]
pub struct Imported {
    /// The puzzles, in the order of the file.
    pub puzzles: Vec<Puzzle>,
    /// Rows read, the header not counted.
    pub rows: u64,
    /// Good rows that the filter left out.
    pub filtered: u64,
    /// Bad rows by reason, with the first line on which each was found.
    pub skipped: BTreeMap<Skipped, (u64, u64)>,
}

/// Reads puzzles until the filter's count is reached or the file ends.
///
/// # Errors
///
/// [`TableError`] if the file cannot be read, or its header lacks a column.
pub fn read(mut input: impl BufRead, filter: &Filter) -> Result<Imported, TableError> {
    let mut line = Vec::new();
    if read_line(&mut input, &mut line)? != Line::Whole {
        return Err(TableError::Empty);
    }
    if line.starts_with(BYTE_ORDER_MARK) {
        line.drain(..BYTE_ORDER_MARK.len());
    }
    let columns = Columns::of(&line)?;
    let mut imported = Imported::default();
    let mut ids = HashSet::new();
    let mut number = 1;
    if !columns.header {
        imported.add(number, columns.puzzle(&line, filter, &mut ids));
    }
    while imported.puzzles.len() < filter.count {
        let read = read_line(&mut input, &mut line)?;
        number += 1;
        let parsed = match read {
            Line::End => break,
            Line::TooLong => Err(Skipped::TooLong),
            Line::Whole if line.trim_ascii().is_empty() => continue,
            Line::Whole => columns.puzzle(&line, filter, &mut ids),
        };
        imported.add(number, parsed);
    }
    Ok(imported)
}

impl Imported {
    fn add(&mut self, line: u64, row: Result<Option<Puzzle>, Skipped>) {
        self.rows += 1;
        match row {
            Ok(Some(puzzle)) => self.puzzles.push(puzzle),
            Ok(None) => self.filtered += 1,
            Err(reason) => {
                self.skipped.entry(reason).or_insert((0, line)).0 += 1;
            }
        }
    }
}

/// What was read of a line.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// All of it.
    Whole,
    /// It exceeds the cap and was passed over.
    TooLong,
    /// Nothing: the file has ended.
    End,
}

fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<Line> {
    line.clear();
    let cap = LINE_CAP as u64;
    let read = input.by_ref().take(cap).read_until(b'\n', line);
    match read? {
        0 => Ok(Line::End),
        LINE_CAP if line.last() != Some(&b'\n') => {
            input.skip_until(b'\n')?;
            Ok(Line::TooLong)
        }
        _ => Ok(Line::Whole),
    }
}

/// Where the columns are that matter, and what is between them.
struct Columns {
    delimiter: u8,
    /// Whether the first line has their names.
    header: bool,
    id: usize,
    fen: usize,
    moves: usize,
    rating: usize,
    themes: usize,
}

impl Columns {
    /// The columns of a file with this first line: its header, or a row with columns as Lichess has them.
    fn of(line: &[u8]) -> Result<Self, TableError> {
        let line = line.trim_ascii_start();
        let mut widest: Option<csv::StringRecord> = None;
        for delimiter in *b",;\t" {
            let row = record(line, delimiter).ok_or(TableError::NotText)?;
            if let Some(columns) = Self::named(&row, delimiter).or(Self::unnamed(&row, delimiter)) {
                return Ok(columns);
            }
            if widest
                .as_ref()
                .is_none_or(|widest| widest.len() < row.len())
            {
                widest = Some(row);
            }
        }
        let row = widest.unwrap_or_default();
        let missing = NAMES
            .iter()
            .find(|name| !row.iter().any(|cell| cell == **name));
        Err(TableError::Column(missing.unwrap_or(&NAMES[0])))
    }

    fn named(row: &csv::StringRecord, delimiter: u8) -> Option<Self> {
        let find = |name: &str| row.iter().position(|cell| cell.trim() == name);
        let [id, fen, moves, rating, themes] = NAMES.map(find);
        Some(Self {
            delimiter,
            header: true,
            id: id?,
            fen: fen?,
            moves: moves?,
            rating: rating?,
            themes: themes?,
        })
    }

    fn unnamed(row: &csv::StringRecord, delimiter: u8) -> Option<Self> {
        let columns = Self {
            delimiter,
            header: false,
            id: 0,
            fen: 1,
            moves: 2,
            rating: 3,
            themes: 7,
        };
        let cell = |at: usize| row.get(at).map(str::trim);
        let is_rating = cell(columns.rating)?.parse::<u32>().is_ok();
        let is_board = cell(columns.fen)?.matches('/').count() == 7;
        (is_rating && is_board && row.len() > columns.themes).then_some(columns)
    }

    /// The row's puzzle, or none if the filter leaves it out.
    fn puzzle(
        &self,
        line: &[u8],
        filter: &Filter,
        ids: &mut HashSet<String>,
    ) -> Result<Option<Puzzle>, Skipped> {
        let row = record(line, self.delimiter).ok_or(Skipped::NotText)?;
        let column = |at: usize| row.get(at).map(str::trim).ok_or(Skipped::MissingColumn);
        let rating = column(self.rating)?
            .parse()
            .map_err(|_| Skipped::BadRating)?;
        let themes: Vec<String> = column(self.themes)?
            .split_whitespace()
            .map(Into::into)
            .collect();
        let moves: Vec<String> = column(self.moves)?
            .split_whitespace()
            .map(Into::into)
            .collect();
        let (id, fen) = (column(self.id)?, column(self.fen)?);
        if !filter.takes(rating, &themes) {
            return Ok(None);
        }
        if id.is_empty() || id.len() > ID_CAP || !is_plain(id, ID_CAP) || !ids.insert(id.to_owned())
        {
            return Err(Skipped::BadId);
        }
        if themes.len() > THEMES_CAP || !themes.iter().all(|theme| is_plain(theme, THEME_CAP)) {
            return Err(Skipped::BadThemes);
        }
        if moves.len() > MOVES_CAP {
            return Err(Skipped::BadMoves);
        }
        let (id, fen) = (id.to_owned(), fen.to_owned());
        let puzzle = Puzzle {
            id,
            fen,
            moves,
            setup: 1,
            rating,
            themes,
        };
        puzzle.pose().map_err(|error| why(&error))?;
        Ok(Some(puzzle))
    }
}

fn record(line: &[u8], delimiter: u8) -> Option<csv::StringRecord> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .buffer_capacity(line.len().max(1))
        .from_reader(line);
    let mut record = csv::StringRecord::new();
    reader.read_record(&mut record).ok()?.then_some(record)
}

fn why(error: &PuzzleError) -> Skipped {
    match error {
        PuzzleError::Start(StartError::Syntax { .. } | StartError::Illegal { .. }) => {
            Skipped::BadPosition
        }
        PuzzleError::Move { .. } => Skipped::BadMoves,
        PuzzleError::NoSolution | PuzzleError::Over(_) => Skipped::NoSolution,
    }
}

impl Filter {
    fn takes(&self, rating: u32, themes: &[String]) -> bool {
        let wanted = self.themes.is_empty() || self.themes.iter().any(|t| themes.contains(t));
        wanted && (self.rating.low..=self.rating.high).contains(&rating)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str =
        "PuzzleId,FEN,Moves,Rating,RatingDeviation,Popularity,NbPlays,Themes,GameUrl,OpeningTags";
    const LADDER: &str = "k7/8/8/8/8/8/6R1/K6R b - - 0 1,a8b8 h1h7 b8a8 g2g8";

    fn filter() -> Filter {
        let rating = RatingRange { low: 0, high: 4000 };
        Filter {
            themes: vec!["mateIn2".to_owned()],
            rating,
            count: 100,
        }
    }

    fn import(rows: &[&str], filter: &Filter) -> Imported {
        read(
            format!("{HEADER}\n{}\n", rows.join("\n")).as_bytes(),
            filter,
        )
        .unwrap()
    }

    fn row(id: &str, rating: &str, themes: &str) -> String {
        format!("{id},{LADDER},{rating},80,90,10,{themes},https://example.org/x,")
    }

    #[test]
    fn the_filter_chooses_by_theme_rating_and_count() {
        let rows = [
            row("a", "900", "mate mateIn2 short"),
            row("b", "900", "fork"),
            row("c", "2000", "mateIn2"),
            row("d", "1000", "mateIn2"),
        ];
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let mut filter = Filter {
            rating: "800-1500".parse().unwrap(),
            ..filter()
        };
        let taken = import(&rows, &filter);
        let ids: Vec<&str> = taken.puzzles.iter().map(|p| p.id.as_str()).collect();
        assert_eq!((ids, taken.filtered, taken.rows), (vec!["a", "d"], 2, 4));
        assert_eq!(
            taken.puzzles[0].setup, 1,
            "Lichess's first move is the opponent's"
        );
        filter.count = 1;
        assert_eq!(import(&rows, &filter).puzzles.len(), 1);
    }

    #[test]
    fn bad_rows_are_counted_by_reason_and_do_not_stop_the_import() {
        let endless = format!("z,{}", "x".repeat(3 * LINE_CAP));
        let good = row("good", "900", "mateIn2");
        let rows = [
            "short,row",
            &row("r", "high", "mateIn2"),
            &good,
            &row("good", "900", "mateIn2"),
            "p,no position,a8b8 h1h7,900,1,1,1,mateIn2,u,",
            "m,k7/8/8/8/8/8/6R1/K6R b - - 0 1,a8a1 h1h7,900,1,1,1,mateIn2,u,",
            "s,k7/8/8/8/8/8/6R1/K6R b - - 0 1,a8b8,900,1,1,1,mateIn2,u,",
            &endless,
            &row("last", "900", "mateIn2"),
            &row("esc\u{1b}[2J", "900", "mateIn2"),
            &row("nul", "900", "mateIn2 a\0b"),
            &row("many", "900", &"mateIn2 ".repeat(THEMES_CAP + 1)),
        ];
        let result = import(&rows, &filter());
        assert_eq!(result.puzzles.len(), 2);
        let skipped: Vec<_> = result.skipped.into_iter().collect();
        let expected = [
            (Skipped::TooLong, (1, 9)),
            (Skipped::MissingColumn, (1, 2)),
            (Skipped::BadId, (2, 5)),
            (Skipped::BadThemes, (2, 12)),
            (Skipped::BadRating, (1, 3)),
            (Skipped::BadPosition, (1, 6)),
            (Skipped::BadMoves, (1, 7)),
            (Skipped::NoSolution, (1, 8)),
        ];
        assert_eq!(skipped, expected, "reason, (count, first line)");
    }

    #[test]
    fn a_header_without_a_column_is_named() {
        let error = read("PuzzleId,FEN,Moves,Themes\n".as_bytes(), &filter()).unwrap_err();
        assert!(error.to_string().contains("no column Rating"), "{error}");
        assert!(read("".as_bytes(), &filter()).is_err());
    }

    #[test]
    fn tables_are_read_with_any_delimiter_and_without_a_header() {
        let first = row("a", "900", "mate mateIn2");
        let second = row("b", "900", "mateIn2");
        let rows = format!("{first}\r\n{second}\r\n");
        let old: Vec<String> = [&first, &second]
            .map(|row| row.trim_end_matches(',').to_owned())
            .into();
        let reordered = format!("x,Themes,FEN,Moves,PuzzleId,Rating\n,mateIn2,{LADDER},a,900\n");
        for (text, count) in [
            (format!("{HEADER}\n{rows}"), 2),
            (format!("\u{feff}{HEADER}\n{rows}"), 2),
            (
                format!("\u{feff}\"{}\"\n{rows}", HEADER.replace(',', "\",\"")),
                2,
            ),
            (rows.clone(), 2),
            (format!("\u{feff}{rows}"), 2),
            (old.join("\n"), 2),
            (format!("{HEADER}\n{rows}").replace(',', ";"), 2),
            (rows.replace(',', "\t"), 2),
            (reordered, 1),
        ] {
            let read = read(text.as_bytes(), &filter()).unwrap();
            let found = (read.puzzles.len(), read.rows, read.skipped.len());
            assert_eq!(found, (count, count as u64, 0), "{text}");
            assert_eq!(read.puzzles[0].id, "a", "{text}");
        }
    }

    #[test]
    fn rating_ranges_are_read() {
        assert_eq!(
            "600-1500".parse(),
            Ok(RatingRange {
                low: 600,
                high: 1500
            })
        );
        for text in ["", "600", "x-1", "1500-600", "-5"] {
            assert!(text.parse::<RatingRange>().is_err(), "{text}");
        }
    }
}
