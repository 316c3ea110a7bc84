//! Names of openings, from [lichess-org/chess-openings](https://github.com/lichess-org/chess-openings), which is in the
//! public domain (CC0): positions of the first six moves, each with its code of the Encyclopaedia of Chess Openings.

use std::collections::HashMap;
use std::sync::LazyLock;

use rookery_common::chess::fen;
use shakmaty::Chess;

/// Plies in which names are looked for.
const PLIES: usize = 12;

/// A name for the first moves of a game.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opening {
    /// The code, A00 to E99.
    pub(super) code: &'static str,
    pub(super) name: &'static str,
}

/// Openings by the pieces and the side to move, as FEN writes them.
static OPENINGS: LazyLock<HashMap<&str, Opening>> = LazyLock::new(|| {
    let lines = include_str!("../../data/openings.tsv").lines();
    let entry = |line: &'static str| {
        let (position, rest) = line.split_once('\t')?;
        let (code, name) = rest.split_once('\t')?;
        Some((position, Opening { code, name }))
    };
    lines.filter_map(entry).collect()
});

impl Opening {
    /// The last of a game's positions that has a name.
    pub(super) fn of<'a>(positions: impl Iterator<Item = &'a Chess>) -> Option<Self> {
        let named = positions.take(PLIES + 1).filter_map(|position| {
            let fen = fen(position);
            let (pieces, rest) = fen.split_once(' ')?;
            let turn = rest.get(..1)?;
            OPENINGS.get(format!("{pieces} {turn}").as_str()).copied()
        });
        named.last()
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::chess::GameHistory;
    use rookery_common::chess::moves::parse_uci;

    use super::*;

    fn name_of(moves: &str) -> Option<(&'static str, &'static str)> {
        let mut game = GameHistory::default();
        let mut positions = vec![game.position().clone()];
        for text in moves.split_whitespace() {
            game.push(parse_uci(game.position(), text).unwrap());
            positions.push(game.position().clone());
        }
        Opening::of(positions.iter()).map(|opening| (opening.code, opening.name))
    }

    #[test]
    fn the_deepest_named_position_counts_and_transpositions_too() {
        assert_eq!(name_of(""), None);
        let spanish = Some(("C60", "Ruy Lopez"));
        assert_eq!(name_of("e2e4 e7e5 g1f3 b8c6 f1b5"), spanish);
        assert_eq!(name_of("g1f3 b8c6 e2e4 e7e5 f1b5"), spanish);
        assert_eq!(name_of("e2e4 c7c5 h2h3"), name_of("e2e4 c7c5"));
    }

    #[test]
    fn every_line_of_the_data_is_an_opening() {
        let lines = include_str!("../../data/openings.tsv").lines().count();
        assert_eq!((OPENINGS.len(), lines), (2_670, 2_670));
        assert!(OPENINGS.values().all(|opening| opening.code.len() == 3));
    }
}
