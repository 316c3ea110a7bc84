//! A game of an audit against its task.

use super::super::error::{ChunkError, ChunkErrorCode};
use super::super::record::GameRecord;
use super::{check_searches, fail};
use crate::chess::Termination;
use crate::protocol::audits::{AuditTask, AuditedRules};

pub(super) fn check_audit(
    game: &GameRecord,
    rules: &AuditedRules,
    task: &AuditTask,
) -> Result<(), ChunkError> {
    let (start, moves) = task
        .parse()
        .map_err(|error| fail(ChunkErrorCode::WrongStart, error.to_string()))?;
    if game.start != start {
        let detail = "the game does not begin where its task does";
        return Err(fail(ChunkErrorCode::WrongStart, detail));
    }
    let played = game.plies.iter().map(|ply| &ply.played);
    if !played.eq(&moves) {
        return Err(fail(
            ChunkErrorCode::WrongMoves,
            "the moves are not those of the task",
        ));
    }
    let fast = match rules {
        AuditedRules::SelfPlay { params, .. } => {
            Some((params.fast_visits, params.full_search_share))
        }
        AuditedRules::Puzzles { .. } | AuditedRules::Match { .. } => None,
    };
    check_searches(game, rules.search(), fast)?;
    match game.end.termination {
        Termination::Resignation | Termination::Adjudication => {
            let detail = "an audit's game ends with its task";
            Err(fail(ChunkErrorCode::TerminationNotAllowed, detail))
        }
        _ => Ok(()),
    }
}
