//! Policy encodings: moves as indices of a network's policy output.
//!
//! A move is first seen by its mover (for Black, ranks are mirrored), then looked up. Castling is
//! king takes rook in `lc0-1858`; in `az-73` and `flat-1968` it is the king's move of two squares
//! where king and rook stand on their standard squares, and king takes rook elsewhere, so that
//! Chess960 needs no other encoding and no two legal moves share an index.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use shakmaty::{Color, File, Move, Role, Square};
use utoipa::ToSchema;

mod tables;

pub use tables::{flat_moves, lc0_moves};

/// Which output stands for which move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum PolicyEncoding {
    /// AlphaZero's 73 planes of 64 origin squares, index `64 * plane + square`.
    #[serde(rename = "az-73")]
    Az73,
    /// Every move that can occur in some position, in alphabetical order of its UCI text.
    #[serde(rename = "flat-1968")]
    Flat1968,
    /// Lc0's move list.
    #[serde(rename = "lc0-1858")]
    Lc01858,
}

/// A move as its mover sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct SeenMove {
    from: Square,
    to: Square,
    promotion: Option<Role>,
}

impl PolicyEncoding {
    /// All encodings.
    pub const ALL: [Self; 3] = [Self::Az73, Self::Flat1968, Self::Lc01858];

    /// The name used in specifications and on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Az73 => "az-73",
            Self::Flat1968 => "flat-1968",
            Self::Lc01858 => "lc0-1858",
        }
    }

    /// The encoding of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|encoding| encoding.name() == name)
    }

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
    pub fn index(self, m: Move, mover: Color) -> u16 {
        match self {
            Self::Az73 => az_index(see(m, mover, Castling::KingsTarget)),
            Self::Flat1968 => FLAT_INDEX.get(see(m, mover, Castling::KingsTarget)),
            Self::Lc01858 => LC0_INDEX.get(see_lc0(m, mover)),
        }
    }

    /// Adds the [`index`](Self::index) of each of a position's legal moves to the end of `into`.
    pub fn indices_into(self, moves: &[Move], mover: Color, into: &mut Vec<u16>) {
        match self {
            Self::Lc01858 => {
                let table: &MoveIndex = &LC0_INDEX;
                into.extend(moves.iter().map(|m| table.get(see_lc0(*m, mover))));
            }
            Self::Az73 | Self::Flat1968 => {
                into.extend(moves.iter().map(|m| self.index(*m, mover)));
            }
        }
    }
}

/// How castling is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Castling {
    KingTakesRook,
    /// The king's two-square move if king and rook stand on their standard squares.
    KingsTarget,
}

fn see(m: Move, mover: Color, castling: Castling) -> SeenMove {
    let (from, to) = match m {
        Move::Castle { king, rook } if castling == Castling::KingsTarget => {
            (king, standard_target(king, rook).unwrap_or(rook))
        }
        // Drops do not occur in chess; their square stands for both ends.
        _ => (m.from().unwrap_or(m.to()), m.to()),
    };
    let flip = |square: Square| mover.fold_wb(square, square.flip_vertical());
    SeenMove {
        from: flip(from),
        to: flip(to),
        promotion: m.promotion(),
    }
}

/// As `lc0-1858` writes it: a knight promotion is the bare move.
fn see_lc0(m: Move, mover: Color) -> SeenMove {
    let mut seen = see(m, mover, Castling::KingTakesRook);
    seen.promotion = seen.promotion.filter(|role| *role != Role::Knight);
    seen
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

/// Index by promotion, origin and target of a move list; moves without promotion, nearly all, lie
/// together.
struct MoveIndex(Vec<u16>);

impl MoveIndex {
    fn new(moves: &[String]) -> Self {
        let mut table = vec![0; 64 * 64 * 5];
        for (index, text) in moves.iter().enumerate() {
            if let Some(m) = SeenMove::parse(text) {
                table[Self::slot(m)] = index as u16;
            }
        }
        Self(table)
    }

    fn slot(m: SeenMove) -> usize {
        let promotion = match m.promotion {
            None => 0,
            Some(role) => role as usize - Role::Pawn as usize,
        };
        (promotion.min(4) * 64 + usize::from(m.from)) * 64 + usize::from(m.to)
    }

    fn get(&self, m: SeenMove) -> u16 {
        self.0[Self::slot(m)]
    }
}

impl SeenMove {
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

static FLAT_INDEX: LazyLock<MoveIndex> = LazyLock::new(|| MoveIndex::new(flat_moves()));
static LC0_INDEX: LazyLock<MoveIndex> = LazyLock::new(|| MoveIndex::new(lc0_moves()));

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
