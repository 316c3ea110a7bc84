//! A game as bytes: moves, key positions and targets, from which positions are encoded again.
//!
//! ```text
//! header     kind of game, result, how many of everything that follows
//! keyframes  K(0)         K(4)      …       positions after pawn moves and captures
//! moves      m0 m1 | m2 m3 m4 m5 …          given moves | moves to learn from, 2 bytes each
//! plies            t2 t3 t4 t5 …            values and the length of the policy target, 6 bytes each
//! targets          [w w w][w w w w] …       weights of the legal moves, full searches only
//! ```
//!
//! Games of people have no targets: the move that was played is the target, and its share, the same
//! for all moves of a player, stands in the header. They have plies only where comments value a
//! position. Numbers are little-endian.
//!
//! A position is replayed from the last keyframe that lies at least seven plies before it. After a
//! pawn move or a capture no earlier position can occur again, so boards and repetition counts come
//! out as in the whole game, at a fraction of the moves.

use rookery_common::chess::{GameHistory, GameResult, PackedMove, StartError, Termination};
use rookery_common::chunk::{Effort, GameKind, GameRecord};
use shakmaty::packed::PackedSetup;
use shakmaty::{Board, CastlingMode, Chess, EnPassantMode, FromSetup, Move, Position};

use super::target;

/// Boards before the newest one that encodings show.
const HISTORY: usize = 7;
/// Plies between two keyframes, at least.
const KEYFRAME_DISTANCE: usize = 16;
/// Chunks hold values in thousandths.
const VALUE_UNITS: f32 = 1000.0;
/// Stands for the value of a position that was not searched.
const UNKNOWN: i16 = i16::MIN;
const HEADER: usize = 12;

/// Where a game comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Source {
    /// One network played itself.
    SelfPlay = 0,
    /// One network played itself from a puzzle.
    Puzzle = 1,
    /// People or engines played it; it was read from a PGN file.
    Pgn = 2,
}

impl Source {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::SelfPlay, Self::Puzzle, Self::Pgn]
            .into_iter()
            .find(|source| *source as u8 == byte)
    }
}

/// A game that cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It begins at no legal position.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Its start is legal but cannot be written in short.
    #[error("the start position cannot be packed")]
    Packed,
    /// It has more moves than 16 bits count.
    #[error("the game has {0} moves")]
    Length(usize),
}

/// Packs a searched game. Match games and audits are no training data: they count as self-play here,
/// and it is the caller who leaves them out.
///
/// A game that its ply limit ended has no result here, whatever the record calls it: what counts as its result
/// is for training to say ([`CutOff`](rookery_common::params::CutOff)).
///
/// # Errors
///
/// [`RecordError`] if its start is bad.
pub fn pack(record: &GameRecord) -> Result<Vec<u8>, RecordError> {
    let start = match &record.start.fen {
        Some(fen) => GameHistory::from_fen(fen)?,
        None => GameHistory::default(),
    };
    let played = record.plies.iter().map(|ply| ply.played);
    let moves: Vec<Move> = record.start.moves.iter().copied().chain(played).collect();
    let source = match record.kind {
        GameKind::Puzzle { .. } => Source::Puzzle,
        _ => Source::SelfPlay,
    };
    let cut_off = record.end.termination == Termination::PlyLimit;
    let frame = Frame {
        source,
        result: (!cut_off).then_some(record.end.result),
        start: start.position(),
        moves: &moves,
        given: record.start.moves.len(),
        shares: [0; 2],
    };
    let mut bytes = frame.write()?;
    let mut targets = Vec::new();
    for ply in &record.plies {
        let begin = targets.len();
        if ply.effort == Effort::Full {
            target::write(ply, &mut targets);
        }
        let length = (targets.len() - begin) as u16;
        for number in [units(ply.root_q), units(ply.root_draw)] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(length.to_le_bytes());
    }
    bytes.extend(targets);
    Ok(bytes)
}

/// A game of people or engines.
#[derive(Debug, Clone, Copy)]
pub struct Played<'a> {
    /// Where it began.
    pub start: &'a Chess,
    /// Its moves.
    pub moves: &'a [Move],
    /// What comments say of the positions before each of them, for the mover, -1 to 1.
    pub values: &'a [Option<f32>],
    /// Moves that are not learnt, the first ones.
    pub given: usize,
    /// The share of the policy target that White's and Black's moves get, 0 to 1.
    pub shares: [f32; 2],
    /// How it ended.
    pub result: GameResult,
}

