//! Policy encodings: moves as indices of a network's policy output.
//!
//! A move is first seen by its mover (for Black, ranks are mirrored), then looked up. Castling is
//! king takes rook in `lc0-1858`; in `az-73` and `flat-1968` it is the king's move of two squares
//! where king and rook stand on their standard squares, and king takes rook elsewhere, so that
//! Chess960 needs no other encoding and no two legal moves share an index.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Color, File, Move, Position, Role, Square};
use utoipa::ToSchema;

use crate::chess::PackedMove;
use crate::names::names;

mod mirror;
mod tables;

use tables::{flat_moves, lc0_moves};

names! {
    /// Which output stands for which move.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
    pub enum PolicyEncoding {
        /// AlphaZero's 73 planes of 64 origin squares, index `64 * plane + square`.
        #[serde(rename = "az-73")]
        Az73 = "az-73",
        /// Every move that can occur in some position, in alphabetical order of its UCI text.
        #[serde(rename = "flat-1968")]
        Flat1968 = "flat-1968",
        /// Lc0's move list.
        #[serde(rename = "lc0-1858")]
        Lc01858 = "lc0-1858",
    }
}

/// A move as its mover sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct SeenMove {
    from: Square,
    to: Square,
    promotion: Option<Role>,
}

impl PolicyEncoding {
    /// Number of outputs.
    pub const fn size(self) -> usize {
        match self {
            Self::Az73 => 73 * 64,
            Self::Flat1968 => 1968,
            Self::Lc01858 => 1858,
        }
    }

    /// The index of a legal move of `mover`, below [`size`](Self::size). Two legal moves of one
    /// position never have the same index.
    ///
    /// # Examples
    ///
    /// Black's moves are seen from Black's side of the board:
    ///
    /// ```
    /// use rookery_common::chess::GameHistory;
    /// use rookery_common::chess::moves::parse_uci;
    /// use rookery_common::encoding::PolicyEncoding;
    ///
    /// let policy = PolicyEncoding::Lc01858;
    /// let index = |fen: &str, text: &str| {
    ///     let game = GameHistory::from_fen(fen).unwrap();
    ///     policy.index(parse_uci(game.position(), text).unwrap(), game.turn())
    /// };
    /// let white = index("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1", "e2e4");
    /// let black = index("4k3/4p3/8/8/8/8/8/4K3 b - - 0 1", "e7e5");
    /// assert_eq!(white, black);
    /// ```
    pub fn index(self, m: Move, mover: Color) -> u16 {
        self.table().get(self.written(m).seen_by(mover))
    }

    /// Adds the [`index`](Self::index) of each of a position's legal moves to the end of `into`.
    pub fn indices_into(
        self,
        moves: impl IntoIterator<Item = PackedMove>,
        position: &Chess,
        into: &mut Vec<u16>,
    ) {
        let (table, mover) = (self.table(), position.turn());
        let moves = moves.into_iter();
        if self == Self::Lc01858 {
            return into.extend(moves.map(|m| table.get(m.seen_by(mover))));
        }
        let index = |m: PackedMove| {
            let written = m.castling(position).map_or(m, king_by_two);
            table.get(written.seen_by(mover))
        };
        into.extend(moves.map(index));
    }

    /// The move with castling as this encoding writes it.
    fn written(self, m: Move) -> PackedMove {
        match (self, m) {
            (Self::Az73 | Self::Flat1968, Move::Castle { king, rook }) => king_by_two((king, rook)),
            _ => PackedMove::pack(m),
        }
    }

    fn table(self) -> &'static MoveIndex {
        static AZ: LazyLock<MoveIndex> = LazyLock::new(MoveIndex::az);
        static FLAT: LazyLock<MoveIndex> = LazyLock::new(|| MoveIndex::of_list(flat_moves()));
        static LC0: LazyLock<MoveIndex> = LazyLock::new(MoveIndex::lc0);
        match self {
            Self::Az73 => &AZ,
            Self::Flat1968 => &FLAT,
            Self::Lc01858 => &LC0,
        }
    }
}

/// Castling as the king's two-square move if king and rook stand on their standard squares.
fn king_by_two((king, rook): (Square, Square)) -> PackedMove {
    let to = standard_target(king, rook).unwrap_or(rook);
    PackedMove::of_parts(king, to, None)
}

fn standard_target(king: Square, rook: Square) -> Option<Square> {
    let target = match rook.file() {
        File::A => File::C,
        File::H => File::G,
        _ => return None,
    };
    (king.file() == File::E).then(|| Square::from_coords(target, king.rank()))
}

