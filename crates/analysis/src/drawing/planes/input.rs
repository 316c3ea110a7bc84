//! Input planes with their names.

use rookery_common::chess::GameHistory;
use rookery_common::encoding::InputEncoding;

use super::Plane;

const PIECES: [&str; 12] = [
    "pawn", "knight", "bishop", "rook", "queen", "king", "-pawn", "-knight", "-bishop", "-rook",
    "-queen", "-king",
];

/// Boards in a row: what belongs to one position.
pub(super) const fn columns(encoding: InputEncoding) -> usize {
    match encoding {
        InputEncoding::Lc0112 => 13,
        InputEncoding::Az119 => 14,
        InputEncoding::Classic19 => 6,
    }
}

/// The planes of the position on the board; counts are shown as shares of what they are divided
/// by.
pub(super) fn planes(encoding: InputEncoding, game: &GameHistory) -> Vec<Plane> {
    let packed = encoding.encode(game);
    let binary = packed.binary.iter().map(|bits| {
        let bit = |square: usize| Some((bits >> square & 1) as f32);
        std::array::from_fn(bit)
    });
    let scalars = packed.scalars.iter().zip(encoding.scalar_scales());
    let scalars = scalars.map(|(value, scale)| [Some(value / scale); 64]);
    let planes = binary.chain(scalars).zip(names(encoding));
    planes.map(|(cells, name)| Plane { name, cells }).collect()
}

/// The names of an encoding's planes (`docs/formats.md`); a minus stands for the opponent, a number
/// for this number of plies before.
fn names(encoding: InputEncoding) -> Vec<String> {
    let (boards, extra, rest): (usize, &[&str], &[&str]) = match encoding {
        InputEncoding::Lc0112 => (
            8,
            &["repeated"],
            &[
                "O-O-O", "O-O", "-O-O-O", "-O-O", "black", "rule 50", "zeros", "ones",
            ],
        ),
        InputEncoding::Az119 => (
            8,
            &["repeated", "twice"],
            &[
                "black", "moves", "O-O", "O-O-O", "-O-O", "-O-O-O", "rule 50",
            ],
        ),
        InputEncoding::Classic19 => (
            1,
            &[],
            &[
                "O-O",
                "O-O-O",
                "-O-O",
                "-O-O-O",
                "en passant",
                "rule 50",
                "black",
            ],
        ),
    };
    let board = |back: usize| {
        PIECES.iter().chain(extra).map(move |name| match back {
            0 => (*name).to_owned(),
            _ => format!("{back} {name}"),
        })
    };
    let rest = rest.iter().map(|name| (*name).to_owned());
    (0..boards).flat_map(board).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plane_has_a_name() {
        for encoding in InputEncoding::ALL {
            let planes = planes(encoding, &GameHistory::default());
            let count = encoding.planes();
            assert_eq!((planes.len(), names(encoding).len()), (count, count));
        }
    }
}
