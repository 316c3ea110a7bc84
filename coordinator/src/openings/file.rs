//! Opening books that operators bring.

use anyhow::{Context as _, bail};
use rookery_common::chess::GameHistory;
use rookery_common::chess::moves::{castling_mode, uci};
use rookery_common::protocol::jobs::Opening;
use shakmaty::san::San;

/// Longest opening of a PGN book, in plies.
const LONGEST: usize = 40;

/// One opening a line: the four or six fields of a position; what follows is passed over.
pub(super) fn from_epd(text: &str) -> anyhow::Result<Vec<Opening>> {
    let mut openings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = || format!("line {}: {line:?}", number + 1);
        let Some(board) = fields.get(..4) else {
            bail!("{} has less than four fields", place())
        };
        let counters = match fields.get(4..6) {
            Some([half, full]) if half.parse::<u32>().is_ok() && full.parse::<u32>().is_ok() => {
                format!("{half} {full}")
            }
            _ => "0 1".to_owned(),
        };
        let fen = format!("{} {counters}", board.join(" "));
        let game = GameHistory::from_fen(&fen).with_context(place)?;
        if game.end().is_some() {
            bail!("{} is a finished game", place());
        }
        openings.push(Opening {
            fen: Some(fen),
            moves: Vec::new(),
        });
    }
    Ok(openings)
}

/// One opening a game: its moves from the standard start, comments and variations left out.
pub(super) fn from_pgn(text: &str) -> anyhow::Result<Vec<Opening>> {
    let mut openings = Vec::new();
    let mut line = Line::default();
    for (number, token) in tokens(text)? {
        let place = || format!("line {number}");
        match token {
            Token::Tag(tag) if tag.starts_with("FEN ") => {
                bail!(
                    "{}: games from other positions are not read; use EPD",
                    place()
                )
            }
            Token::Tag(_) => line.finish_into(&mut openings),
            Token::Word(word) if is_result(&word) => line.finish_into(&mut openings),
            Token::Word(word) => line.play(&word).with_context(place)?,
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
    fn play(&mut self, word: &str) -> anyhow::Result<()> {
        let san = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let san = san.trim_end_matches(['!', '?']);
        if san.is_empty() || san.starts_with('$') || self.moves.len() == LONGEST {
            return Ok(());
        }
        let parsed: San = san.parse().with_context(|| format!("{san:?} is no move"))?;
        let m = parsed
            .to_move(self.game.position())
            .with_context(|| format!("{san:?} is not legal there"))?;
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

fn is_result(word: &str) -> bool {
    matches!(word, "1-0" | "0-1" | "1/2-1/2" | "*")
}

enum Token {
    Tag(String),
    Word(String),
}

/// Tags and words with their line numbers, without comments and variations.
fn tokens(text: &str) -> anyhow::Result<Vec<(usize, Token)>> {
    let mut tokens = Vec::new();
    let mut depth = 0_usize;
    let mut in_comment = false;
    for (number, line) in text.lines().enumerate() {
        if !in_comment && depth == 0 && line.starts_with('[') {
            let tag = line.trim().trim_start_matches('[').trim_end_matches(']');
            tokens.push((number + 1, Token::Tag(tag.to_owned())));
            continue;
        }
        let mut word = String::new();
        for c in line.chars().chain(std::iter::once(' ')) {
            match c {
                _ if in_comment => in_comment = c != '}',
                '{' => in_comment = true,
                '(' => depth += 1,
                ')' if depth == 0 => bail!("line {}: ')' without '('", number + 1),
                ')' => depth -= 1,
                ';' => break,
                _ if depth > 0 => {}
                _ if !c.is_whitespace() => {
                    word.push(c);
                    continue;
                }
                _ => {}
            }
            if !word.is_empty() {
                tokens.push((number + 1, Token::Word(std::mem::take(&mut word))));
            }
        }
        if !word.is_empty() {
            tokens.push((number + 1, Token::Word(word)));
        }
    }
    Ok(tokens)
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
        assert!(format!("{error:#}").contains("line 2"), "{error:#}");
    }

    #[test]
    fn pgn_games_are_lines() {
        let text = "[Event \"a\"]\n\n1. e4 {king's pawn} e5 2. Nf3 (2. f4 exf4) Nc6 *\n\n\
                    [Event \"b\"]\n\n1.d4 d5!? 1/2-1/2\n";
        let book = from_pgn(text).unwrap();
        assert_eq!(book[0].moves, ["e2e4", "e7e5", "g1f3", "b8c6"]);
        assert_eq!(book[1].moves, ["d2d4", "d7d5"]);
        let error = from_pgn("1. e4 e4 *").unwrap_err();
        assert!(format!("{error:#}").contains("\"e4\""), "{error:#}");
    }
}
