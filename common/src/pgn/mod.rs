//! Games as text in Portable Game Notation (Edwards, 1994).
//!
//! [`tag`] and [`Movetext`] write. [`Games`] reads, however people spell moves and end games; it is the only
//! reader, for opening books and training data alike. [`Evaluation`] is what a comment says of a position, in the words of
//! Lichess's databases: `[%eval 0.17]` in pawns, `[%eval #-3]` for a mate, always as White sees it.

mod game;
mod reader;
mod spelling;
mod visitor;

use std::fmt;

pub use game::{PgnGame, Skipped};
pub use reader::Games;
use shakmaty::san::SanPlus;
use shakmaty::{Chess, Color, Move, Position};

/// Longest line of movetext, in characters: less than 80 (PGN standard, 8.2.1).
const LINE: usize = 79;
/// Longest value of a tag, in characters (PGN standard, 7).
const LONGEST_VALUE: usize = 255;

/// A tag pair on a line of its own, its value escaped and cut if it is too long; line breaks, tabs and other control
/// characters in it become spaces.
pub fn tag(name: &str, value: &str) -> String {
    let printing = |c: char| if c.is_control() { ' ' } else { c };
    let value: String = value.chars().take(LONGEST_VALUE).map(printing).collect();
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    format!("[{name} \"{value}\"]\n")
}

/// How steeply the expected score rises with centipawns (lila, `WinPercent`).
const LOGISTIC: f64 = 0.003_682_08;

/// The moves of a game as text, being written.
#[derive(Debug, Clone)]
pub struct Movetext {
    position: Chess,
    text: String,
    column: usize,
    number_needed: bool,
}

impl Movetext {
    /// Of a game that begins here.
    pub fn new(start: &Chess) -> Self {
        Self {
            position: start.clone(),
            text: String::new(),
            column: 0,
            number_needed: true,
        }
    }

    /// Whose move comes next.
    pub fn turn(&self) -> Color {
        self.position.turn()
    }

    /// Adds a move, which must be legal.
    pub fn push(&mut self, m: Move) {
        let number = self.position.fullmoves();
        if self.position.turn().is_white() {
            self.word(&format!("{number}."));
        } else if self.number_needed {
            self.word(&format!("{number}..."));
        }
        let san = SanPlus::from_move_and_play_unchecked(&mut self.position, m);
        self.word(&san.to_string());
        self.number_needed = false;
    }

    /// Adds a comment on what was pushed last; it holds no braces.
    pub fn comment(&mut self, text: &str) {
        self.word(&format!("{{{text}}}"));
        self.number_needed = true;
    }

    /// The whole text, with the result and the end of its line.
    pub fn end(mut self, result: &str) -> String {
        self.word(result);
        self.text.push('\n');
        self.text
    }

    fn word(&mut self, word: &str) {
        let length = word.chars().count();
        if self.column > 0 && self.column + 1 + length > LINE {
            self.text.push('\n');
            self.column = 0;
        }
        if self.column > 0 {
            self.text.push(' ');
            self.column += 1;
        }
        self.text.push_str(word);
        self.column += length;
    }
}

/// What a position is worth, as White sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evaluation {
    /// Hundredths of a pawn.
    Centipawns(i32),
    /// Mate in this number of moves; negative if White is mated, 0 if the number is unknown.
    Mate(i32),
}

impl Evaluation {
    /// The evaluation that a comment holds, the first if there are several. A depth after a comma is
    /// passed over; a whole number before it is hundredths of a pawn, as ChessBase writes them.
    pub(crate) fn in_comment(comment: &str) -> Option<Self> {
        let (_, rest) = comment.split_once("[%eval")?;
        let (value, _) = rest.split_once(']')?;
        let (value, depth) = match value.split_once(',') {
            Some((value, _)) => (value.trim(), true),
            None => (value.trim(), false),
        };
        if let Some(mate) = value.strip_prefix('#') {
            return mate.parse().ok().map(Self::Mate);
        }
        let hundredths = value.parse::<i32>().ok().filter(|_| depth).map(f64::from);
        let centipawns = hundredths.or_else(|| Some(100.0 * value.parse::<f64>().ok()?))?;
        // A thousand pawns are more than anyone has.
        (centipawns.abs() <= 100_000.0).then(|| Self::Centipawns(centipawns.round() as i32))
    }

    /// The evaluation of a position from which White gets this share of the points, 0 to 1, at most 25 pawns: the
    /// inverse of [`expected_score`](Self::expected_score).
    pub(crate) fn of_score(score: f64) -> Self {
        const MOST: f64 = 2_500.0;
        let cp = -(1.0 / score - 1.0).ln() / LOGISTIC;
        Self::Centipawns(cp.clamp(-MOST, MOST).round() as i32)
    }

