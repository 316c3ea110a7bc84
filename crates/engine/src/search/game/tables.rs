//! What endgame tables know of a root: which moves keep its result and come nearer to the end.
//! Only these are searched, as values that are all alike would not tell a way that makes progress
//! from one that does not.

use rookery_common::chess::{GameHistory, PackedMove};
use shakmaty::{Move, Position as _};

use super::Searcher;
use crate::evaluator::Wdl;
use crate::tree::NodeKind;

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
        let known = self.settings.tables.as_ref();
        let Some(mut best) = known.and_then(|tables| tables.best_moves(position)) else {
            return (pack(only), None);
        };
        best.moves.retain(|m| only.is_empty() || only.contains(m));
        if best.moves.is_empty() {
            return (pack(only), None);
        }
        let value = NodeKind::by_tables(best.result, position.turn()).terminal();
        (pack(&best.moves), value)
    }
}