/// Packs a game of people or engines.
///
/// # Errors
///
/// [`RecordError`] if its start cannot be packed or it is too long.
pub fn pack_played(game: &Played<'_>) -> Result<Vec<u8>, RecordError> {
    let share = |share: f32| (share.clamp(0.0, 1.0) * f32::from(u16::MAX)).round() as u16;
    let frame = Frame {
        source: Source::Pgn,
        result: Some(game.result),
        start: game.start,
        moves: game.moves,
        given: game.given.min(game.moves.len()),
        shares: game.shares.map(share),
    };
    let mut bytes = frame.write()?;
    if game.values.iter().any(Option::is_some) {
        for ply in frame.given..frame.moves.len() {
            let value = game.values.get(ply).copied().flatten();
            for number in [value.map_or(UNKNOWN, units), 0, 0] {
                bytes.extend(number.to_le_bytes());
            }
        }
    }
    Ok(bytes)
}

fn units(value: f32) -> i16 {
    (value * VALUE_UNITS).round() as i16
}

/// Header, keyframes and moves: what all games have.
struct Frame<'a> {
    source: Source,
    result: Option<GameResult>,
    start: &'a Chess,
    moves: &'a [Move],
    given: usize,
    shares: [u16; 2],
}

impl Frame<'_> {
    fn write(&self) -> Result<Vec<u8>, RecordError> {
        let moves = self.moves.len();
        let count = u16::try_from(moves).map_err(|_| RecordError::Length(moves))?;
        let keyframes = keyframes(self.start, self.moves)?;
        let mut bytes = vec![self.source as u8, result_byte(self.result)];
        for number in [count, self.given as u16, keyframes.len() as u16] {
            bytes.extend(number.to_le_bytes());
        }
        self.shares
            .iter()
            .for_each(|n| bytes.extend(n.to_le_bytes()));
        bytes.extend(keyframes);
        for m in self.moves {
            bytes.extend(PackedMove::pack(*m).bits().to_le_bytes());
        }
        Ok(bytes)
    }
}

/// Each keyframe: the number of moves before it (2 bytes), its length (1 byte), the position.
fn keyframes(start: &Chess, moves: &[Move]) -> Result<Vec<u8>, RecordError> {
    let mut bytes = Vec::new();
    push_keyframe(&mut bytes, 0, start).ok_or(RecordError::Packed)?;
    let (mut position, mut next) = (start.clone(), KEYFRAME_DISTANCE);
    for (index, m) in moves.iter().enumerate() {
        position.play_unchecked(*m);
        let at = index + 1;
        // One that cannot be packed is only missed: the one before serves.
        if at >= next
            && position.halfmoves() == 0
            && bytes.len() + KEYFRAME_BYTES <= usize::from(u16::MAX)
            && push_keyframe(&mut bytes, at as u16, &position).is_some()
        {
            next = at + KEYFRAME_DISTANCE;
        }
    }
    Ok(bytes)
}

/// Longest keyframe.
const KEYFRAME_BYTES: usize = 3 + PackedSetup::MAX_BYTES;

fn push_keyframe(bytes: &mut Vec<u8>, at: u16, position: &Chess) -> Option<()> {
    let packed = PackedSetup::pack_standard(&position.to_setup(EnPassantMode::Always)).ok()?;
    let packed = packed.as_bytes();
    if unpack(packed)? != *position {
        return None;
    }
    bytes.extend(at.to_le_bytes());
    bytes.push(packed.len() as u8);
    bytes.extend(packed);
    Some(())
}

fn unpack(packed: &[u8]) -> Option<Chess> {
    let setup = PackedSetup::try_from_bytes(packed).ok()?;
    let setup = setup.unpack_standard().ok()?;
    Chess::from_setup(setup, CastlingMode::Chess960).ok()
}

const RESULTS: [Option<GameResult>; 4] = [
    Some(GameResult::WhiteWins),
    Some(GameResult::Draw),
    Some(GameResult::BlackWins),
    None,
];

fn result_byte(result: Option<GameResult>) -> u8 {
    RESULTS
        .iter()
        .position(|other| *other == result)
        .unwrap_or_default() as u8
}

/// A packed game, looked at where it lies.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Where it comes from.
    pub source: Source,
    /// How it ended; not known of a game that its ply limit ended.
    pub result: Option<GameResult>,
    /// The share of the policy target that a played move gets, in 65,535ths, for White and Black.
    pub shares: [u16; 2],
    given: usize,
    keyframes: &'a [u8],
    moves: &'a [[u8; 2]],
    plies: &'a [[u8; 6]],
    targets: &'a [u8],
}

