//! Opening books that operators bring.

use shakmaty::san::San;

use super::BookError;
use crate::chess::GameHistory;
use crate::chess::moves::{castling_mode, uci};
use crate::protocol::jobs::Opening;

/// Longest opening of a PGN book, in plies.
const LONGEST: usize = 40;

/// Most characters of a line that an error repeats.
const SHOWN: usize = 120;

fn refuse(line: usize, reason: impl Into<String>) -> BookError {
    BookError::Line {
        line,
        reason: reason.into(),
    }
}

/// One opening a line: the four or six fields of a position; what follows is passed over.
pub(super) fn from_epd(text: &str) -> Result<Vec<Opening>, BookError> {
    let mut openings = Vec::new();
    for (index, line) in lines(text) {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            openings.push(position(line).map_err(|reason| refuse(index + 1, reason))?);
        }
    }
    Ok(openings)
}

/// Lines with their places, without a byte order mark.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.trim_start_matches('\u{feff}').lines().enumerate()
}

fn position(line: &str) -> Result<Opening, String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let shown = || line.chars().take(SHOWN).collect::<String>();
    let board = fields
        .get(..4)
        .ok_or_else(|| format!("{:?} has less than four fields", shown()))?;
    let counters = match fields.get(4..6) {
        Some([half, full]) if half.parse::<u32>().is_ok() && full.parse::<u32>().is_ok() => {
            format!("{half} {full}")
        }
        _ => "0 1".to_owned(),
    };
    let fen = format!("{} {counters}", board.join(" "));
    let game = GameHistory::from_fen(&fen).map_err(|error| error.to_string())?;
    if game.end().is_some() {
        return Err(format!("{:?} is a finished game", shown()));
    }
    Ok(Opening {
        fen: Some(fen),
        moves: Vec::new(),
    })
}

/// One opening a game: its moves from the standard start, comments and variations left out.
pub(super) fn from_pgn(text: &str) -> Result<Vec<Opening>, BookError> {
    let mut openings = Vec::new();
    let mut line = Line::default();
    for (number, token) in tokens(text)? {
        match token {
            Token::Tag(tag) if tag.starts_with("FEN ") => {
                return Err(refuse(
                    number,
                    "games from other positions are not read; use EPD",
                ));
            }
            Token::Tag(_) => line.finish_into(&mut openings),
            Token::Word(word) if is_result(&word) => line.finish_into(&mut openings),
            Token::Word(word) => {
                // Games without tags and results between them.
                if line.moves.len() > 1 && is_first_number(&word) {
                    line.finish_into(&mut openings);
                }
                line.play(&word).map_err(|reason| refuse(number, reason))?;
            }
        }
    }
    line.finish_into(&mut openings);
    Ok(openings)
}

#[derive(Default)]
struct Line {
    game: GameHistory,
    moves: Vec<String>,
}

impl Line {
    fn play(&mut self, word: &str) -> Result<(), String> {
        // Castling with noughts, as many write it, would lose one to the move's number.
        let word = word.replace("0-0", "O-O").replace("O-O-0", "O-O-O");
        let word = word.split('$').next().unwrap_or_default();
        let san = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let san = san.trim_end_matches(['!', '?']);
        if san.is_empty() || self.moves.len() == LONGEST {
            return Ok(());
        }
        let shown = || san.chars().take(20).collect::<String>();
        let parsed: San = san
            .parse()
            .map_err(|_| format!("{:?} is no move", shown()))?;
        if self.game.end().is_some() {
            return Err(format!("the game is over before {:?}", shown()));
        }
        let m = parsed
            .to_move(self.game.position())
            .map_err(|_| format!("{:?} is not legal there", shown()))?;
        self.moves.push(uci(m, castling_mode(self.game.position())));
        self.game.push(m);
        Ok(())
    }

    fn finish_into(&mut self, openings: &mut Vec<Opening>) {
        let line = std::mem::take(self);
        if !line.moves.is_empty() && line.game.end().is_none() {
            openings.push(Opening {
                fen: None,
                moves: line.moves,
            });
        }
    }
}

/// Whether a word begins with the number of White's first move.
fn is_first_number(word: &str) -> bool {
    word.starts_with("1.") && !word.starts_with("1..")
}

fn is_result(word: &str) -> bool {
    matches!(word, "1-0" | "0-1" | "1/2-1/2" | "*")
}

enum Token {
    Tag(String),
    Word(String),
}

/// Tags and words with their line numbers, without comments and variations.
fn tokens(text: &str) -> Result<Vec<(usize, Token)>, BookError> {
    let mut reader = Tokens::default();
    for (index, line) in lines(text) {
        reader.line(index + 1, line)?;
    }
    reader.closed()?;
    Ok(reader.found)
}

#[derive(Default)]
struct Tokens {
    found: Vec<(usize, Token)>,
    /// Variations within variations.
    depth: usize,
    in_comment: bool,
    /// The line on which the newest comment or variation begins.
    opened: usize,
    word: String,
}

