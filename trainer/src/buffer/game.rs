//! One game of the window, where it lies.

use std::sync::Arc;

use rookery_common::chess::{GameHistory, GameResult};
use rookery_common::chunk::GameRecord;
use rookery_engine::Wdl;
use rookery_nn::Ahead;
use shakmaty::{Color, Move};

use super::record::{self, Record, RecordError, Searched, Source};
use super::segment::Segment;
use rookery_common::chess::PackedMove;

/// Thousandths, in which values are kept.
const ALL: i16 = 1000;

/// A finished game, kept for training; cheap to clone.
#[derive(Debug, Clone)]
pub struct StoredGame {
    segment: Arc<Segment>,
    begin: usize,
    bytes: u32,
    positions: u32,
    source: Source,
}

/// What the policy should say of a position.
#[derive(Debug, Clone, PartialEq)]
pub enum PolicyTarget {
    /// Nothing: the search was fast.
    None,
    /// These weights of the legal moves in canonical order.
    Weights(Vec<u16>),
    /// The move at this place among the legal ones, with this share; the rest for the others.
    Played {
        /// The place.
        place: usize,
        /// The share, 0 to 1.
        share: f32,
    },
}

impl StoredGame {
    /// The packed game that lies in a segment; none if there is none at that place.
    pub(super) fn at(segment: &Arc<Segment>, begin: usize, bytes: u32) -> Option<Self> {
        let packed = segment.get(begin..begin + bytes as usize)?;
        let record = Record::parse(packed)?;
        Some(Self {
            segment: Arc::clone(segment),
            begin,
            bytes,
            positions: record.positions(),
            source: record.source,
        })
    }

    /// Keeps what training needs of a game in memory of its own.
    ///
    /// # Errors
    ///
    /// If the game does not begin at a legal position.
    pub fn from_record(record: &GameRecord) -> Result<Self, RecordError> {
        let packed = record::pack(record)?;
        let bytes = packed.len() as u32;
        Self::at(&Arc::new(Segment::of_process(packed)), 0, bytes).ok_or(RecordError::Packed)
    }

    fn record(&self) -> Option<Record<'_>> {
        let end = self.begin + self.bytes as usize;
        self.segment.get(self.begin..end).and_then(Record::parse)
    }

    /// Positions to train on.
    pub const fn positions(&self) -> u32 {
        self.positions
    }

    /// Where the game comes from.
    pub const fn source(&self) -> Source {
        self.source
    }

    /// Bytes that the game takes, those by which it is found among them.
    pub const fn bytes(&self) -> usize {
        size_of::<Self>() + self.bytes as usize
    }

    /// The game as it stood before ply `ply` of those to train on, with as much history as
    /// encodings see; none if there is no such ply.
    pub fn history(&self, ply: u32) -> Option<GameHistory> {
        self.record()?.history(ply)
    }

    /// The policy target of a ply whose legal moves are given in canonical order.
    pub fn policy(&self, ply: u32, legal: &[Move], mover: Color) -> PolicyTarget {
        let Some(record) = self.record() else {
            return PolicyTarget::None;
        };
        if self.source == Source::Pgn {
            let played = |m: &Move| Some(PackedMove::pack(*m)) == record.played(ply);
            let share = record.shares[mover.fold_wb(0, 1)];
            return match legal.iter().position(played) {
                Some(place) => PolicyTarget::Played {
                    place,
                    share: f32::from(share) / f32::from(u16::MAX),
                },
                None => PolicyTarget::None,
            };
        }
        let weights = record.policy_weights(ply);
        if weights.len() == legal.len() {
            PolicyTarget::Weights(weights)
        } else {
            PolicyTarget::None
        }
    }

    /// What auxiliary heads learn of a ply.
    pub fn ahead(&self, ply: u32, mover: Color) -> Ahead {
        let record = self.record();
        let ends = record.is_some_and(|record| record.result.is_some());
        Ahead {
            plies: ends.then_some(self.positions.saturating_sub(ply) as f32),
            short_value: record.map_or(Wdl::DRAW, |record| short_value(&record, ply, mover)),
        }
    }

    /// The value target of a ply for its mover: the game's result, and `q_ratio` of what the
    /// search, or whoever has commented on the game, expected, if there was one; all of that where the
    /// game has no result.
    pub fn value(&self, ply: u32, mover: Color, q_ratio: f64) -> Wdl {
        let Some(record) = self.record() else {
            return Wdl::DRAW;
        };
        let result = record.result.map(|result| outcome(result, mover));
        match (result, expected(&record, ply)) {
            (Some(result), Some(wdl)) => result.mixed(wdl, q_ratio as f32),
            (result, wdl) => result.or(wdl).unwrap_or(Wdl::DRAW),
        }
    }
}

/// Share of a short value that each ply leaves to those after it: half of it comes from the next five.
const HORIZON: f32 = 7.0 / 8.0;
/// Plies after which nearly nothing of a short value is left.
const HORIZON_PLIES: u32 = 40;

/// What the searches of the plies from `ply` on expected for `mover`, the nearer the more; what is left
/// at the end, the game's result, or what was expected last where it has none.
fn short_value(record: &Record<'_>, ply: u32, mover: Color) -> Wdl {
    let (mut mean, mut rest, mut last) = (Wdl::default(), 1.0, Wdl::DRAW);
    let mut add = |wdl: Wdl, share: f32| {
        mean.win += share * wdl.win;
        mean.draw += share * wdl.draw;
        mean.loss += share * wdl.loss;
    };
    for later in 0..HORIZON_PLIES {
        let Some(wdl) = expected(record, ply + later) else {
            break;
        };
        let own = later.is_multiple_of(2);
        last = if own { wdl } else { wdl.flipped() };
        add(last, rest * (1.0 - HORIZON));
        rest *= HORIZON;
    }
    let end = record.result.map(|result| outcome(result, mover));
    add(end.unwrap_or(last), rest);
    // Forty shares of a sure win add up to a little more than one.
    Wdl {
        win: mean.win.min(1.0),
        draw: mean.draw.min(1.0),
        loss: mean.loss.min(1.0),
    }
}

fn outcome(result: GameResult, mover: Color) -> Wdl {
    match result.score_for(mover) {
        1 => Wdl::WIN,
        0 => Wdl::DRAW,
        _ => Wdl::LOSS,
    }
}

/// What the search of a ply, or a comment, expected for the ply's mover, if there was one. Comments say how
/// many points to expect, and nothing of draws.
fn expected(record: &Record<'_>, ply: u32) -> Option<Wdl> {
    let searched = record.searched(ply)?;
    Some(match record.source {
        Source::Pgn => Wdl::from_score(f32::from(searched.q) / f32::from(ALL)),
        Source::SelfPlay | Source::Puzzle => expectation(searched),
    })
}

/// Win, draw and loss from value and draw probability; a pair that no probabilities give (rounding,
/// a scalar value head) is brought to the nearest.
fn expectation(searched: Searched) -> Wdl {
    let q = searched.q;
    let draw = searched.draw.min(ALL - q.abs());
    // In whole units, so that no probability falls below 0 by rounding.
    let share = |half_units: i16| f32::from(half_units) / (2.0 * f32::from(ALL));
    Wdl {
        win: share(ALL - draw + q),
        draw: share(2 * draw),
        loss: share(ALL - draw - q),
    }
}
