//! Books in tables, with commas, tabs or semicolons between columns: Lichess's list of openings, or any that has a
//! column of positions.

use csv::{ReaderBuilder, StringRecord, Trim};

use super::file::{from_epd, from_pgn, position};
use super::{BookError, BookFile};

/// Columns that hold openings, the best first: moves tell more than the position they lead to.
const COLUMNS: [&str; 4] = ["pgn", "uci", "fen", "epd"];

/// Where a table has its openings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Table {
    delimiter: u8,
    column: usize,
    /// One of [`COLUMNS`]; the first line has the columns' names.
    header: Option<&'static str>,
}

impl Table {
    /// A table that begins with this line: with the names of columns, or with a position in one of several.
    pub(super) fn of(line: &str) -> Option<Self> {
        b",\t;".iter().find_map(|delimiter| {
            let cells = cells(line, *delimiter)?;
            let named = COLUMNS.iter().find_map(|name| {
                let mut cells = cells.iter();
                let column = cells.position(|cell| cell.eq_ignore_ascii_case(name))?;
                Some((column, Some(*name)))
            });
            let unnamed = || Some((cells.iter().position(is_position)?, None));
            let several = cells.len() > 1;
            let (column, header) = named.or_else(|| several.then(unnamed)?)?;
            Some(Self {
                delimiter: *delimiter,
                column,
                header,
            })
        })
    }

    /// Reads the column, one opening a row.
    pub(super) fn read(self, text: &str) -> Result<BookFile, BookError> {
        let is_moves = matches!(self.header, Some("pgn" | "uci"));
        let mut column = String::new();
        let mut rows = self.reader(text.trim_start_matches('\u{feff}'));
        let mut record = StringRecord::new();
        let mut is_header = self.header.is_some();
        loop {
            let read = rows.read_record(&mut record);
            let line = record.position().map_or(0, csv::Position::line) as usize;
            let refuse = |reason: String| BookError::Line { line, reason };
            if !read.map_err(|error| refuse(error.to_string()))? {
                break;
            }
            if std::mem::take(&mut is_header) {
                continue;
            }
            let cell = record.get(self.column);
            let cell = cell.ok_or_else(|| refuse("it has too few columns".to_owned()))?;
            if !is_moves {
                position(cell).map_err(refuse)?;
            }
            column.push_str(cell);
            column.push_str(if is_moves { " *\n\n" } else { "\n" });
        }
        if is_moves {
            from_pgn(&column)
        } else {
            from_epd(&column)
        }
    }

    fn reader<'a>(&self, text: &'a str) -> csv::Reader<&'a [u8]> {
        ReaderBuilder::new()
            .delimiter(self.delimiter)
            .comment(Some(b'#'))
            .has_headers(false)
            .flexible(true)
            .trim(Trim::All)
            .from_reader(text.as_bytes())
    }
}

fn cells(line: &str, delimiter: u8) -> Option<StringRecord> {
    let table = Table {
        delimiter,
        column: 0,
        header: None,
    };
    table.reader(line).records().next()?.ok()
}

/// Whether a cell holds just a position, with or without its counters.
fn is_position(cell: &str) -> bool {
    let fields: Vec<&str> = cell.split_whitespace().collect();
    let is_number = |field: &&str| field.parse::<u32>().is_ok();
    let whole = matches!(fields.len(), 4 | 6) && fields[4..].iter().all(is_number);
    whole && position(cell).is_ok()
}
