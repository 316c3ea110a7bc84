//! A game of an audit against its task.

use super::super::error::{ChunkError, ChunkErrorCode};
use super::super::record::{GameKind, GameRecord};
use super::fail;
use crate::chess::Termination;
use crate::protocol::audits::AuditTask;

pub(super) fn check_audit(game: &GameRecord, task: &AuditTask) -> Result<(), ChunkError> {
    let (_, moves) = task
        .parse()
        .map_err(|error| fail(ChunkErrorCode::WrongStart, error.to_string()))?;
    let played = game.plies.iter().map(|ply| &ply.played);
    if !played.eq(&moves) {
        return Err(fail(
            ChunkErrorCode::WrongMoves,
            "the moves are not those of the task",
        ));
    }
    let chosen = match &game.kind {
        GameKind::Audit { chosen } => chosen.len(),
        _ => 0,
    };
    if chosen != task.drawn as usize + moves.len() {
        let detail = "not as many moves that follow as the task asks for";
        return Err(fail(ChunkErrorCode::BadSchema, detail));
    }
    match game.end.termination {
        Termination::Resignation | Termination::Adjudication => {
            let detail = "an audit's game ends with its task";
            Err(fail(ChunkErrorCode::TerminationNotAllowed, detail))
        }
        _ => Ok(()),
    }
}
