//! An audit's searches against those of the chunk that it audits.

use std::collections::BTreeMap;

use rookery_common::audit::{Disagreement, Span, compare_span, task};
use rookery_common::chess::StartError;
use rookery_common::chunk::{Caps, ChunkError, ChunkReader, GameRecord};
use rookery_common::protocol::audits::AuditTask;
use rookery_common::protocol::jobs::Work;

use crate::db::AuditOpinion;

/// A chunk that cannot be audited although it was accepted.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// It cannot be read any more.
    #[error("the audited chunk cannot be read: {0}")]
    Chunk(#[from] ChunkError),
    /// A game's start is not a position.
    #[error("the audited chunk cannot be read: {0}")]
    Start(#[from] StartError),
    /// A span is of a game or ply that the chunk does not hold.
    #[error("the audited chunk does not hold ply {} of game {}", .0.end, .0.game)]
    Span(Span),
}

/// The games of a chunk that spans are of, by their index in the job.
fn games_of(bytes: &[u8], spans: &[Span]) -> Result<BTreeMap<u32, GameRecord>, AuditError> {
    let mut reader = ChunkReader::open(bytes, &Caps::default())?;
    let mut games = BTreeMap::new();
    while let Some(game) = reader.next_game()? {
        if spans.iter().any(|span| span.game == game.index) {
            games.insert(game.index, game);
        }
    }
    match spans.iter().find(|span| {
        games
            .get(&span.game)
            .is_none_or(|game| game.plies.len() < span.end as usize)
    }) {
        Some(span) => Err(AuditError::Span(*span)),
        None => Ok(games),
    }
}

/// What auditors get of these spans of a chunk; `drawing` is the work whose games draw plies from the
/// policy before their first search.
pub fn tasks(
    bytes: &[u8],
    spans: &[Span],
    drawing: Option<&Work>,
) -> Result<Vec<AuditTask>, AuditError> {
    let games = games_of(bytes, spans)?;
    let tasks = spans.iter().map(|span| {
        let game = &games[&span.game];
        task(game, span, drawing.map_or(0, |work| work.drawn_plies(game)))
    });
    Ok(tasks.collect::<Result<_, _>>()?)
}

/// Compares the games of an audit (game `i` is span `i`) with the chunk's own searches.
pub fn compare(audited: &[u8], spans: &[Span], audit: &[u8]) -> Result<AuditOpinion, AuditError> {
    let played = games_of(audited, spans)?;
    let theirs = ChunkReader::open(audited, &Caps::default())?
        .header()
        .backend;
    let mut reader = ChunkReader::open(audit, &Caps::default())?;
    let ours = reader.header().backend;
    let mut found = Disagreement::default();
    while let Some(again) = reader.next_game()? {
        if let Some(span) = spans.get(again.index as usize) {
            found = found.and(compare_span(&played[&span.game], span, &again));
        }
    }
    Ok(AuditOpinion {
        found,
        backends: (theirs, ours),
    })
}
