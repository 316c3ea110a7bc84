//! Text that people are shown, on pages, in terminals and in logs: what came from outside, and numbers with their nouns.

use std::fmt::Display;

use unicode_width::UnicodeWidthChar as _;

/// Whether a text has at most this number of characters, and none that moves what stands around it: none
/// of control, and none that changes the direction of writing, ends a line or is not seen.
pub fn is_plain(text: &str, most: usize) -> bool {
    text.chars().count() <= most && !text.chars().any(moves_others)
}

/// The first characters of a text, at most this number, without those that [`is_plain`] does not allow.
pub fn printable(text: &str, most: usize) -> String {
    let shown = text.chars().filter(|c| !moves_others(*c));
    shown.take(most).collect()
}

/// Whether a text shows nothing: it is empty, or of spaces and characters without width.
pub fn is_blank(text: &str) -> bool {
    let shows = |c: char| !c.is_whitespace() && c.width().is_some_and(|width| width > 0);
    !text.chars().any(shows)
}

/// A number with its noun, which is given in the singular.
///
/// ```
/// use rookery_common::text::quantity;
///
/// assert_eq!(quantity(1, "game"), "1 game");
/// assert_eq!(quantity(0, "finished game"), "0 finished games");
/// assert_eq!(quantity(2, "search"), "2 searches");
/// assert_eq!(quantity(3, "try"), "3 tries");
/// ```
pub fn quantity<N: Display + PartialEq + From<u8> + Copy>(number: N, noun: &str) -> String {
    format!("{number} {}", plural(number, noun))
}

/// The noun of a number that is written by other means, as [`quantity`] has it.
pub fn plural<N: PartialEq + From<u8> + Copy>(number: N, noun: &str) -> String {
    if number == N::from(1) {
        return noun.to_owned();
    }
    let stem = noun.strip_suffix('y');
    match stem.filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u'])) {
        Some(stem) => format!("{stem}ies"),
        None if noun.ends_with(['s', 'x']) || noun.ends_with("ch") => format!("{noun}es"),
        None => format!("{noun}s"),
    }
}

/// Whether a terminal or a page would move what stands around this character, or show nothing of it.
fn moves_others(c: char) -> bool {
    let directs = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    // Joiners are not among them: words of some scripts need them.
    let hides = matches!(
        c,
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    );
    directs || hides || c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// An address or another value as it may be shown: what may be a password, a query or a token is `***`.
pub fn without_secrets(text: &str) -> String {
    let text = text.trim();
    if ["rk_", "ri_"].iter().any(|start| text.starts_with(start)) {
        return "***".to_owned();
    }
    let start = text.find("//").map_or(0, |at| at + 2);
    let (before, mut rest) = (&text[..start], &text[start..]);
    let mut shown = before.to_owned();
    if let Some((_, host)) = rest.rsplit_once('@') {
        shown += "***@";
        rest = host;
    }
    match rest.find(['?', '#']) {
        Some(at) => shown + &rest[..=at] + "***",
        None => shown + rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_addresses_are_not_shown() {
        for (text, shown) in [
            (
                "https://rookery.example.org/a",
                "https://rookery.example.org/a",
            ),
            ("postgres://ann:se@c//ret@db/x", "postgres://***@db/x"),
            ("ann:secret@db", "***@db"),
            ("s3://bucket?secret=x", "s3://bucket?***"),
            ("https://a b:secret@x y#secret", "https://***@x y#***"),
            (" rk_secret", "***"),
            ("ri_secret", "***"),
            ("", ""),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }

    #[test]
    fn texts_that_mislead_readers_are_not_plain() {
        for plain in ["", "loss", "rookery-trainer 0.1.0", "Übung №1", "עברית"] {
            assert!(is_plain(plain, 21), "{plain:?}");
        }
        for odd in [
            "a\0",
            "a\n",
            "\u{1b}[2J",
            "\u{9b}2J",
            "\u{202e}ssol",
            "a\u{200f}",
            "\u{61c}1",
            "a\u{2028}b",
            "\u{2066}a\u{2069}",
            "a\u{200b}b",
            "a\u{feff}",
            "rookery-trainer 0.1.01",
        ] {
            assert!(!is_plain(odd, 21), "{odd:?}");
            assert!(is_plain(&printable(odd, 21), 21), "{odd:?}");
        }
    }

    #[test]
    fn texts_that_show_nothing_are_blank() {
        for blank in [
            "",
            " ",
            "\u{200b}",
            "\u{200d}\u{2060}",
            "\u{3164}",
            "\u{a0}\t",
            "\u{ad}",
        ] {
            assert!(is_blank(blank), "{blank:?}");
        }
        for shown in ["a", "\u{200b}a", "é", "♞", "א"] {
            assert!(!is_blank(shown), "{shown:?}");
        }
    }

    #[test]
    fn one_of_a_thing_is_singular() {
        assert_eq!(quantity(1_u64, "chunk"), "1 chunk");
        assert_eq!(quantity(2_usize, "day"), "2 days");
        assert_eq!(quantity(0_u32, "entry"), "0 entries");
        assert_eq!(quantity(4_i64, "loss"), "4 losses");
    }

    #[test]
    fn no_stranger_steers_the_terminal() {
        let text = "a\u{1b}[2J\u{9b}b\r\nc\u{7f}\u{202e}";
        assert_eq!(printable(text, 100), "a[2Jbc");
        assert_eq!(printable("♞♞♞", 2), "♞♞");
    }
}
