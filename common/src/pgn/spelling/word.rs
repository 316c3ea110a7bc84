//! One word of a game: a move in whatever spelling, written as the standard has it.

use std::borrow::Cow;

use shakmaty::san::{San, SanPlus};
use shakmaty::uci::UciMove;
use shakmaty::{Chess, Move, Role, Square};

/// A null move, as a word of its own also after a move's number.
const UNREADABLE: &[u8] = b" --";
/// The suffix of a novelty, a move that was not played before.
const NOVELTY: &str = "N";

/// A word as the reader understands it.
pub(super) fn respelled(word: &[u8]) -> Cow<'_, [u8]> {
    if SanPlus::from_ascii(word).is_ok() {
        return word.into();
    }
    let is_square = |pair: &[u8]| matches!(pair, [b'a'..=b'h', b'1'..=b'8']);
    let Some(at) = word.windows(2).rposition(is_square) else {
        return without_square(word);
    };
    let (before, rest) = word.split_at(at);
    let (target, after) = rest.split_at(2);
    let standard = || {
        let (piece, origin) = origin(before)?;
        let may_promote = matches!(piece, b"" | b"P") && matches!(target[1], b'1' | b'8');
        let promotion = promotion(after, may_promote)?;
        Some([piece, &origin, target, &promotion].concat())
    };
    standard().map_or(UNREADABLE.into(), Cow::from)
}

/// Castling as the standard has it, of a word with other letters, zeros or dashes, or without dashes.
pub(super) fn castling(word: &[u8]) -> Option<&'static [u8]> {
    // The last two are Cyrillic.
    const ROUND: [&str; 5] = ["O", "o", "0", "\u{41e}", "\u{43e}"];
    const DASHES: [&str; 5] = ["-", "\u{2010}", "\u{2011}", "\u{2013}", "\u{2014}"];
    let mut after = without(word, &ROUND)?;
    let mut count = 1;
    while let Some(next) = without(without(after, &DASHES).unwrap_or(after), &ROUND) {
        (after, count) = (next, count + 1);
    }
    let castling = match count {
        2 => b"O-O".as_slice(),
        3 => b"O-O-O",
        _ => return None,
    };
    let is_number = word.iter().all(u8::is_ascii_digit);
    (!is_number && are_signs(without(after, &[NOVELTY]).unwrap_or(after))).then_some(castling)
}

/// A word that names no square: castling behind a number, a pawn that takes another (`ed`, `exd`), or nothing
/// of importance.
fn without_square(word: &[u8]) -> Cow<'_, [u8]> {
    if let Some(castling) = castling(word) {
        return castling.into();
    }
    match word {
        [from @ b'a'..=b'h', to @ b'a'..=b'h']
        | [from @ b'a'..=b'h', b'x' | b':', to @ b'a'..=b'h']
            if from.abs_diff(*to) == 1 =>
        {
            UNREADABLE.into()
        }
        _ => word.into(),
    }
}

/// What stands before a move's target: the piece's letter, and whence it comes and whether it takes.
fn origin(before: &[u8]) -> Option<(&[u8], Vec<u8>)> {
    // In the order of their characters, White's and then Black's.
    const FIGURINES: &[u8; 12] = b"KQRBNPKQRBNP";
    let (piece, rest) = match before {
        [b'K' | b'Q' | b'R' | b'B' | b'N' | b'P', rest @ ..] => (&before[..1], rest),
        [0xe2, 0x99, figurine @ 0x94..=0x9f, rest @ ..] => {
            let place = usize::from(*figurine - 0x94);
            (&FIGURINES[place..=place], rest)
        }
        rest => (b"".as_slice(), rest),
    };
    let (from, takes) = match rest {
        [from @ .., b'x' | b':'] => (from, b"x".as_slice()),
        [from @ .., b'-'] | from => (from, b"".as_slice()),
    };
    matches!(
        from,
        [] | [b'a'..=b'h'] | [b'1'..=b'8'] | [b'a'..=b'h', b'1'..=b'8']
    )
    .then(|| (piece, [from, takes].concat()))
}

/// What stands after a move's target: a promotion, if there may be one, and signs, which are left out.
fn promotion(after: &[u8], may_promote: bool) -> Option<Vec<u8>> {
    let (role, signs) = match after {
        [b'=' | b'/', role, signs @ ..] | [role, signs @ ..]
            if may_promote && b"QRBNqrbn".contains(role) =>
        {
            (vec![b'=', *role], signs)
        }
        signs => (Vec::new(), signs),
    };
    // `e` is what a point leaves of `e.p.`.
    let signs = without(signs, &["ep", "e", NOVELTY]).unwrap_or(signs);
    are_signs(signs).then_some(role)
}

/// What follows the first of these beginnings that a text has.
fn without<'a>(text: &'a [u8], begins: &[&str]) -> Option<&'a [u8]> {
    let mut begins = begins.iter();
    begins.find_map(|begin| text.strip_prefix(begin.as_bytes()))
}

/// Whether this says only check, mate or what a move is worth.
fn are_signs(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| !byte.is_ascii_alphanumeric())
}

/// The move that is meant, also where the text does not say rightly whether it takes (`ed5`), or names squares
/// only (`g1f3`, as UCI does).
pub(in crate::pgn) fn meant(san: San, position: &Chess) -> Option<Move> {
    let exact = san.to_move(position).ok();
    exact.or_else(|| match san {
        San::Normal {
            role: Role::Pawn,
            file: Some(file),
            rank: Some(rank),
            to,
            promotion,
            ..
        } => {
            let from = Square::from_coords(file, rank);
            let squares = UciMove::Normal {
                from,
                to,
                promotion,
            };
            squares.to_move(position).ok()
        }
        San::Normal {
            role,
            file,
            rank,
            capture,
            to,
            promotion,
        } => {
            let other = San::Normal {
                role,
                file,
                rank,
                capture: !capture,
                to,
                promotion,
            };
            other.to_move(position).ok()
        }
        _ => None,
    })
}
