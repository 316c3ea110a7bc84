//! Moves as people spell them, on their way to the reader of PGN.
//!
//! The reader passes over words that it does not understand. Where such a word is a move the game goes on
//! without it, and with one of each player missing it may stay legal: a game that was not played. So words that
//! name a square are looked at before. Moves in another spelling (`Ng1-f3`, `e8Q`, `Qxf7++`, `♘f3`) are
//! written as the standard has them; what cannot be read becomes a null move, with which no game is kept.
//!
//! The reader ends a game at an empty line. So empty lines within a game are left out, one is put between a result
//! and the tags right behind it, and a comment that is never closed ends with [`UNCLOSED`] at the next game's tags.
//!
//! ```text
//! source --> Spelling --> pgn_reader --> GameVisitor --> meant
//! ```

use std::io::{self, Read};

mod game;
mod word;

pub(super) use word::meant;

use game::Game;
use word::{castling, respelled};

const BUFFER: usize = 1 << 16;
/// Longer words are no moves, and pass as they are.
const LONGEST_WORD: usize = 24;
/// What a text may begin with, before its first tag.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// How a comment ends that was never closed.
pub(super) const UNCLOSED: &[u8] = b"\x1aunclosed";
/// Longest beginning of a tag that is looked for in a comment.
const LONGEST_TAG: usize = 40;

/// The bytes of a PGN file with its moves spelled as the standard has them.
pub(super) struct Spelling<R> {
    file: R,
    buffer: Box<[u8]>,
    text: Text,
    /// Of the text, what was given to the reader.
    given: usize,
}

/// A text that is gone through byte by byte.
struct Text {
    part: Part,
    line_begins: bool,
    word: Vec<u8>,
    /// The word is a long one, and has been passed on as far as it goes.
    is_long: bool,
    game: Game,
    spelled: Vec<u8>,
}

/// What a byte is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Movetext,
    /// A comment in braces.
    Comment,
    /// The beginning of a line in it, after this number of line feeds, which may be the next game's first tag.
    CommentLine {
        line_feeds: u32,
    },
    /// A comment to the end of the line, or an escaped line.
    Line,
    /// A tag, which ends with its bracket, or with the line: moves may stand behind.
    Tag,
    /// A tag's value, in which a bracket says nothing.
    Value,
    /// The byte behind a backslash in a value.
    Escaped,
}

impl<R: Read> Spelling<R> {
    /// Spells what is read from a file.
    pub(super) fn new(file: R) -> Self {
        Self {
            file,
            buffer: vec![0; BUFFER].into(),
            text: Text {
                part: Part::Movetext,
                line_begins: true,
                word: Vec::new(),
                is_long: false,
                game: Game::default(),
                spelled: Vec::new(),
            },
            given: 0,
        }
    }
}

impl<R: Read> Read for Spelling<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.spelled.len() {
            self.text.spelled.clear();
            self.given = 0;
            let count = self.file.read(&mut self.buffer)?;
            if count == 0 {
                self.text.end();
                break;
            }
            self.text.take(&self.buffer[..count]);
        }
        let count = (&self.text.spelled[self.given..]).read(into)?;
        self.given += count;
        Ok(count)
    }
}

impl Text {
    fn take(&mut self, mut bytes: &[u8]) {
        while let Some((first, rest)) = bytes.split_first() {
            let found = match self.part {
                Part::Movetext => {
                    self.byte(*first);
                    bytes = rest;
                    continue;
                }
                Part::Comment => bytes
                    .iter()
                    .position(|byte| *byte == b'}' || ends_line(*byte)),
                Part::CommentLine { line_feeds } => {
                    if self.comment_line(*first, line_feeds) {
                        bytes = rest;
                    }
                    continue;
                }
                Part::Line => bytes.iter().position(|byte| ends_line(*byte)),
                Part::Tag => position_in_line(bytes, *b"\"]"),
                Part::Value => position_in_line(bytes, *b"\"\\"),
                Part::Escaped => Some(0),
            };
            let (part, rest) = bytes.split_at(found.map_or(bytes.len(), |at| at + 1));
            self.spelled.extend_from_slice(part);
            bytes = rest;
            if let Some(at) = found {
                self.end_part(part[at]);
            }
        }
    }

    /// Takes a byte of a line that begins in a comment; whether it was taken, or belongs to the comment.
    fn comment_line(&mut self, byte: u8, line_feeds: u32) -> bool {
        if self.word.is_empty() && ends_line(byte) {
            self.spelled.push(byte);
            let line_feeds = line_feeds + u32::from(byte == b'\n');
            self.part = Part::CommentLine { line_feeds };
            return true;
        }
        let may_be_tag = match (self.word.len(), byte) {
            (0, b'[') => true,
            (1.., b'A'..=b'Z' | b'a'..=b'z' | b' ') => self.word.len() < LONGEST_TAG,
            (3.., b'"') => self.word.ends_with(b" "),
            _ => false,
        };
        if !may_be_tag {
            self.spelled.append(&mut self.word);
            self.part = Part::Comment;
            return false;
        }
        self.word.push(byte);
        if byte == b'"' {
            let is_next_game = line_feeds > 1 || self.word == b"[Event \"";
            if is_next_game {
                self.spelled.extend([UNCLOSED, b"}\n\n"].concat());
                self.game = Game::default();
            }
            self.part = if is_next_game {
                Part::Value
            } else {
                Part::Comment
            };
            self.spelled.append(&mut self.word);
        }
        true
    }