/// What a ply's search found, in thousandths.
#[derive(Debug, Clone, Copy)]
pub struct Searched {
    /// The root's value for the mover.
    pub q: i16,
    /// The root's probability of a draw.
    pub draw: i16,
}

impl<'a> Record<'a> {
    /// Looks at a packed game; `None` if the bytes are not one.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(HEADER)?;
        let number = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let source = Source::from_byte(header[0])?;
        let (moves, given) = (usize::from(number(2)), usize::from(number(4)));
        let (keyframes, rest) = rest.split_at_checked(usize::from(number(6)))?;
        let (move_bytes, rest) = rest.split_at_checked(2 * moves)?;
        let searched = match source {
            Source::Pgn if rest.is_empty() => 0,
            Source::SelfPlay | Source::Puzzle | Source::Pgn => moves.checked_sub(given)?,
        };
        let (ply_bytes, targets) = rest.split_at_checked(6 * searched)?;
        Some(Self {
            source,
            result: *RESULTS.get(usize::from(header[1]))?,
            shares: [number(8), number(10)],
            given,
            keyframes,
            moves: move_bytes.as_chunks().0,
            plies: ply_bytes.as_chunks().0,
            targets,
        })
    }

    /// Positions to learn from.
    pub const fn positions(&self) -> u32 {
        self.moves.len().saturating_sub(self.given) as u32
    }

    /// The game as it stood before ply `ply` of those to learn from, with as much history as
    /// encodings see; none if there is no such ply.
    pub fn history(&self, ply: u32) -> Option<GameHistory> {
        let at = self.given + ply as usize;
        let (from, packed) = self.keyframe(at.saturating_sub(HISTORY))?;
        let mut game = GameHistory::new(unpack(packed)?);
        for bits in self.moves.get(from..at)? {
            let m = PackedMove::from_bits(u16::from_le_bytes(*bits));
            game.push(m.unpack(game.position()));
        }
        Some(game)
    }

    /// The board before ply `ply` of those to learn from; the last one after them.
    pub fn board(&self, ply: u32) -> Option<Board> {
        let at = (self.given + ply as usize).min(self.moves.len());
        let (from, packed) = self.keyframe(at)?;
        let mut position = unpack(packed)?;
        for bits in self.moves.get(from..at)? {
            let m = PackedMove::from_bits(u16::from_le_bytes(*bits));
            position.play_unchecked(m.unpack(&position));
        }
        Some(position.board().clone())
    }

    /// The last keyframe with at most `oldest` moves before it.
    fn keyframe(&self, oldest: usize) -> Option<(usize, &'a [u8])> {
        let (mut rest, mut last) = (self.keyframes, None);
        while let [low, high, length, tail @ ..] = rest {
            let at = usize::from(u16::from_le_bytes([*low, *high]));
            let (packed, next) = tail.split_at_checked(usize::from(*length))?;
            if at > oldest {
                break;
            }
            (last, rest) = (Some((at, packed)), next);
        }
        last
    }

    /// The move that was played at a ply.
    pub fn played(&self, ply: u32) -> Option<PackedMove> {
        let bits = self.moves.get(self.given + ply as usize)?;
        Some(PackedMove::from_bits(u16::from_le_bytes(*bits)))
    }

    /// What the search of a ply found, or a comment says; none in games of people without.
    pub fn searched(&self, ply: u32) -> Option<Searched> {
        let [q0, q1, d0, d1, _, _] = *self.plies.get(ply as usize)?;
        let q = i16::from_le_bytes([q0, q1]);
        (q != UNKNOWN).then(|| Searched {
            q,
            draw: i16::from_le_bytes([d0, d1]),
        })
    }

    /// The policy target of a ply: weights of the legal moves in canonical order, empty after a
    /// fast search and in games of people.
    pub fn policy_weights(&self, ply: u32) -> Vec<u16> {
        let ply = ply as usize;
        let length = |ply: &[u8; 6]| usize::from(u16::from_le_bytes([ply[4], ply[5]]));
        let Some(before) = self.plies.get(..ply) else {
            return Vec::new();
        };
        let begin: usize = before.iter().map(length).sum();
        let end = begin + self.plies.get(ply).map_or(0, length);
        self.targets
            .get(begin..end)
            .map(target::read)
            .unwrap_or_default()
    }
}
