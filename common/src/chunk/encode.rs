//! From games to bytes.

use std::io::Write;

use shakmaty::{Chess, Color, Move};

use super::decode::ChunkHeader;
use super::record::{Effort, GameKind, GameRecord, PlyRecord, Side, to_thousandths};
use super::replay::rank_by_visits;
use super::{columns, wire};
use crate::chess::moves::canonical_moves;

/// zstd's level: chunks are made rarely, sent and stored for long.
const LEVEL: i32 = 19;

/// A record that is not a game: a bug of its maker, not of the chunk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The start is not legal.
    #[error("game {game} begins at an illegal position: {reason}")]
    Start {
        /// The game's index.
        game: u32,
        /// What the rules say.
        reason: String,
    },
    /// A move is not legal where it stands.
    #[error("game {game} holds an illegal move at ply {ply}")]
    Move {
        /// The game's index.
        game: u32,
        /// The ply, given moves counted too.
        ply: usize,
    },
    /// Visits or targets are not as many as the legal moves.
    #[error("game {game} has visits or targets that do not fit the legal moves at ply {ply}")]
    Counts {
        /// The game's index.
        game: u32,
        /// The searched ply.
        ply: usize,
    },
    /// The compressor failed.
    #[error("compression failed: {0}")]
    Compression(String),
}

/// Encodes games of one job as a chunk.
///
/// Values are rounded to thousandths; everything else is kept as it is.
///
/// # Errors
///
/// [`EncodeError`] if a record is no legal game.
pub fn encode(header: &ChunkHeader, games: &[GameRecord]) -> Result<Vec<u8>, EncodeError> {
    let mut message = Vec::new();
    prost::encoding::message::encode(1, &header.to_wire(), &mut message);
    for game in games {
        prost::encoding::message::encode(2, &game_to_wire(game)?, &mut message);
    }
    compress(&message).map_err(|error| EncodeError::Compression(error.to_string()))
}

fn compress(message: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL)?;
    encoder.set_pledged_src_size(Some(message.len() as u64))?;
    encoder.include_checksum(true)?;
    encoder.write_all(message)?;
    encoder.finish()
}

fn place_of(m: Move, legal: &[Move]) -> Option<usize> {
    legal.iter().position(|candidate| *candidate == m)
}

fn game_to_wire(game: &GameRecord) -> Result<wire::Game, EncodeError> {
    let mut message = wire::Game {
        index: game.index,
        seed: game.seed.0,
        fen: game.start.fen.clone().unwrap_or_default(),
        result: wire::Result::from(game.end.result).into(),
        termination: wire::Termination::from(game.end.termination).into(),
        ..wire::Game::default()
    };
    kind_to_wire(&game.kind, &mut message);
    let mut position = start_position(game)?;
    let mut chosen = chosen_moves(game);
    for (ply, m) in game.start.moves.iter().enumerate() {
        let refuse = || EncodeError::Move {
            game: game.index,
            ply,
        };
        let legal = canonical_moves(&position);
        let place = place_of(*m, &legal).ok_or_else(refuse)?;
        message.opening.push(place as u8);
        if chosen.len() >= game.plies.len() + game.start.moves.len() - ply
            && let Some(m) = chosen.next()
        {
            message
                .chosen
                .push(place_of(*m, &legal).ok_or_else(refuse)? as u8);
        }
        shakmaty::Position::play_unchecked(&mut position, *m);
    }
    let mut writer = Columns {
        values: [Vec::new(), Vec::new(), Vec::new()],
        last: [0, 0],
        fast: 0,
    };
    for (ply, record) in game.plies.iter().enumerate() {
        let legal = canonical_moves(&position);
        check_ply(game, ply, record, &legal)?;
        if let Some(m) = chosen.next() {
            let refuse = || EncodeError::Move {
                game: game.index,
                ply: ply + game.start.moves.len(),
            };
            message
                .chosen
                .push(place_of(*m, &legal).ok_or_else(refuse)? as u8);
        }
        writer.ply(
            &mut message,
            record,
            &legal,
            shakmaty::Position::turn(&position),
        );
        shakmaty::Position::play_unchecked(&mut position, record.played);
    }
    message.values = writer.values.concat();
    Ok(message)
}

/// The moves that follow from an audit's searches.
fn chosen_moves(game: &GameRecord) -> std::slice::Iter<'_, Move> {
    match &game.kind {
        GameKind::Audit { chosen } => chosen.iter(),
        GameKind::SelfPlay { .. } | GameKind::Puzzle { .. } | GameKind::Match { .. } => [].iter(),
    }
}

fn start_position(game: &GameRecord) -> Result<Chess, EncodeError> {
    let refuse = |error: crate::chess::StartError| EncodeError::Start {
        game: game.index,
        reason: error.to_string(),
    };
    let origin = game.start.origin().map_err(refuse)?;
    Ok(origin.position().clone())
}

fn kind_to_wire(kind: &GameKind, message: &mut wire::Game) {
    match kind {
        GameKind::SelfPlay { play_on } => message.play_on = *play_on,
        GameKind::Puzzle { puzzle, solved } => {
            message.puzzle.clone_from(puzzle);
            message.solved = *solved;
        }
        GameKind::Match { pair, candidate } => {
            message.pair = *pair;
            message.candidate_black = *candidate == Side::Black;
        }
        // Its moves are written as the positions come by.
        GameKind::Audit { .. } => {}
    }
}

fn check_ply(
    game: &GameRecord,
    ply: usize,
    record: &PlyRecord,
    legal: &[Move],
) -> Result<(), EncodeError> {
    if place_of(record.played, legal).is_none() {
        return Err(EncodeError::Move {
            game: game.index,
            ply: ply + game.start.moves.len(),
        });
    }
    let targets = record
        .target
        .as_ref()
        .is_none_or(|target| target.len() == legal.len());
    if record.visits.len() != legal.len() || !targets {
        return Err(EncodeError::Counts {
            game: game.index,
            ply,
        });
    }
    Ok(())
}

/// The value columns and where the last fast ply was.
struct Columns {
    values: [Vec<u8>; 3],
    last: [i32; 2],
    /// Plies since the last fast one.
    fast: u32,
}

impl Columns {
    fn ply(&mut self, message: &mut wire::Game, ply: &PlyRecord, legal: &[Move], mover: Color) {
        let place = place_of(ply.played, legal).unwrap_or_default();
        message.moves.push(rank_by_visits(&ply.visits, place) as u8);
        columns::put_counts(&mut message.visits, ply.visits.iter().copied());
        match ply.effort {
            Effort::Full => self.fast += 1,
            Effort::Fast => message.fast.push(std::mem::take(&mut self.fast)),
        }
        if let (Some(target), Effort::Full) = (&ply.target, ply.effort) {
            columns::put_counts(&mut message.targets, target.iter().map(|w| u32::from(*w)));
        }
        self.values(ply, mover);
    }

    fn values(&mut self, ply: &PlyRecord, mover: Color) {
        let [root, draw, best] =
            [ply.root_q, ply.root_draw.max(0.0), ply.best_q].map(to_thousandths);
        let seen_by_white = mover.fold_wb(root, -root);
        for (index, value) in [seen_by_white, draw].into_iter().enumerate() {
            columns::put_signed(&mut self.values[index], value - self.last[index]);
            self.last[index] = value;
        }
        columns::put_signed(&mut self.values[2], best - root);
    }
}
