//! One game of the window, where it lies.

use std::sync::Arc;

use rookery_common::chess::GameHistory;
use rookery_common::chunk::GameRecord;
use rookery_common::encoding::piece_classes;
use rookery_common::network::AuxiliaryHead;
use rookery_engine::Wdl;
use rookery_train::{AuxiliaryTargets, BoardsAhead};
use shakmaty::{Color, Move};

use super::record::{self, Record, RecordError, Source};
use super::segment::Segment;
use super::value::{self, ValueMix};
use rookery_common::chess::PackedMove;

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
    pub fn ahead(&self, ply: u32, mover: Color) -> AuxiliaryTargets {
        let record = self.record();
        let ends = record.is_some_and(|record| record.result.is_some());
        AuxiliaryTargets {
            plies: ends.then_some(self.positions.saturating_sub(ply) as f32),
            short_value: record.map_or(Wdl::DRAW, |record| value::short(&record, ply, mover)),
        }
    }

    /// What stands on the squares after a ply, as its mover sees them; none if there is no such ply.
    pub fn boards(&self, ply: u32, mover: Color) -> Option<BoardsAhead> {
        let record = self.record()?;
        let classes = |ply| Some(piece_classes(&record.board(ply)?, mover));
        Some(BoardsAhead {
            future: classes(ply + AuxiliaryHead::FUTURE_PLIES)?,
            last: classes(self.positions)?,
        })
    }

    /// The value target of a ply for its mover.
    pub fn value(&self, ply: u32, mover: Color, mix: ValueMix) -> Wdl {
        self.record()
            .map_or(Wdl::DRAW, |record| mix.target(&record, ply, mover))
    }
}