    /// The share of the points that White gets from here, 0 to 1: `1 / (1 + exp(-0.00368208 cp))`, which
    /// Lichess fitted to games of its players rated 2300 (lila, `WinPercent`), and all or nothing where
    /// there is a mate.
    pub fn expected_score(self) -> f64 {
        match self {
            Self::Centipawns(cp) => 1.0 / (1.0 + (-LOGISTIC * f64::from(cp)).exp()),
            Self::Mate(moves) if moves < 0 => 0.0,
            Self::Mate(_) => 1.0,
        }
    }
}

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Centipawns(cp) => write!(f, "[%eval {:.2}]", f64::from(*cp) / 100.0),
            Self::Mate(moves) => write!(f, "[%eval #{moves}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluations_are_read_as_they_are_written() {
        for (text, expected) in [
            ("[%eval 0.17] [%clk 0:05:00]", Evaluation::Centipawns(17)),
            (
                " [%clk 0:05:00] [%eval -12.5] ",
                Evaluation::Centipawns(-1250),
            ),
            ("good [%eval #-3]", Evaluation::Mate(-3)),
            ("[%eval\n2.35,17]", Evaluation::Centipawns(235)),
            ("[%eval 28,25] [%emt 0:00:13]", Evaluation::Centipawns(28)),
            ("[%eval -7,18]", Evaluation::Centipawns(-7)),
            ("[%eval 3]", Evaluation::Centipawns(300)),
        ] {
            assert_eq!(Evaluation::in_comment(text), Some(expected), "{text}");
            assert_eq!(
                Evaluation::in_comment(&expected.to_string()),
                Some(expected)
            );
        }
        for text in [
            "",
            "best",
            "[%eval]",
            "[%eval x]",
            "[%eval 0.1",
            "[%eval nan]",
            "[%eval 1e9]",
            "[%eval 999999,20]",
            "[%eval #]",
        ] {
            assert_eq!(Evaluation::in_comment(text), None, "{text}");
        }
    }

    #[test]
    fn scores_are_those_of_lichess() {
        // Its accuracy page: +100 centipawns are 59.1 %.
        let score = |cp| Evaluation::Centipawns(cp).expected_score();
        assert!((score(100) - 0.591).abs() < 5e-4);
        assert!((score(0) - 0.5).abs() < 1e-12);
        assert!((score(-300) + score(300) - 1.0).abs() < 1e-12);
        for (share, cp) in [(0.5, 0), (0.625, 139), (0.0, -2500), (1.0, 2500)] {
            assert_eq!(Evaluation::of_score(share), Evaluation::Centipawns(cp));
        }
        assert_eq!(Evaluation::Mate(-1).expected_score(), 0.0);
        assert_eq!(Evaluation::Mate(4).expected_score(), 1.0);
    }

    #[test]
    fn lines_end_between_words_and_numbers_follow_comments() {
        let mut position = Chess::default();
        let mut movetext = Movetext::new(&position);
        movetext.comment("[%eval 0.20]");
        for uci in ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6"] {
            let m = uci
                .parse::<shakmaty::uci::UciMove>()
                .unwrap()
                .to_move(&position)
                .unwrap();
            position.play_unchecked(m);
            movetext.push(m);
            if uci != "g1f3" {
                movetext.comment("[%eval 0.31]");
            }
        }
        let text = movetext.end("*");
        assert_eq!(
            text,
            "{[%eval 0.20]} 1. e4 {[%eval 0.31]} 1... e5 {[%eval 0.31]} 2. Nf3 Nc6\n\
             {[%eval 0.31]} 3. Bb5 {[%eval 0.31]} 3... a6 {[%eval 0.31]} *\n"
        );
    }

    #[test]
    fn a_line_of_movetext_has_79_characters_at_most() {
        for (extra, lines) in [(0, 1), (1, 2)] {
            let mut movetext = Movetext::new(&Chess::default());
            // With its braces and " *" 79 characters.
            movetext.comment(&"é".repeat(75 + extra));
            let text = movetext.end("*");
            assert_eq!(text.lines().count(), lines);
            assert!(text.lines().all(|line| line.chars().count() <= 79));
        }
    }

    #[test]
    fn values_of_tags_are_escaped_and_stay_on_their_line() {
        assert_eq!(
            tag("Event", "a \"b\"\\\n"),
            "[Event \"a \\\"b\\\"\\\\ \"]\n"
        );
        assert_eq!(
            tag("White", "Žofie\t\u{1b}[2J\0 ♞"),
            "[White \"Žofie  [2J  ♞\"]\n"
        );
        assert_eq!(tag("Black", &"\"".repeat(300)).matches("\\\"").count(), 255);
    }
}
