//! The position from which a game began, in words.

use shakmaty::{ByRole, Chess, Color, Position as _, Role};

/// Pieces of each kind at the start of an ordinary game, with their names and values.
const PIECES: [(Role, &str, u8, u32); 5] = [
    (Role::Queen, "queen", 1, 9),
    (Role::Rook, "rook", 2, 5),
    (Role::Bishop, "bishop", 2, 3),
    (Role::Knight, "knight", 2, 3),
    (Role::Pawn, "pawn", 8, 1),
];
/// If a side lacks more kinds of pieces, they are not named.
const NAMED: usize = 2;

/// The material of a game's first position.
pub(super) struct Setup {
    white: ByRole<u8>,
    black: ByRole<u8>,
}

impl Setup {
    pub(super) fn of(position: &Chess) -> Self {
        let material = |color| position.board().material_side(color);
        Self {
            white: material(Color::White),
            black: material(Color::Black),
        }
    }

    /// Whether both sides have pieces of the same value.
    pub(super) fn is_level(&self) -> bool {
        value(&self.white) == value(&self.black)
    }

    /// `from a set-up position`, with what is missing if one side has less: `: White without a queen`.
    pub(super) fn in_words(&self) -> String {
        let start = "from a set-up position";
        let sides = [("White", &self.white), ("Black", &self.black)];
        let missing = sides.map(|(name, side)| (name, missing(side)));
        if self.is_level() || missing.iter().any(|(_, pieces)| pieces.len() > NAMED) {
            return start.to_owned();
        }
        let missing = missing.into_iter().filter(|(_, pieces)| !pieces.is_empty());
        let missing =
            missing.map(|(name, pieces)| format!("{name} without {}", pieces.join(" and ")));
        format!("{start}: {}", missing.collect::<Vec<_>>().join(", "))
    }
}

fn value(side: &ByRole<u8>) -> u32 {
    let values = PIECES
        .iter()
        .map(|(role, _, _, value)| u32::from(*side.get(*role)) * value);
    values.sum()
}

/// The pieces that a side lacks, kind by kind.
fn missing(side: &ByRole<u8>) -> Vec<String> {
    let lacks = PIECES.iter().filter_map(|(role, name, whole, _)| {
        match whole.saturating_sub(*side.get(*role)) {
            0 => None,
            1 => Some(format!("a {name}")),
            n => Some(format!("{n} {name}s")),
        }
    });
    lacks.collect()
}

#[cfg(test)]
mod tests {
    use rookery_common::chunk::GameStart;

    use super::*;

    #[test]
    fn a_side_with_less_material_is_told_by_its_missing_pieces() {
        let start = "from a set-up position";
        let queen = format!("{start}: White without a queen");
        let both = format!("{start}: White without a queen and 2 rooks, Black without a knight");
        for (fen, level, said) in [
            ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR", true, start),
            ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNB1KBNR", false, &queen),
            ("r1bqkbnr/pppppppp/8/8/8/8/PPPPPPPP/1NB1KBN1", false, &both),
            ("r1bqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RN1QKBNR", true, start),
            ("4k3/8/8/8/8/8/8/3QK3", false, start),
        ] {
            let game = GameStart {
                fen: Some(format!("{fen} w - - 0 1")),
                moves: Vec::new(),
            };
            let setup = Setup::of(game.origin().unwrap().position());
            assert_eq!(
                (setup.is_level(), setup.in_words().as_str()),
                (level, said),
                "{fen}"
            );
        }
    }
}