    /// What comes after the byte that ends a part.
    fn end_part(&mut self, byte: u8) {
        self.line_begins = ends_line(byte);
        self.game.line_begins = self.line_begins;
        self.game.line_is_blank = byte == b'\n';
        self.part = match (self.part, byte) {
            (Part::Comment, b'\n') => Part::CommentLine { line_feeds: 1 },
            (Part::Comment, b'\r') => Part::CommentLine { line_feeds: 0 },
            (Part::Tag, b'"') | (Part::Escaped, _) => Part::Value,
            (Part::Value, b'"') => Part::Tag,
            (Part::Value, b'\\') => Part::Escaped,
            _ => Part::Movetext,
        };
    }

    /// Takes a byte of movetext.
    fn byte(&mut self, byte: u8) {
        let glued = byte == b'[' && is_result(&self.word);
        let begins = self.word.is_empty() || self.word == BYTE_ORDER_MARK || glued;
        let opened = match byte {
            b'[' => Some(Part::Tag),
            b'%' if self.line_begins => Some(Part::Line),
            _ => None,
        };
        let opened = opened.filter(|_| begins && !self.is_long);
        if opened.is_none() && !ends_word(byte) {
            self.word.push(byte);
            if self.is_long || self.word.len() > LONGEST_WORD {
                self.is_long = true;
                self.spelled.append(&mut self.word);
            }
            return;
        }
        if byte == b'.' && self.word == b"1" && self.game.may_be_over() {
            self.spelled.extend_from_slice(b"\n\n");
            self.game = Game::default();
        }
        self.end_word();
        self.line_begins = ends_line(byte);
        if self.game.holds_back(byte) {
            return;
        }
        if opened == Some(Part::Tag) {
            let gap: &[u8] = match (self.game.held, self.game.ended) {
                (true, _) => b"\n",
                (false, true) if !self.game.line_begins => b"\n\n",
                _ => b"",
            };
            self.spelled.extend_from_slice(gap);
            self.game = Game::default();
        }
        self.spelled.push(byte);
        self.game.pass(byte);
        self.part = match byte {
            b'{' => Part::Comment,
            b';' => Part::Line,
            _ => opened.unwrap_or(Part::Movetext),
        };
    }

    /// Takes the end of the text.
    fn end(&mut self) {
        if self.part == Part::Movetext {
            self.end_word();
        } else {
            self.spelled.append(&mut self.word);
        }
    }

    fn end_word(&mut self) {
        if std::mem::take(&mut self.is_long) {
            return;
        }
        let is_digit = |byte: &&u8| byte.is_ascii_digit();
        let number = self.word.iter().take_while(is_digit).count();
        let (number, word) = match castling(&self.word) {
            // Its zeros are no number.
            Some(castling) => (b"".as_slice(), castling.into()),
            None => {
                let (number, word) = self.word.split_at(number);
                (number, respelled(word))
            }
        };
        if !self.word.is_empty() {
            self.game.word(is_result(&self.word), word.is_empty());
        }
        self.spelled.extend_from_slice(number);
        self.spelled.extend_from_slice(&word);
        self.word.clear();
    }
}

/// Whether a word is a game's result.
fn is_result(word: &[u8]) -> bool {
    const RESULTS: [&str; 5] = ["1-0", "0-1", "1/2-1/2", "1/2", "½-½"];
    let Ok(word) = std::str::from_utf8(word) else {
        return false;
    };
    RESULTS.contains(&word.replace(['–', '—'], "-").as_str())
}

/// Where the first of these bytes stands, or the end of the line.
fn position_in_line(bytes: &[u8], ends: [u8; 2]) -> Option<usize> {
    let mut bytes = bytes.iter();
    bytes.position(|byte| ends.contains(byte) || ends_line(*byte))
}

