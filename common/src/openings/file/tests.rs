use std::io::{Read as _, Write as _};

use super::*;

const START: &str = "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq -";

fn file(name: &str, bytes: impl AsRef<[u8]>) -> Result<BookFile, BookError> {
    OpeningBook::from_file(Path::new(name), bytes.as_ref())
}

fn openings(name: &str, bytes: impl AsRef<[u8]>) -> Vec<Opening> {
    let read = file(name, bytes.as_ref());
    let read = read.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(read.passed_over, [""; 0], "{name}");
    read.book.openings
}

fn moves(name: &str, text: &str) -> Vec<String> {
    let openings = openings(name, text);
    openings
        .iter()
        .map(|opening| opening.moves.join(" "))
        .collect()
}

#[test]
fn counters_of_positions_are_kept_however_they_are_written() {
    for (rest, counters) in [
        ("", "0 1"),
        (" 37 60", "37 60"),
        (" 37 60;", "37 60"),
        (" hmvc 37; fmvn 60;", "37 60"),
        (" fmvn 60; hmvc 37;", "37 60"),
        (
            " bm Nf3; id \"x; hmvc 5; y\"; hmvc 37; fmvn 60; c0 \"z\";",
            "37 60",
        ),
        (" hmvc 2;", "2 1"),
        (" bm Nf3;", "0 1"),
        (" id \"hmvc 37\";", "0 1"),
    ] {
        let text = format!("\u{feff}# book\r\n{START}{rest}\r\n\r\n");
        let read = openings("book.epd", text);
        let expected = format!("{START} {counters}");
        assert_eq!(read[0].fen.as_deref(), Some(expected.as_str()), "{rest}");
        assert_eq!(read.len(), 1);
    }
}

#[test]
fn comments_do_not_make_games_of_positions() {
    for comment in ["# a", "; b", "% c", "#", ";"] {
        let text = format!("{comment}\n{START}\n{comment}\n{START} 0 7\n");
        assert_eq!(openings("book.epd", &text).len(), 2, "{comment}");
        let text = format!("{comment}\n[Event \"b\"]\n\n{comment}\n1. d4 d5 *\n");
        if !comment.starts_with('#') {
            assert_eq!(moves("book", &text), ["d2d4 d7d5"], "{comment}");
        }
    }
}