impl Tokens {
    /// Nothing is open where a game or the text ends: what follows would be lost.
    fn closed(&self) -> Result<(), BookError> {
        let what = match (self.in_comment, self.depth) {
            (true, _) => "'{' without '}'",
            (false, 0) => return Ok(()),
            (false, _) => "'(' without ')'",
        };
        Err(refuse(self.opened, what))
    }

    fn line(&mut self, number: usize, line: &str) -> Result<(), BookError> {
        if line.starts_with("[Event ") {
            self.closed()?;
        }
        // An escaped line is for other programs (PGN standard, 6).
        if line.starts_with('%') {
            return Ok(());
        }
        if !self.in_comment && self.depth == 0 && line.starts_with('[') {
            let tag = line.trim().trim_start_matches('[').trim_end_matches(']');
            self.found.push((number, Token::Tag(tag.to_owned())));
            return Ok(());
        }
        for c in line.chars() {
            match c {
                _ if self.in_comment => self.in_comment = c != '}',
                ';' => break,
                '{' => {
                    self.in_comment = true;
                    self.opened = number;
                }
                '(' => {
                    self.depth += 1;
                    self.opened = number;
                }
                ')' => {
                    let outer = self.depth.checked_sub(1);
                    self.depth = outer.ok_or_else(|| refuse(number, "')' without '('"))?;
                }
                _ if self.depth > 0 => continue,
                _ if c.is_whitespace() => {}
                _ => {
                    self.word.push(c);
                    continue;
                }
            }
            self.end_word(number);
        }
        self.end_word(number);
        Ok(())
    }

    fn end_word(&mut self, number: usize) {
        if !self.word.is_empty() {
            self.found
                .push((number, Token::Word(std::mem::take(&mut self.word))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epd_lines_are_positions() {
        let text = "# book\nrnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - id \"x\";\n";
        let book = from_epd(text).unwrap();
        assert_eq!(
            book[0].fen.as_deref(),
            Some("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1")
        );
        let error = from_epd("\nnonsense here too yes\n").unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }

    #[test]
    fn pgn_games_are_lines() {
        let text = "[Event \"a\"]\n\n1. e4 {king's pawn} e5 2. Nf3 (2. f4 exf4) Nc6 *\n\n\
                    [Event \"b\"]\n\n1.d4 d5!? 1/2-1/2\n";
        let book = from_pgn(text).unwrap();
        assert_eq!(book[0].moves, ["e2e4", "e7e5", "g1f3", "b8c6"]);
        assert_eq!(book[1].moves, ["d2d4", "d7d5"]);
        for (text, moves) in [
            ("\u{feff}[Event \"a\"]\n\n1. e4 *", vec!["e2e4"]),
            ("% escaped\n1. e4$1 e5!$14 *", vec!["e2e4", "e7e5"]),
            (
                "1. Nf3 d5 2. g3 c6 3. Bg2 Bg4 4. 0-0 Qd7 5. h3 Na6 6. hxg4 0-0-0 *",
                vec![
                    "g1f3", "d7d5", "g2g3", "c7c6", "f1g2", "c8g4", "e1g1", "d8d7", "h2h3", "b8a6",
                    "h3g4", "e8c8",
                ],
            ),
        ] {
            assert_eq!(from_pgn(text).unwrap()[0].moves, moves, "{text}");
        }
        let two = from_pgn("1. e4 e5\n\n1. d4 d5\n").unwrap();
        assert_eq!(
            two.iter()
                .map(|opening| opening.moves.len())
                .collect::<Vec<_>>(),
            [2, 2]
        );
        let one = from_pgn("1. e4 {best} 1... e5 2. Nf3").unwrap();
        assert_eq!((one.len(), one[0].moves.len()), (1, 3));
        let error = from_pgn("1. e4 e4 *").unwrap_err();
        assert!(error.to_string().contains("\"e4\""), "{error}");
        assert!(from_pgn("1. e4 ) *").is_err());
    }

    #[test]
    fn moves_after_the_end_of_a_game_are_refused() {
        let back_and_forth = "Nf3 Nf6 Ng1 Ng8 ".repeat(2);
        let draw = from_pgn(&format!("{back_and_forth} *")).unwrap();
        assert!(draw.is_empty(), "a finished game is no opening: {draw:?}");
        let error = from_pgn(&format!("{back_and_forth}\ne4 *")).unwrap_err();
        assert_eq!(error, refuse(2, "the game is over before \"e4\""));
    }

    #[test]
    fn what_is_never_closed_is_named_with_its_line() {
        let next = "[Event \"b\"]\n\n1. d4 {a comment} d5 *\n";
        for (open, what) in [("{", "'{' without '}'"), ("(1. d4", "'(' without ')'")] {
            for rest in ["", next] {
                let text = format!("[Event \"a\"]\n\n1. e4 {open} e5 *\n\n{rest}");
                assert_eq!(from_pgn(&text).unwrap_err(), refuse(3, what), "{text}");
            }
        }
    }
}
