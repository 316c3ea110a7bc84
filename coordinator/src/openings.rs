//! Names of openings, from [lichess-org/chess-openings](https://github.com/lichess-org/chess-openings), which is in the
//! public domain (CC0): positions of the first six moves, each with its code of the Encyclopaedia of Chess Openings.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use rookery_common::chess::fen;
use shakmaty::Chess;

/// A name for the first moves of a game.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// The ECO code, A00 to E99.
    pub code: &'static str,
    /// The name with its variation: `Ruy Lopez: Berlin Defense`.
    pub name: &'static str,
}

/// Which openings somebody looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpeningFilter {
    /// Those of an ECO code.
    Code(&'static str),
    /// An opening with all its variations.
    Family(&'static str),
}

/// Openings by the pieces and the side to move, as FEN writes them.
static OPENINGS: LazyLock<HashMap<&str, Opening>> = LazyLock::new(|| {
    let lines = include_str!("../data/openings.tsv").lines();
    let entry = |line: &'static str| {
        let (position, rest) = line.split_once('\t')?;
        let (code, name) = rest.split_once('\t')?;
        Some((position, Opening { code, name }))
    };
    lines.filter_map(entry).collect()
});

/// Every filter by what somebody writes for it, in small letters.
static FILTERS: LazyLock<BTreeMap<String, OpeningFilter>> = LazyLock::new(|| {
    let of = |opening: &Opening| {
        let (code, family) = (opening.code, opening.family());
        [
            (code.to_lowercase(), OpeningFilter::Code(code)),
            (family.to_lowercase(), OpeningFilter::Family(family)),
        ]
    };
    OPENINGS.values().flat_map(of).collect()
});

impl Opening {
    /// The name of the last of a game's first positions that has one.
    pub fn of<'a>(first: impl Iterator<Item = &'a Chess>) -> Option<Self> {
        let named = first.filter_map(|position| {
            let fen = fen(position);
            let (pieces, rest) = fen.split_once(' ')?;
            let turn = rest.get(..1)?;
            OPENINGS.get(format!("{pieces} {turn}").as_str()).copied()
        });
        named.last()
    }

    /// The name without its variation: `Ruy Lopez`.
    pub fn family(&self) -> &'static str {
        self.name.split([':', ',']).next().unwrap_or(self.name)
    }
}

impl OpeningFilter {
    /// What a code or a name without its variation stands for, in any case. The first words of a name are enough if no
    /// other begins with them: `sicilian`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        let of_words = || {
            let words = text.clone() + " ";
            let mut found = FILTERS.range(words.clone()..);
            let mut next = || found.next().filter(|(name, _)| name.starts_with(&words));
            let (only, other) = (next(), next());
            only.filter(|_| other.is_none())
        };
        let exact = FILTERS.get_key_value(&text);
        exact.or_else(of_words).map(|(_, filter)| *filter)
    }

    /// What [`Self::parse`] takes for it.
    pub const fn text(&self) -> &'static str {
        match self {
            Self::Code(text) | Self::Family(text) => text,
        }
    }

    /// The names without variations, in order.
    pub fn families() -> impl Iterator<Item = &'static str> {
        FILTERS.values().filter_map(|filter| match filter {
            Self::Code(_) => None,
            Self::Family(name) => Some(*name),
        })
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
    fn openings_are_looked_for_by_code_or_by_name_without_variation() {
        let ruy_lopez = Some(OpeningFilter::Family("Ruy Lopez"));
        assert_eq!(OpeningFilter::parse(" ruy lopez"), ruy_lopez);
        assert_eq!(
            OpeningFilter::parse("c60"),
            Some(OpeningFilter::Code("C60"))
        );
        assert_eq!(OpeningFilter::parse("Ruy"), ruy_lopez);
        for unknown in ["", "F00", "Ru", "King's", "Ruy Lopez: Berlin Defense"] {
            assert_eq!(OpeningFilter::parse(unknown), None, "{unknown}");
        }
        let families: Vec<_> = OpeningFilter::families().collect();
        assert!(
            families.is_sorted() && families.len() == 142,
            "{families:?}"
        );
    }

    #[test]
    fn every_line_of_the_data_is_an_opening() {
        let lines = include_str!("../data/openings.tsv").lines().count();
        assert_eq!((OPENINGS.len(), lines), (2_670, 2_670));
        assert!(OPENINGS.values().all(|opening| opening.code.len() == 3));
    }
}
