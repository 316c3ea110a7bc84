//! What endgame tables know: the values of leaves, and the moves that a root may play.
//!
//! A leaf that was just reached by a capture or a pawn move has the value that tables give it; there
//! they are exact. At a root they know more: which moves keep its result and come nearer to the
//! end. Only these are searched, as values that are all alike would not tell a way that makes
//! progress from one that does not.

use rookery_common::chess::{GameHistory, GameResult, PackedMove, tables};
use shakmaty::{Color, Move, Position as _};

use super::Searcher;
use crate::evaluator::Wdl;
use crate::tree::{NodeId, NodeKind};

impl Searcher {
    /// The moves that the root may play (none for all) if these are asked for (none for all), and
    /// its value if tables know that.
    pub(super) fn root_moves(
        &self,
        game: &GameHistory,
        only: &[Move],
    ) -> (Vec<PackedMove>, Option<Wdl>) {
        let pack = |moves: &[Move]| moves.iter().map(|m| PackedMove::pack(*m)).collect();
        let position = game.position();
        let known = self.tables.as_ref();
        let Some(mut best) = known.and_then(|tables| tables.best_moves(position)) else {
            return (pack(only), None);
        };
        best.moves.retain(|m| only.is_empty() || only.contains(m));
        if best.moves.is_empty() {
            return (pack(only), None);
        }
        let value = kind(best.result, position.turn()).terminal();
        (pack(&best.moves), value)
    }

    /// Gives a leaf that waits for its evaluation, its position being on the board, the value that
    /// tables know.
    pub(super) fn look_up(&mut self, leaf: NodeId, game: &GameHistory) {
        let Some(tables) = &self.tables else { return };
        let position = game.position();
        let decides = leaf != NodeId::ROOT
            && self.tree.node(leaf).kind == NodeKind::Asked
            && tables::decide(position, tables::MOST_PIECES);
        if !decides {
            return;
        }
        if let Some(result) = tables.result(position) {
            self.tree.node_mut(leaf).kind = kind(result, position.turn());
            self.counts.table_hits += 1;
        }
    }
}

/// What a result is for `mover`.
const fn kind(result: GameResult, mover: Color) -> NodeKind {
    match result.score_for(mover) {
        1 => NodeKind::TableWon,
        0 => NodeKind::TableDrawn,
        _ => NodeKind::TableLost,
    }
}
