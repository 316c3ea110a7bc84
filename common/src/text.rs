//! Text from outside that people are shown: on pages, in terminals, in logs.

/// Whether a text has at most so many characters, and none that moves what stands around it: none
/// of control, and none that changes the direction of writing or ends a line.
pub fn is_plain(text: &str, most: usize) -> bool {
    text.chars().count() <= most && !text.chars().any(moves_others)
}

/// The first characters of a text, at most so many, without those that [`is_plain`] does not allow.
pub fn printable(text: &str, most: usize) -> String {
    let shown = text.chars().filter(|c| !moves_others(*c));
    shown.take(most).collect()
}

/// Whether a terminal or a page would move what stands around this character.
fn moves_others(c: char) -> bool {
    let directs = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    directs || c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_mislead_whoever_reads_them_are_told_apart() {
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
            "rookery-trainer 0.1.01",
        ] {
            assert!(!is_plain(odd, 21), "{odd:?}");
            assert!(is_plain(&printable(odd, 21), 21), "{odd:?}");
        }
    }

    #[test]
    fn no_stranger_steers_the_terminal() {
        let text = "a\u{1b}[2J\u{9b}b\r\nc\u{7f}\u{202e}";
        assert_eq!(printable(text, 100), "a[2Jbc");
        assert_eq!(printable("♞♞♞", 2), "♞♞");
    }
}
