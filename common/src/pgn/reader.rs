//! A PGN file's games, one after the other.

use std::io::{self, Read};

use pgn_reader::Reader;

use super::game::{PgnGame, Skipped};
use super::spelling::Spelling;
use super::visitor::GameVisitor;

/// Errors in a row after which the rest of a file is given up.
const MOST_ERRORS: u32 = 1000;
/// Longest tag line and comment that the reader takes in one piece.
const TAG_BYTES: usize = 4096;

/// The games of a file, each as it was played or why it cannot be read: then the next one follows. An error of the
/// file itself is the last item.
pub struct Games<R> {
    reader: Option<Reader<Spelling<R>>>,
    errors: u32,
}

impl<R: Read> Games<R> {
    /// Reads what is not compressed.
    pub fn new(file: R) -> Self {
        let reader = Reader::build(Spelling::new(file))
            .set_supported_tag_line_length(TAG_BYTES)
            .set_supported_comment_length(TAG_BYTES)
            .finish();
        Self {
            reader: Some(reader),
            errors: 0,
        }
    }
}

impl<R: Read> Iterator for Games<R> {
    type Item = io::Result<Result<PgnGame, Skipped>>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.reader.as_mut()?.read_game(&mut GameVisitor);
        match read.transpose()? {
            Ok(game) => {
                self.errors = 0;
                Some(Ok(game))
            }
            Err(error)
                if error.kind() == io::ErrorKind::InvalidData && self.errors < MOST_ERRORS =>
            {
                self.errors += 1;
                Some(Ok(Err(Skipped::Malformed)))
            }
            Err(error) => {
                self.reader = None;
                Some(Err(error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many moves each game of a text has, or why it cannot be read.
    fn games(text: &str) -> Vec<Result<usize, Skipped>> {
        let games = Games::new(text.as_bytes());
        games
            .map(|game| game.unwrap().map(|game| game.moves.len()))
            .collect()
    }

    #[test]
    fn moves_are_read_however_they_are_spelled() {
        let played = |text: &str| {
            let text = format!("[White \"Sf3\"]\n[Result \"1-0\"]\n\n{text} 1-0\n");
            let game = Games::new(text.as_bytes()).next().unwrap();
            game.unwrap().unwrap().moves
        };
        let standard = played(
            "1. e4 a6 2. e5 d5 3. exd6 Nc6 4. dxc7 Bg4 5. cxd8=Q+ Rxd8 6. Nf3 Bxf3 7. Bc4 Bxd1 8. O-O",
        );
        assert_eq!(standard.len(), 15);
        for text in [
            "1. e2-e4 a7-a6 2. e4-e5 d7-d5 3. e5xd6e.p. Nb8-c6 4. d6:c7 Bc8-g4 5. c7xd8Q++ Ra8:d8 \
             6. Ng1-f3 Bg4xf3 7. Bf1-c4 Bf3xd1 8. O-O=",
            "1.e4 ♟a6 2.e5+= d5 3.ed6 ep ♞c6 4.dc7 ♝g4N 5.cd8/Q+!! ♜d8 6.♘f3 ♝f3 7.♗c4!? ♝d1 8.o-o",
            "1. e2e4 a7a6 2. e4e5 d7d5 3. e5d6 b8c6 4. d6c7 c8g4 5. c7d8q a8d8 6. g1f3 g4f3 \
             7. f1c4 f3d1 8. e1g1",
            "1. e4, 1. ... a6 2. e5 2. .. d5, 3. exd6, Nc6 4.dxc7 Bg4\n\n5. cxd8=Q+ Rxd8\n\n\
             6. Nf3 {a comment}\n\nBxf3\n\n{another} 7. Bc4 Bxd1\n; a line\n\n8. 0-0",
        ] {
            assert_eq!(played(text), standard, "{text}");
        }
    }

    #[test]
    fn a_game_with_a_move_that_cannot_be_read_is_passed_over() {
        let tags = "[White \"Sf3\"]\n[Result \"1-0\"]\n\n";
        let good = "1. e4 (1. Sf3) e5 {Sf3} (1... -- 2. Sf3) 2. Nf3";
        let text = [
            "1. e4 e5 2. Sf3 Sc6 3. d4 exd4",
            good,
            "1. e4 -- 2. d4",
            good,
        ]
        .map(|text| format!("{tags}{text} 1-0\n\n"))
        .concat();
        let unreadable = Err(Skipped::UnreadableMove);
        assert_eq!(games(&text), [unreadable, Ok(3), unreadable, Ok(3)]);
    }

    #[test]
    fn games_end_where_people_end_them() {
        let next = "[Event \"b\"]\n[Result \"0-1\"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n";
        let malformed = Err(Skipped::Malformed);
        for (first, expected) in [
            ("[Event \"a\"]\n\n1. e4 e5 2. Nf3 1-0", Ok(3)),
            ("[Event \"a\"]\n\n1. e4 e5 2. Nf3 1-0 ", Ok(3)),
            ("[Event \"a\"]\n\n1. e4 e5 2. Nf3 *", Ok(3)),
            (
                "[Event \"a\"]\r\n\r\n1. e4 e5\r\n\r\n2. Nf3 1/2-1/2\r\n",
                Ok(3),
            ),
            ("1. e4 e5 2. Nf3\n\n", Ok(3)),
            ("1. e4 ; {\r\ne5 2. Nf3\n", Ok(3)),
            ("[Event \"a\"]\n[FEN \"\"]\n\n1. e4 e5 *\n\n", Ok(2)),
            ("[Event \"a\"]\n\n1. e4 {never closed 1-0\n\n", malformed),
            (
                "[Event \"a\"]\n\n1. e4 {[%eval 0.3]\n[never\n\n closed 1-0\n",
                malformed,
            ),
            ("[Event \"a\"]\n\n1. e4 (1. d4 {never 1-0\n\n", malformed),
            ("[Event \"a\"]\n\n1. e4 (1. d4 d5 1-0\n\n", malformed),
            (
                "[Event \"a\"]\n\n1. e4 {a\n[%csl Ga1]\n[White \"quoted\"]\n} e5 *\n\n",
                Ok(2),
            ),
        ] {
            assert_eq!(
                games(&format!("{first}{next}")),
                [expected, Ok(4)],
                "{first}"
            );
        }
        assert_eq!(games("1. e4 {never closed\n\n"), [malformed]);
        assert_eq!(
            games("1. e4 e5\n\n1. d4 d5\n1. c4 c5 2. g3"),
            [Ok(2), Ok(2), Ok(3)]
        );
        assert_eq!(games("1. e4 e5 2. Nf3 *\n\n1. d4 d5 *\n"), [Ok(3), Ok(2)]);
        assert_eq!(
            games("1. e4\n\n1... e5 2. Nf3"),
            [Ok(3)],
            "one game with an empty line"
        );
        assert_eq!(games("1. e4 (1. d4\n1. d5) e5"), [Ok(2)]);
        let unclosed_before_other_tags =
            "[Event \"a\"]\n\n1. e4 {x *\n\n[White \"b\"]\n\n1. d4 *\n";
        assert_eq!(games(unclosed_before_other_tags), [malformed, Ok(1)]);
    }
}