/// Index `64 * plane + from`. Planes 0 to 55: a queen's move, `7 * direction + distance - 1` with
/// directions N, NE, E, SE, S, SW, W, NW; 56 to 63: a knight's move, clockwise from NNE; 64 to 72:
/// underpromotion, `3 * direction + role` with directions capture towards a, straight, capture
/// towards h and roles knight, bishop, rook.
fn az_index(m: SeenMove) -> u16 {
    let file = i32::from(m.to.file()) - i32::from(m.from.file());
    let rank = i32::from(m.to.rank()) - i32::from(m.from.rank());
    let plane = match m.promotion {
        Some(role @ (Role::Knight | Role::Bishop | Role::Rook)) => {
            64 + 3 * (file + 1) + (role as i32 - Role::Knight as i32)
        }
        _ => queen_plane(file, rank).unwrap_or_else(|| knight_plane(file, rank)),
    };
    plane as u16 * 64 + u16::from(m.from)
}

fn queen_plane(file: i32, rank: i32) -> Option<i32> {
    const DIRECTIONS: [(i32, i32); 8] = [
        (0, 1),
        (1, 1),
        (1, 0),
        (1, -1),
        (0, -1),
        (-1, -1),
        (-1, 0),
        (-1, 1),
    ];
    if file != 0 && rank != 0 && file.abs() != rank.abs() {
        return None;
    }
    let direction = DIRECTIONS
        .iter()
        .position(|d| *d == (file.signum(), rank.signum()))?;
    Some(7 * direction as i32 + file.abs().max(rank.abs()) - 1)
}

fn knight_plane(file: i32, rank: i32) -> i32 {
    const JUMPS: [(i32, i32); 8] = [
        (1, 2),
        (2, 1),
        (2, -1),
        (1, -2),
        (-1, -2),
        (-2, -1),
        (-2, 1),
        (-1, 2),
    ];
    let jump = JUMPS.iter().position(|jump| *jump == (file, rank));
    56 + jump.unwrap_or_default() as i32
}

/// The index of every move, by [`PackedMove::place`].
struct MoveIndex(Vec<u16>);

impl MoveIndex {
    fn new(entries: impl Iterator<Item = (SeenMove, u16)>) -> Self {
        let mut table = vec![0; PackedMove::PLACES];
        for (m, index) in entries {
            table[m.packed().place()] = index;
        }
        Self(table)
    }

    fn az() -> Self {
        Self::new(listed(flat_moves()).map(|(m, _)| (m, az_index(m))))
    }

    fn of_list(moves: &[String]) -> Self {
        Self::new(listed(moves))
    }

    /// A knight promotion is the bare move.
    fn lc0() -> Self {
        Self::new(listed(lc0_moves()).flat_map(|(m, index)| {
            let knight = SeenMove {
                promotion: m.promotion.or(Some(Role::Knight)),
                ..m
            };
            [(m, index), (knight, index)]
        }))
    }

    fn get(&self, m: PackedMove) -> u16 {
        self.0[m.place()]
    }
}

/// The moves of a list with their places in it.
fn listed(moves: &[String]) -> impl Iterator<Item = (SeenMove, u16)> {
    let parsed = |(index, text): (usize, &String)| Some((SeenMove::parse(text)?, index as u16));
    moves.iter().enumerate().filter_map(parsed)
}

/// Every move that can occur in some position, as a queen's or, if it promotes, a pawn's: encodings look at squares and
/// promotions alone.
pub fn all_moves() -> impl Iterator<Item = Move> {
    listed(flat_moves()).map(|(m, _)| Move::Normal {
        role: m.promotion.map_or(Role::Queen, |_| Role::Pawn),
        from: m.from,
        capture: None,
        to: m.to,
        promotion: m.promotion,
    })
}

impl SeenMove {
    fn packed(self) -> PackedMove {
        PackedMove::of_parts(self.from, self.to, self.promotion)
    }

    fn parse(text: &str) -> Option<Self> {
        let square = |range: std::ops::Range<usize>| text.get(range)?.parse::<Square>().ok();
        let promotion = match text.as_bytes().get(4) {
            None => None,
            Some(letter) => Role::from_char(char::from(*letter)),
        };
        Some(Self {
            from: square(0..2)?,
            to: square(2..4)?,
            promotion,
        })
    }
}

/// The cell of Lc0's 80-plane convolution policy head (`64 * plane + square`, planes 73 to 79
/// unused) that holds each move of `lc0-1858`, in the order of the move list.
///
/// Planes are those of [`PolicyEncoding::Az73`] but for promotions: planes 64 to 72 are rook,
/// bishop and queen promotions, and the knight's is the plain pawn move.
pub fn lc0_conv_cells() -> &'static [u16] {
    static CELLS: LazyLock<Vec<u16>> = LazyLock::new(|| {
        lc0_moves()
            .iter()
            .filter_map(|text| SeenMove::parse(text))
            .map(lc0_cell)
            .collect()
    });
    &CELLS
}

fn lc0_cell(m: SeenMove) -> u16 {
    let Some(role) = m.promotion else {
        return az_index(m);
    };
    let role = match role {
        Role::Rook => 0,
        Role::Bishop => 1,
        _ => 2,
    };
    let file = i32::from(m.to.file()) - i32::from(m.from.file());
    (64 + 3 * (file + 1) + role) as u16 * 64 + u16::from(m.from)
}

#[cfg(test)]
mod tests;
