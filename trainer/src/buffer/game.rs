//! One game in memory: moves, key positions and targets, from which positions are encoded again.
//!
//! ```text
//! moves      m0 m1 | m2 m3 m4 m5 …          given moves | searched plies
//! keyframes  K(0)         K(4)      …       positions after pawn moves and captures
//! plies            t2 t3 t4 t5 …            values, and where the policy weights end
//! weights          [w w w][w w w w] …       one weight for each legal move, full searches only
//! ```
//!
//! A position is replayed from the last keyframe that lies at least seven plies before it. After a
//! pawn move or a capture no earlier position can occur again, so boards and repetition counts come
//! out as in the whole game, at a fraction of the moves.

use rookery_common::chess::{GameHistory, GameResult, StartError};
use rookery_common::chunk::{Effort, GameRecord, PlyRecord};
use rookery_engine::Wdl;
use shakmaty::{Chess, Move, Position};

/// Boards before the newest one that encodings show.
const HISTORY: usize = 7;

/// Plies between two keyframes, at least.
const KEYFRAME_DISTANCE: usize = 16;

/// Chunks hold values in thousandths.
const VALUE_UNITS: f32 = 1000.0;

/// A finished game, kept for training.
#[derive(Debug)]
pub struct StoredGame {
    keyframes: Box<[Keyframe]>,
    moves: Box<[Move]>,
    given: usize,
    plies: Box<[PlyTarget]>,
    weights: Box<[u16]>,
    result: GameResult,
}

#[derive(Debug)]
struct Keyframe {
    /// Moves played before it.
    at: usize,
    position: Chess,
}

/// What a ply's search found.
#[derive(Debug, Clone, Copy)]
struct PlyTarget {
    weights_end: u32,
    root_q: i16,
    root_draw: i16,
}

impl StoredGame {
    /// Keeps what training needs of a game.
    ///
    /// # Errors
    ///
    /// If the game does not begin at a legal position.
    pub fn from_record(record: &GameRecord) -> Result<Self, StartError> {
        let start = match &record.start.fen {
            Some(fen) => GameHistory::from_fen(fen)?,
            None => GameHistory::default(),
        };
        let played = record.plies.iter().map(|ply| ply.played);
        let moves: Box<[Move]> = record.start.moves.iter().copied().chain(played).collect();
        let mut weights = Vec::new();
        let plies = record
            .plies
            .iter()
            .map(|ply| PlyTarget::new(ply, &mut weights))
            .collect();
        Ok(Self {
            keyframes: keyframes(start.position().clone(), &moves),
            given: record.start.moves.len(),
            moves,
            plies,
            weights: weights.into(),
            result: record.end.result,
        })
    }

    /// Searched plies, each a position to train on.
    pub const fn positions(&self) -> u32 {
        self.plies.len() as u32
    }

    /// Bytes that the game takes.
    pub const fn bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.keyframes)
            + size_of_val(&*self.moves)
            + size_of_val(&*self.plies)
            + size_of_val(&*self.weights)
    }

    /// The game as it stood before searched ply `ply`, with as much history as encodings see.
    pub fn history(&self, ply: u32) -> GameHistory {
        let at = self.given + ply as usize;
        let oldest = at.saturating_sub(HISTORY);
        let index = self
            .keyframes
            .partition_point(|keyframe| keyframe.at <= oldest);
        // The first keyframe is the start, at 0.
        let keyframe = &self.keyframes[index.saturating_sub(1)];
        let mut game = GameHistory::new(keyframe.position.clone());
        self.moves[keyframe.at..at]
            .iter()
            .for_each(|m| game.push(*m));
        game
    }

    /// The policy target of a ply: weights of the legal moves in canonical order, empty after a
    /// fast search.
    pub fn policy_weights(&self, ply: u32) -> &[u16] {
        let ply = ply as usize;
        let start = ply
            .checked_sub(1)
            .map_or(0, |before| self.plies[before].weights_end);
        &self.weights[start as usize..self.plies[ply].weights_end as usize]
    }

    /// The value target of a ply for its mover: the game's result, and `q_ratio` of what the
    /// search expected.
    pub fn value(&self, ply: u32, mover: shakmaty::Color, q_ratio: f64) -> Wdl {
        let result = match self.result.score_for(mover) {
            1 => Wdl::WIN,
            0 => Wdl::DRAW,
            _ => Wdl::LOSS,
        };
        let searched = self.plies[ply as usize].searched();
        let share = q_ratio as f32;
        let mix = |result: f32, searched: f32| (1.0 - share) * result + share * searched;
        Wdl {
            win: mix(result.win, searched.win),
            draw: mix(result.draw, searched.draw),
            loss: mix(result.loss, searched.loss),
        }
    }
}

impl PlyTarget {
    fn new(ply: &PlyRecord, weights: &mut Vec<u16>) -> Self {
        if ply.effort == Effort::Full {
            append_weights(ply, weights);
        }
        let units = |value: f32| (value * VALUE_UNITS).round() as i16;
        Self {
            weights_end: weights.len() as u32,
            root_q: units(ply.root_q),
            root_draw: units(ply.root_draw),
        }
    }

    /// Win, draw and loss from value and draw probability; a pair that no probabilities give
    /// (rounding, a scalar value head) is brought to the nearest.
    fn searched(self) -> Wdl {
        let (all, q) = (VALUE_UNITS as i16, self.root_q);
        let draw = self.root_draw.min(all - q.abs());
        // In whole units, so that no probability falls below 0 by rounding.
        let share = |half_units: i16| f32::from(half_units) / (2.0 * VALUE_UNITS);
        Wdl {
            win: share(all - draw + q),
            draw: share(2 * draw),
            loss: share(all - draw - q),
        }
    }
}

/// Adds a ply's target as 16-bit weights: as they are where they fit, else in proportion.
fn append_weights(ply: &PlyRecord, weights: &mut Vec<u16>) {
    if let Some(target) = &ply.target {
        weights.extend_from_slice(target);
        return;
    }
    let highest = ply.visits.iter().copied().max().unwrap_or(0);
    if highest <= u32::from(u16::MAX) {
        weights.extend(ply.visits.iter().map(|n| *n as u16));
    } else {
        let scale = f64::from(u16::MAX) / f64::from(highest);
        weights.extend(
            ply.visits
                .iter()
                .map(|n| (f64::from(*n) * scale).round() as u16),
        );
    }
}

fn keyframes(start: Chess, moves: &[Move]) -> Box<[Keyframe]> {
    let mut position = start.clone();
    let mut frames = vec![Keyframe {
        at: 0,
        position: start,
    }];
    let mut next = KEYFRAME_DISTANCE;
    for (index, m) in moves.iter().enumerate() {
        position.play_unchecked(*m);
        let at = index + 1;
        if at >= next && position.halfmoves() == 0 {
            frames.push(Keyframe {
                at,
                position: position.clone(),
            });
            next = at + KEYFRAME_DISTANCE;
        }
    }
    frames.into()
}
