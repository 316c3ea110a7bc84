//! Whether the moves played are those that the searches give.

use super::super::error::{ChunkError, ChunkErrorCode};
use super::super::record::{GameRecord, PlyRecord};
use super::fail;
use crate::chess::GameHistory;
use crate::chess::moves::canonical_moves;
use crate::params::Temperature;

/// At which plies a temperature samples moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sampling {
    /// At all.
    Every,
    /// At every second, not the first: a puzzle's solver plays its best moves.
    EverySecond,
}

/// Where moves are not sampled, the played move is one with most visits.
pub(super) fn check_best_played(
    game: &GameRecord,
    temperature: &Temperature,
    sampling: Sampling,
) -> Result<(), ChunkError> {
    let mut history = game
        .start
        .history()
        .map_err(|error| fail(ChunkErrorCode::BadStart, error.to_string()))?;
    for (ply, record) in game.plies.iter().enumerate() {
        let best = temperature.at(ply as u32) <= 0.0
            || (sampling == Sampling::EverySecond && ply % 2 == 0);
        if best && played_visits(&history, record) < record.visits.iter().copied().max() {
            let detail = "the move played is not one with most visits";
            return Err(fail(ChunkErrorCode::WrongChoice, detail).at_ply(ply));
        }
        history.push(record.played);
    }
    Ok(())
}

fn played_visits(history: &GameHistory, record: &PlyRecord) -> Option<u32> {
    let legal = canonical_moves(history.position());
    let place = legal.iter().position(|m| *m == record.played)?;
    record.visits.get(place).copied()
}
