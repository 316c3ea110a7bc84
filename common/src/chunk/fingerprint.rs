//! A game's fingerprint: equal for the same game handed in twice, whatever its file.

use sha2::{Digest, Sha256};
use shakmaty::Move;

use super::record::{GameKind, GameRecord};
use crate::ids::{JobId, MatchId};
use crate::protocol::jobs::Work;

/// 128 bits of a SHA-256 over what makes the game itself: start, moves and visits.
///
/// Match players may be deterministic, and a puzzle's solution is short, so that honest games can
/// be equal: the match, pair and colour, or the job and puzzle, are hashed with them.
pub(super) fn of(game: &GameRecord, job: JobId, work: &Work) -> [u8; 16] {
    let mut hash = Sha256::new();
    match &game.kind {
        GameKind::SelfPlay { .. } => hash.update(b"s"),
        GameKind::Puzzle { puzzle, .. } => {
            hash.update(b"p");
            hash.update(job.0.as_bytes());
            hash.update(puzzle.as_bytes());
        }
        GameKind::Match { pair, candidate } => {
            hash.update(b"m");
            if let Work::Match {
                match_id: MatchId(id),
                ..
            } = work
            {
                hash.update(id.to_le_bytes());
            }
            hash.update(pair.to_le_bytes());
            hash.update([*candidate as u8]);
        }
        GameKind::Audit { .. } => {
            hash.update(b"a");
            hash.update(job.0.as_bytes());
            hash.update(game.index.to_le_bytes());
        }
    }
    hash.update(game.start.fen.as_deref().unwrap_or_default());
    hash.update([0]);
    game.start
        .moves
        .iter()
        .for_each(|m| hash.update(move_bytes(*m)));
    hash.update([0xff]);
    for ply in &game.plies {
        hash.update(move_bytes(ply.played));
        ply.visits.iter().for_each(|n| hash.update(n.to_le_bytes()));
    }
    let digest: [u8; 32] = hash.finalize().into();
    let (half, _) = digest.split_at(16);
    let mut fingerprint = [0; 16];
    fingerprint.copy_from_slice(half);
    fingerprint
}

fn move_bytes(m: Move) -> [u8; 3] {
    let from = m.from().map_or(64, u8::from);
    [
        from,
        u8::from(m.to()),
        m.promotion().map_or(0, |role| role as u8),
    ]
}