#[test]
fn a_bad_position_is_named_with_its_line() {
    for (text, expected) in [
        ("\nnonsense here too yes\n", "line 2"),
        ("root:x:0:0\n", "less than four fields"),
        ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "a finished game"),
        ("8/8/8/8/8/8/8/8 w - - 0 1", "line 1"),
    ] {
        let error = file("book.txt", text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let rights = openings("x.epd", "4k3/8/8/8/8/8/4P3/4K2R w KQkq - 0 1");
    let fen = rights[0].fen.as_deref();
    assert_eq!(fen, Some("4k3/8/8/8/8/8/4P3/4K2R w K - 0 1"));
}

#[test]
fn games_are_lines_however_people_write_them() {
    let standard = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
    for (text, expected) in [
        (
            "[Event \"a\"]\n\n1. e4 {king's pawn} e5 2. Nf3 (2. f4 exf4) Nc6 *\n\n[Event \"b\"]\n\n1.d4 d5!? 1/2-1/2\n",
            &["e2e4 e7e5 g1f3 b8c6", "d2d4 d7d5"][..],
        ),
        ("\u{feff}[Event \"a\"]\n\n1. e4 *", &["e2e4"]),
        ("% escaped\n1. e4$1 e5!$14 *", &["e2e4 e7e5"]),
        ("1. e4 1. ... e5 2. Nf3, Nc6 *", &["e2e4 e7e5 g1f3 b8c6"]),
        (
            "1. Nf3 d5 2. g3 c6 3. Bg2 Bg4 4. 0-0 Qd7 5. h3 Na6 6. hxg4 0-0-0 *",
            &["g1f3 d7d5 g2g3 c7c6 f1g2 c8g4 e1g1 d8d7 h2h3 b8a6 h3g4 e8c8"],
        ),
        ("1. e4 e5\n\n1. d4 d5\n", &["e2e4 e7e5", "d2d4 d7d5"]),
        ("1. e4 {best} 1... e5 2. Nf3", &["e2e4 e7e5 g1f3"]),
        (
            "1. e4 e5 1-0[Event \"b\"]\n\n1. d4 *",
            &["e2e4 e7e5", "d2d4"],
        ),
        ("[Event \"a\"]\n[FEN \"\"]\n\n1. e4 *\n", &["e2e4"]),
        (&format!("[FEN \"{standard}\"]\n\n1. e4 *\n"), &["e2e4"]),
        ("1. e4 e5\n\n2. Nf3 *", &["e2e4 e7e5 g1f3"]),
        ("1. e4 ) e5 *", &["e2e4 e7e5"]),
    ] {
        assert_eq!(moves("book.pgn", text), expected, "{text}");
        assert!(
            openings("book.pgn", text)
                .iter()
                .all(|line| line.fen.is_none())
        );
    }
}

#[test]
fn openings_have_forty_plies_at_most() {
    let steps = |white: u32, black: u32| {
        let step = move |file: char| format!("{file}{white} {file}{black} ");
        ('a'..='h').map(step).collect::<String>()
    };
    let rest = "Na3 Na6 Nf3 Nf6 Be2 Be7 Nb1 Nb8 Ng1 Ng8 *";
    let game = steps(3, 6) + &steps(4, 5) + rest;
    let read = openings("x.pgn", game);
    assert_eq!((read.len(), read[0].moves.len()), (1, LONGEST));
}

#[test]
fn games_from_other_positions_begin_there() {
    let fen = "rnbqkbnr/pppp1ppp/8/4p3/6P1/5P2/PPPPP2P/RNBQKBNR b KQkq - 3 12";
    let chess960 = "nqrnbbkr/pppppppp/8/8/8/8/PPPPPPPP/NQRNBBKR w KQkq - 0 1";
    let text = format!(
        "[FEN \"{fen}\"]\n\n12... d5 *\n\n[FEN \"{fen}\"]\n\n*\n\n\
         [Variant \"Chess960\"]\n[FEN \"{chess960}\"]\n\n1. d3 d6 *\n"
    );
    let read = openings("book.pgn", text);
    assert_eq!(read[0].fen.as_deref(), Some(fen));
    assert_eq!(read[0].moves, ["d7d5"]);
    assert_eq!(
        (read[1].fen.as_deref(), read[1].moves.len()),
        (Some(fen), 0)
    );
    assert_eq!(read[2].moves, ["d2d3", "d7d6"]);
    for opening in read {
        opening.start().unwrap();
    }
}

#[test]
fn games_that_cannot_be_used_are_passed_over_and_counted() {
    let good = "[Event \"b\"]\n\n1. d4 {a comment} d5 *\n";
    let drawn = "Nf3 Nf6 Ng1 Ng8 ".repeat(2);
    let too_late = format!("{drawn} e4 *");
    let from = |game: &str| file("book.pgn", format!("[Event \"a\"]\n\n{game}\n\n{good}"));
    for (game, reason) in [
        ("1. e4 e4 *", "1 game: illegal move (first: game 1)"),
        ("1. e4 -- *", "null move"),
        ("1. e4 {e5 *", "never ends"),
        ("1. e4 (1. d4 e5 *", "never ends"),
        ("1. f3 e5 2. g4 Qh4# 0-1", "over before its opening is"),
        (&too_late, "over before its opening is"),
    ] {
        let read = from(game).unwrap();
        assert_eq!(read.book.openings.len(), 1, "{game}");
        assert!(read.passed_over[0].contains(reason), "{game}: {read:?}");
        let error = file("book.pgn", format!("{game}\n")).unwrap_err();
        assert!(error.to_string().contains(reason), "{game}: {error}");
    }
    assert_eq!(file("book.pgn", "*"), Err(BookError::Empty));
    assert_eq!(file("book.epd", ""), Err(BookError::Empty));
}

#[test]
fn tables_give_a_column_of_lines_or_positions() {
    let lichess = "eco\tname\tpgn\nA00\tAmar Opening\t1. Nh3\nA00\tGedult\t1. Nh3 d5 2. g3\n";
    assert_eq!(moves("a.tsv", lichess), ["g1h3", "g1h3 d7d5 g2g3"]);
    let long = format!("\u{feff}eco,name,pgn,uci,epd\r\nA00,\"Amar, the\",1. Nh3,g1h3,{START}\r\n");
    assert_eq!(moves("openings", &long), ["g1h3"]);
    assert_eq!(moves("x.csv", "name;uci\nx;g1h3 d7d5\n"), ["g1h3 d7d5"]);
    let other = START.replace("KQkq", "KQ");
    for text in [
        format!("FEN\n{START} 3 9\n{other} 3 9\n"),
        format!("id,fen,moves\na,{START} 3 9,e2e4\n\nb,\"{other} 3 9\",\n"),
        format!("{START} 3 9,a\n{other} 3 9,b\n"),
        format!("a\t{START} 3 9\nb\t{other} 3 9\n"),
    ] {
        let fens: Vec<_> = openings("book.csv", &text)
            .into_iter()
            .map(|opening| opening.fen.unwrap())
            .collect();
        assert_eq!(
            fens,
            [format!("{START} 3 9"), format!("{other} 3 9")],
            "{text}"
        );
    }
    for (text, expected) in [
        ("fen,name\nnonsense,x\n", "line 2"),
        ("name,fen\nx\n", "line 2: it has too few columns"),
        ("name,pgn\nx,1. e5\n", "illegal move (first: game 1)"),
    ] {
        let error = file("book.csv", text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let epd = format!("{START} bm Nf3; id \"a, b\";\n{START} c0 \"x,y\";\n");
    assert_eq!(openings("book.epd", epd).len(), 2, "commas make no table");
}

#[test]
fn books_may_be_compressed_and_content_counts_more_than_names() {
    let text = format!("{START} 37 60\n");
    let expected = openings("book.epd", &text);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    for bytes in [gzip.finish().unwrap(), zstd, text.into_bytes()] {
        for name in ["book.epd.gz", "book.pgn", "book", "book.csv.zst"] {
            assert_eq!(openings(name, &bytes), expected, "{name}");
        }
    }
    let game = "[Event \"x\"]\n\n1. e4 *\n";
    assert_eq!(moves("book.epd", game), ["e2e4"]);
    assert_eq!(moves("book.pgn", "e4 e5\n"), ["e2e4 e7e5"]);
    let bomb = std::io::repeat(b'\n').take(LONGEST_BOOK + 1);
    let bomb = zstd::encode_all(bomb, 1).unwrap();
    for (bytes, expected) in [
        (
            b"PK\x03\x04\x14\0".as_slice(),
            "a zip archive; unpack it first",
        ),
        (b"<!DOCTYPE html>", "a web page"),
        (&bomb, "more than 256 MiB"),
    ] {
        let error = file("book.pgn", bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