/// Some files have no line feeds.
const fn ends_line(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Where the reader of PGN ends a word.
const fn ends_word(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t'
            | b'\n'
            | b'\r'
            | b'{'
            | b'}'
            | b'('
            | b')'
            | b'!'
            | b'?'
            | b'$'
            | b';'
            | b'.'
            | b'*'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(text: &str) -> String {
        let mut read = String::new();
        let mut spelling = Spelling::new(text.as_bytes());
        spelling.read_to_string(&mut read).unwrap();
        read
    }

    #[test]
    fn other_spellings_of_moves_become_the_standard_s() {
        for (word, standard) in [
            ("e2-e4", "e2e4"),
            ("Ng1-f3+", "Ng1f3"),
            ("e4:d5", "e4xd5"),
            ("Qd8xd5", "Qd8xd5"),
            ("♘f3", "Nf3"),
            ("♟e5", "Pe5"),
            ("♜xa1#", "Rxa1"),
            ("Qxf7++", "Qxf7"),
            ("Nf3=", "Nf3"),
            ("Nf3+-", "Nf3"),
            ("Nf3N", "Nf3"),
            ("a8Q+", "a8=Q"),
            ("bxa1/n", "bxa1=n"),
            ("a7a8q", "a7a8=q"),
            ("exd6ep+", "exd6"),
            ("12e4", "12e4"),
            ("o-o-o", "O-O-O"),
            ("O-O+-", "O-O"),
            ("0-0-0+", "O-O-O"),
            ("O-O-O#", "O-O-O"),
            ("0-O", "O-O"),
            ("\u{41e}\u{2013}\u{41e}\u{2013}\u{41e}", "O-O-O"),
            ("OO", "O-O"),
            ("O-ON", "O-O"),
            ("12O-O", "12O-O"),
        ] {
            assert_eq!(
                spelled(&format!("1. {word} 1-0")),
                format!("1. {standard} 1-0")
            );
        }
        assert_eq!(spelled("exd6e.p. Nf3!? e4"), "exd6.p. Nf3!? e4");
        assert_eq!(
            spelled(r#"[White "S]f3\" Sf3"] [Round "1"] 1. ♘f3"#),
            r#"[White "S]f3\" Sf3"] [Round "1"] 1. Nf3"#,
        );
        assert_eq!(
            spelled("[White \"Sf3\"]\r\r1. ♘f3\r% Sf3"),
            "[White \"Sf3\"]\r\r1. Nf3\r% Sf3"
        );
    }

    #[test]
    fn moves_that_cannot_be_read_become_null_moves() {
        for word in [
            "Sf3", "Lxc6", "1Sf3", "Кf3", "ed", "exd", "e4/e5", "Nf3Q", "a8K", "e4f",
        ] {
            let number = if word.starts_with('1') { "1" } else { "" };
            assert_eq!(
                spelled(&format!("{word} e5")),
                format!("{number} -- e5"),
                "{word}"
            );
        }
    }

    #[test]
    fn games_are_set_apart_and_their_moves_joined() {
        for (text, standard) in [
            ("1. e4 1-0[Event \"x\"]", "1. e4 1-0\n\n[Event \"x\"]"),
            ("1. e4 * [Event \"x\"]", "1. e4 * \n\n[Event \"x\"]"),
            ("1. e4 1-0\n[Event \"x\"]", "1. e4 1-0\n[Event \"x\"]"),
            ("1. e4\n\n\ne5 1-0\n\n\n1. d4", "1. e4\ne5 1-0\n\n\n1. d4"),
            ("1. e4\r\n\r\ne5", "1. e4\r\n\re5"),
            ("1. e4 ; x\r\ne5", "1. e4 ; x\r\ne5"),
            ("1. e4 e5\n\n1. d4", "1. e4 e5\n\n\n1. d4"),
            ("1. e4 e5\n\n[Event \"x\"]", "1. e4 e5\n\n[Event \"x\"]"),
            (
                "1. e4 {x\n[Event \"y\"] {z}",
                "1. e4 {x\n\u{1a}unclosed}\n\n[Event \"y\"] {z}",
            ),
            (
                "1. e4 {x\r\n[White \"y\"]} e5",
                "1. e4 {x\r\n[White \"y\"]} e5",
            ),
            (
                "1. e4 {x\n\n[%eval 1]\n[a b} e5",
                "1. e4 {x\n\n[%eval 1]\n[a b} e5",
            ),
        ] {
            assert_eq!(spelled(text), standard);
        }
    }

    #[test]
    fn all_else_stays_as_it_is() {
        let long = "x".repeat(60) + "Sf3";
        for text in [
            "[White \"Sf3\"] [Black \"Sf3\"]\n\n1. e4 {Sf3 } e5 ; Sf3\n% Sf3\n2. Nbd2+ (2. exd5) 1/2-1/2",
            "\u{feff}[Site \"Sf3\"]\n\nO-O O-O-O 0-1 00 000 O Oops -- Z0 $12 e8=Q+!! N D (D) chess of old *",
            "e4\r\n\r\n[Event \"Sf3\"]\r\n {Sf3\n\n[Sf3",
            long.as_str(),
            "",
        ] {
            assert_eq!(spelled(text), text);
        }
    }

    #[test]
    fn files_may_come_in_any_pieces() {
        struct Slow<'a>(&'a [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                self.0.read(&mut into[..1])
            }
        }
        let text = "[White \"Sf3\"]\n\n1. ♘g1-f3 {a ♘} ; b\nSf6";
        let mut bytes = Vec::new();
        Spelling::new(Slow(text.as_bytes()))
            .read_to_end(&mut bytes)
            .unwrap();
        assert_eq!(bytes, spelled(text).into_bytes());
        assert!(bytes.ends_with(b"1. Ng1f3 {a \xe2\x99\x98} ; b\n --"));
    }
}
