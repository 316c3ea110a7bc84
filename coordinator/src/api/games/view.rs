//! A game as the API shows it.

use rookery_common::chess::moves::{canonical_moves, castling_mode, uci};
use rookery_common::chess::{GameHistory, StartError, fen};
use rookery_common::chunk::{GameKind, GameRecord, PlyRecord, Side};
use rookery_common::protocol::matches::{GameDetail, GameInfo, MoveDetail};
use shakmaty::Move;
use shakmaty::san::SanPlus;

use super::PgnTags;
use crate::server::address::Address;

/// Moves of a search that are shown.
const TOP_MOVES: usize = 5;

pub(super) fn detail(info: GameInfo, record: &GameRecord) -> Result<GameDetail, StartError> {
    let mut game = record.start.origin()?;
    let opening = record
        .start
        .moves
        .iter()
        .map(|m| played(&mut game, *m))
        .collect();
    let moves = record
        .plies
        .iter()
        .map(|ply| searched(&mut game, ply))
        .collect();
    Ok(GameDetail {
        info,
        fen: record.start.fen.clone(),
        opening,
        moves,
    })
}

fn played(game: &mut GameHistory, m: Move) -> String {
    let text = uci(m, castling_mode(game.position()));
    game.push(m);
    text
}

fn searched(game: &mut GameHistory, ply: &PlyRecord) -> MoveDetail {
    let top = top_moves(game, ply);
    let san = SanPlus::from_move(game.position().clone(), ply.played).to_string();
    let uci = played(game, ply.played);
    let fen = fen(game.position());
    MoveDetail {
        uci,
        san,
        fen,
        q: ply.root_q,
        draw: ply.root_draw,
        top,
    }
}

/// The moves with most visits and their shares.
fn top_moves(game: &GameHistory, ply: &PlyRecord) -> Vec<(String, f32)> {
    let mode = castling_mode(game.position());
    let all: u64 = ply.visits.iter().map(|n| u64::from(*n)).sum();
    let mut visited: Vec<(Move, u32)> = canonical_moves(game.position())
        .into_iter()
        .zip(ply.visits.iter().copied())
        .filter(|(_, visits)| *visits > 0)
        .collect();
    visited.sort_by_key(|(_, visits)| std::cmp::Reverse(*visits));
    visited
        .into_iter()
        .take(TOP_MOVES)
        .map(|(m, visits)| (uci(m, mode), (f64::from(visits) / all as f64) as f32))
        .collect()
}

pub(super) fn tags(info: &GameInfo, record: &GameRecord, address: &Address) -> PgnTags {
    let (white, black) = (
        format!("{} #{}", info.run, info.white),
        format!("{} #{}", info.run, info.black),
    );
    let (first, second) = match record.kind {
        GameKind::Match {
            candidate: Side::Black,
            ..
        } => (black, white),
        _ => (white, black),
    };
    PgnTags {
        event: info.run.to_string(),
        site: address
            .known()
            .map_or_else(String::new, |url| format!("{url}/games/{}", info.id)),
        date: info
            .accepted_at
            .chars()
            .take(10)
            .collect::<String>()
            .replace('-', "."),
        round: info.id.to_string(),
        first,
        second,
    }
}
