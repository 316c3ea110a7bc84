//! Input encodings: positions as packed planes.
//!
//! Every encoding is a row of *binary planes*, one bit a square, followed by a row of *scalar
//! planes*, each filled with one number. A position therefore travels as a `u64` for each binary
//! plane and a number for each scalar plane, and becomes a tensor on the device. Bit 0 is a1 and
//! bit 63 is h8 as the mover sees the board; in a tensor `[plane][rank][file]` bit `8 * rank +
//! file` goes to that cell.

use serde::{Deserialize, Serialize};
use shakmaty::{Board, CastlingSide, Chess, Color, EnPassantMode, Position, Role};
use utoipa::ToSchema;

use crate::chess::GameHistory;
use crate::names::names;

names! {
    /// Which planes a network sees.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
    pub enum InputEncoding {
        /// Lc0's classical input: 8 boards of 13 planes, 4 castling, colour, rule50, zeros, ones
        /// (`INPUT_CLASSICAL_112_PLANE`).
        #[serde(rename = "lc0-112")]
        Lc0112 = "lc0-112",
        /// AlphaZero's input (Silver et al., Science 2018, table S1): 8 boards of 14 planes, colour,
        /// move count, 4 castling, no-progress count.
        #[serde(rename = "az-119")]
        Az119 = "az-119",
        /// One board: 12 piece planes, 4 castling, en passant, rule50, side to move.
        #[serde(rename = "classic-19")]
        Classic19 = "classic-19",
    }
}

/// One position as a network sees it, before it is unpacked on the device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PackedInput {
    /// The binary planes in order.
    pub binary: Vec<u64>,
    /// The scalar planes in order, as counted (see [`InputEncoding::scalar_scales`]).
    pub scalars: Vec<f32>,
}

/// Boards that `lc0-112` and `az-119` show: the position and the seven before it.
pub(super) const BOARDS: usize = 8;

impl InputEncoding {
    /// Binary planes, which come first.
    pub const fn binary_planes(self) -> usize {
        match self {
            Self::Lc0112 => BOARDS * 13,
            Self::Az119 => BOARDS * 14,
            Self::Classic19 => 17,
        }
    }

    /// Binary planes of each board: `lc0-112` and `az-119` show eight boards, the newest first, `classic-19` one.
    pub const fn board_planes(self) -> usize {
        match self {
            Self::Lc0112 | Self::Az119 => self.binary_planes() / BOARDS,
            Self::Classic19 => self.binary_planes(),
        }
    }

    /// Scalar planes, which follow.
    pub const fn scalar_planes(self) -> usize {
        match self {
            Self::Lc0112 => 8,
            Self::Az119 => 7,
            Self::Classic19 => 2,
        }
    }

    /// All planes.
    pub const fn planes(self) -> usize {
        self.binary_planes() + self.scalar_planes()
    }

    /// What each scalar plane is divided by before the first convolution, so that counts are of
    /// the order of one. Lc0 divides rule50 by 99 in training and folds that into the weights;
    /// Rookery's files hold the weights for the divided plane.
    pub const fn scalar_scales(self) -> &'static [f32] {
        match self {
            Self::Lc0112 => &[1.0, 1.0, 1.0, 1.0, 1.0, 99.0, 1.0, 1.0],
            Self::Az119 => &[1.0, 100.0, 1.0, 1.0, 1.0, 1.0, 100.0],
            Self::Classic19 => &[100.0, 1.0],
        }
    }

    /// Encodes the position on the board into `binary` and `scalars`, which must be
    /// [`binary_planes`](Self::binary_planes) and [`scalar_planes`](Self::scalar_planes) long.
    ///
    /// # Panics
    ///
    /// If a slice has another length.
    pub fn encode_into(self, game: &GameHistory, binary: &mut [u64], scalars: &mut [f32]) {
        assert_eq!(
            binary.len(),
            self.binary_planes(),
            "binary planes of {}",
            self.name()
        );
        assert_eq!(
            scalars.len(),
            self.scalar_planes(),
            "scalar planes of {}",
            self.name()
        );
        match self {
            Self::Lc0112 => {
                encode_boards::<13>(game, binary);
                scalars.copy_from_slice(&lc0_scalars(game.position()));
            }
            Self::Az119 => {
                encode_boards::<14>(game, binary);
                scalars.copy_from_slice(&az_scalars(game.position()));
            }
            Self::Classic19 => encode_classic(game.position(), binary, scalars),
        }
    }

    /// Encodes the position on the board.
    ///
    /// # Examples
    ///
    /// ```
    /// use rookery_common::chess::GameHistory;
    /// use rookery_common::encoding::InputEncoding;
    ///
    /// let input = InputEncoding::Lc0112;
    /// let packed = input.encode(&GameHistory::default());
    /// assert_eq!(packed.binary.len() + packed.scalars.len(), input.planes());
    /// // The first plane has the mover's pawns, a bit a square, a1 the lowest.
    /// assert_eq!(packed.binary[0], 0x0000_0000_0000_ff00);
    /// ```
    pub fn encode(self, game: &GameHistory) -> PackedInput {
        let mut packed = PackedInput {
            binary: vec![0; self.binary_planes()],
            scalars: vec![0.0; self.scalar_planes()],
        };
        self.encode_into(game, &mut packed.binary, &mut packed.scalars);
        packed
    }
}

