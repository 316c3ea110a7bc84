//! Opening books that operators bring: EPD, PGN, or a column of a table, told apart by what they hold.
//!
//! ```text
//! bytes --unpack--> text --> EPD, one position a line
//!                        --> PGN, one line of moves a game (pgn::Games)
//!                        --> CSV or TSV, a column of either
//! ```
//!
//! A bad position refuses the book with its line. A bad game is passed over and counted: files of games come from
//! people and other programs, and what one game lacks says nothing about the next.

use std::collections::BTreeMap;
use std::path::Path;

use super::table::Table;
use super::{BookError, BookFile, OpeningBook};
use crate::chess::moves::{castling_mode, uci};
use crate::chess::{GameHistory, fen};
use crate::pgn::{Games, PgnGame, Skipped};
use crate::protocol::jobs::Opening;
use crate::text::printable;
use crate::unpack::unpack_within;

/// Largest book, in bytes, unpacked.
const LONGEST_BOOK: u64 = 256 << 20;

/// Longest opening of a PGN book, in plies.
const LONGEST: usize = 40;

/// Most characters of a line that an error repeats.
const SHOWN: usize = 120;

/// Reads a book of whatever kind.
pub(super) fn read(name: &Path, bytes: &[u8]) -> Result<BookFile, BookError> {
    let bytes = unpack_within(name, bytes, LONGEST_BOOK);
    let bytes = bytes.map_err(|error| BookError::File(error.to_string()))?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = || lines(&text).map(|(_, line)| line);
    if let Some(table) = lines().next().and_then(Table::of) {
        return table.read(&text);
    }
    let is_pgn = lines().next().is_some_and(|line| is_pgn(name, line));
    if is_pgn {
        from_pgn(&text)
    } else {
        from_epd(&text)
    }
}

/// Whether a file that begins with this line is of games. The name counts where the line says nothing.
fn is_pgn(name: &Path, line: &str) -> bool {
    let name = name.to_string_lossy().to_ascii_lowercase();
    let named = [".pgn", ".pgn.gz", ".pgn.zst"]
        .iter()
        .any(|ending| name.ends_with(ending));
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_number = number.len() < line.len() && number.starts_with('.');
    !is_board(line) && (named || is_number || line.starts_with(['[', '{']))
}

/// Whether a line begins with the ranks of a board.
fn is_board(line: &str) -> bool {
    let board = line.split_whitespace().next().unwrap_or_default();
    board.matches('/').count() == 7
}

/// Lines with their numbers, without comments and those that are empty, and without a byte order mark. PGN has comments of
/// its own.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    lines
        .map(|(index, line)| (index + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with(['#', ';', '%']))
}

/// One opening a line.
pub(super) fn from_epd(text: &str) -> Result<BookFile, BookError> {
    let openings = lines(text)
        .map(|(line, text)| position(text).map_err(|reason| BookError::Line { line, reason }));
    book(openings.collect::<Result<_, _>>()?, &BTreeMap::new())
}

/// The four or six fields of a position, and perhaps operations, of which `hmvc` and `fmvn` count.
pub(super) fn position(line: &str) -> Result<Opening, String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let shown = || printable(line, SHOWN);
    let board = fields
        .get(..4)
        .ok_or_else(|| format!("{:?} has less than four fields", shown()))?;
    let (half, full) = counters(line, &fields[4..]);
    let text = format!("{} {half} {full}", board.join(" "));
    let strict = GameHistory::from_fen(&text);
    let set_up = |_| GameHistory::from_set_up_fen(&text);
    let game = strict.or_else(set_up).map_err(|error| error.to_string())?;
    if game.end().is_some() {
        return Err(format!("{:?} is a finished game", shown()));
    }
    let opening = Opening {
        fen: Some(fen(game.position())),
        moves: Vec::new(),
    };
    opening.start().map_err(|error| error.to_string())?;
    Ok(opening)
}

/// The plies without capture or pawn move, and the number of the move: the fifth and sixth fields (`37 60`), or
/// operations (`hmvc 37; fmvn 60;`).
fn counters(line: &str, fields: &[&str]) -> (u32, u32) {
    let number = |field: &&str| field.trim_end_matches(';').parse().ok();
    if let Some([half, full]) = fields.get(..2)
        && let (Some(half), Some(full)) = (number(half), number(full))
    {
        return (half, full);
    }
    // What stands in quotes is for people.
    let operations = line.split('"').step_by(2).flat_map(|text| text.split(';'));
    let operation = |name: &str| {
        operations.clone().find_map(|operation| {
            let mut words = operation.split_whitespace().rev();
            let value = words.next()?.parse().ok()?;
            (words.next() == Some(name)).then_some(value)
        })
    };
    (
        operation("hmvc").unwrap_or(0),
        operation("fmvn").unwrap_or(1),
    )
}

/// One opening a game: its first moves, comments and variations left out.
pub(super) fn from_pgn(text: &str) -> Result<BookFile, BookError> {
    let (mut openings, mut passed_over) = (Vec::new(), BTreeMap::new());
    for (index, game) in Games::new(text.as_bytes()).enumerate() {
        let game = game.map_err(|error| BookError::File(error.to_string()))?;
        match game.and_then(|game| opening(&game)) {
            Ok(found) => openings.extend(found),
            Err(reason) => passed_over.entry(reason).or_insert((0, index + 1)).0 += 1,
        }
    }
    book(openings, &passed_over)
}

/// A game's opening, none if it has neither moves nor a position of its own.
fn opening(game: &PgnGame) -> Result<Option<Opening>, Skipped> {
    let standard = fen(GameHistory::default().position());
    let start = Some(fen(game.start.position())).filter(|start| *start != standard);
    let mut history = game.start.clone();
    let mut moves = Vec::new();
    for m in game.moves.iter().take(LONGEST) {
        if history.end().is_some() {
            break;
        }
        moves.push(uci(*m, castling_mode(history.position())));
        history.push(*m);
    }
    if history.end().is_some() {
        return Err(Skipped::Over);
    }
    if start.is_none() && moves.is_empty() {
        return Ok(None);
    }
    let opening = Opening { fen: start, moves };
    opening.start().map_err(|_| Skipped::BadStart)?;
    Ok(Some(opening))
}

/// The book of these openings, and a line for each reason for which games were passed over: how many, and which was
/// the first.
fn book(
    openings: Vec<Opening>,
    passed_over: &BTreeMap<Skipped, (u64, usize)>,
) -> Result<BookFile, BookError> {
    let line = |(reason, (count, first)): (&Skipped, &(u64, usize))| {
        format!("{} (first: game {first})", reason.line(*count))
    };
    let passed_over: Vec<String> = passed_over.iter().map(line).collect();
    if openings.is_empty() {
        return Err(match passed_over.join("; ") {
            none if none.is_empty() => BookError::Empty,
            reasons => BookError::PassedOver(reasons),
        });
    }
    let book = OpeningBook::hashed(openings);
    Ok(BookFile { book, passed_over })
}

#[cfg(test)]
mod tests;