/// `bits` as `mover` sees the board: for Black, ranks in reverse order.
pub(super) fn seen_by(mover: Color, bits: u64) -> u64 {
    mover.fold_wb(bits, bits.swap_bytes())
}

/// The twelve piece planes: own pawns, knights, bishops, rooks, queens, king, then theirs.
fn piece_planes(board: &Board, mover: Color, planes: &mut [u64]) {
    for (side, color) in [mover, !mover].into_iter().enumerate() {
        for (index, role) in Role::ALL.into_iter().enumerate() {
            let bits = board.by_color(color) & board.by_role(role);
            planes[6 * side + index] = seen_by(mover, bits.into());
        }
    }
}

/// Eight boards of `PLANES` planes each, the newest first, all seen by the side to move now:
/// 12 piece planes, then one plane for each earlier occurrence of the position that is counted.
fn encode_boards<const PLANES: usize>(game: &GameHistory, binary: &mut [u64]) {
    let mover = game.turn();
    let known = (game.plies() + 1).min(BOARDS);
    let (boards, _) = binary.as_chunks_mut::<PLANES>();
    boards[known..].fill([0; PLANES]);
    for (back, planes) in boards.iter_mut().take(known).enumerate() {
        let Some((position, repetitions)) = game.look_back(back) else {
            return;
        };
        piece_planes(position.board(), mover, planes);
        for (index, plane) in planes[12..].iter_mut().enumerate() {
            *plane = if usize::from(repetitions) > index {
                !0
            } else {
                0
            };
        }
    }
    if known < BOARDS && !is_standard_start(game.start()) {
        let mut oldest = boards[known - 1];
        undo_double_push(game.start(), mover, &mut oldest);
        boards[known..].fill(oldest);
    }
}

/// Whether lc0 leaves the boards before `start` empty: it is the standard start position, with
/// White to move.
fn is_standard_start(start: &Chess) -> bool {
    let standard = Chess::default();
    let mut planes = [[0; 12]; 2];
    piece_planes(start.board(), start.turn(), &mut planes[0]);
    piece_planes(standard.board(), standard.turn(), &mut planes[1]);
    let corners = standard.castles().castling_rights();
    start.turn() == standard.turn()
        && planes[0] == planes[1]
        && start.castles().castling_rights() == corners
        && start.legal_ep_square().is_none()
}

/// Takes back the double pawn push that the start position's en passant square tells of, as lc0
/// does in the boards that stand for the time before it, whether a capture is possible or not.
fn undo_double_push(start: &Chess, mover: Color, planes: &mut [u64]) {
    let Some(square) = start.ep_square(EnPassantMode::Always) else {
        return;
    };
    let pusher = !start.turn();
    let (origin, target) = pusher.fold_wb((-8, 8), (8, -8));
    let (Some(origin), Some(target)) = (square.offset(origin), square.offset(target)) else {
        return;
    };
    let pawns = if pusher == mover {
        &mut planes[0]
    } else {
        &mut planes[6]
    };
    let bit = |square: shakmaty::Square| seen_by(mover, 1 << u32::from(square));
    *pawns = (*pawns & !bit(target)) | bit(origin);
}

fn flag(set: bool) -> f32 {
    f32::from(u8::from(set))
}

/// Castling rights in the order `sides` of the mover, then of the opponent.
fn castling_flags(position: &Chess, sides: [CastlingSide; 2]) -> [f32; 4] {
    let has = |color, side| flag(position.castles().has(color, side));
    let (us, them) = (position.turn(), !position.turn());
    [
        has(us, sides[0]),
        has(us, sides[1]),
        has(them, sides[0]),
        has(them, sides[1]),
    ]
}

fn lc0_scalars(position: &Chess) -> [f32; 8] {
    let sides = [CastlingSide::QueenSide, CastlingSide::KingSide];
    let [c0, c1, c2, c3] = castling_flags(position, sides);
    let black = flag(position.turn().is_black());
    [c0, c1, c2, c3, black, count(position.halfmoves()), 0.0, 1.0]
}

fn az_scalars(position: &Chess) -> [f32; 7] {
    let sides = [CastlingSide::KingSide, CastlingSide::QueenSide];
    let [c0, c1, c2, c3] = castling_flags(position, sides);
    let black = flag(position.turn().is_black());
    let moves = count(position.fullmoves().get());
    [black, moves, c0, c1, c2, c3, count(position.halfmoves())]
}

/// A count as a number; counts in a FEN may be absurd, a network sees at most 1000.
fn count(n: u32) -> f32 {
    f32::from(n.min(1000) as u16)
}

fn encode_classic(position: &Chess, binary: &mut [u64], scalars: &mut [f32]) {
    let mover = position.turn();
    piece_planes(position.board(), mover, binary);
    let sides = [CastlingSide::KingSide, CastlingSide::QueenSide];
    for (plane, right) in binary[12..16]
        .iter_mut()
        .zip(castling_flags(position, sides))
    {
        *plane = if right > 0.0 { !0 } else { 0 };
    }
    let ep = position.ep_square(EnPassantMode::Legal);
    binary[16] = ep.map_or(0, |square| seen_by(mover, 1 << u32::from(square)));
    scalars[0] = count(position.halfmoves());
    scalars[1] = flag(mover.is_black());
}

#[cfg(test)]
mod tests;
