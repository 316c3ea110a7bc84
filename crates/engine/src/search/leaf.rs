//! What a leaf is: mate, draw, known to tables, won by a mate in one, or a position to evaluate.

use rookery_common::chess::mate::find_mate;
use rookery_common::chess::{GameHistory, PackedMove, tables};
use shakmaty::Position;

use super::gather::Scratch;
use super::walk::Arrival;
use super::{Search, Settings, solver};
use crate::evaluator::Wdl;
use crate::tree::{NodeId, NodeKind, Tree};

impl Search {
    /// Looks at the leaf at the end of the path, whose position is on the board, for the first time.
    pub(super) fn look(
        &mut self,
        game: &mut GameHistory,
        settings: &Settings,
        scratch: &mut Scratch,
    ) -> Arrival {
        self.counts.visits_without_expansion = 0;
        let legal = game.position().legal_moves();
        let (path, moves) = (&scratch.path, &mut scratch.moves);
        moves.clear();
        moves.extend(legal.iter().map(|m| PackedMove::pack(*m)));
        classify(&mut self.tree, path, game, moves);
        // The root is evaluated in any case.
        let [.., _, leaf] = path[..] else {
            return Arrival::Leaf;
        };
        self.look_up(leaf, game, settings);
        let kind = self.tree.node(leaf).kind;
        if kind == NodeKind::Asked
            && settings.params.solver
            && let Some(mate) = find_mate(game.position(), &legal)
        {
            solver::add_mate(&mut self.tree, leaf, game, mate);
            return Arrival::Known(Wdl::WIN);
        }
        kind.terminal().map_or(Arrival::Leaf, Arrival::Known)
    }

    /// Gives a leaf that waits for its evaluation the value that tables know. They are exact where
    /// a capture or a pawn move has just led.
    fn look_up(&mut self, leaf: NodeId, game: &GameHistory, settings: &Settings) {
        let Some(tables) = &settings.tables else {
            return;
        };
        let position = game.position();
        let node = self.tree.node_mut(leaf);
        if node.kind == NodeKind::Asked
            && tables::decide(position, tables::MOST_PIECES)
            && let Some(result) = tables.result(position)
        {
            node.kind = NodeKind::by_tables(result, position.turn());
            self.counts.table_hits += 1;
        }
    }
}

/// Sets the kind of the leaf at the end of `path`, whose position is on the board with these
/// legal moves.
///
/// Besides the rules' draws, a position that stood on the board before counts as drawn if the
/// earlier occurrence is in the search, at the root or after it: whoever could bring it about
/// once can do so again. (Lc0 does the same.) One that repeats only the game before the root is
/// evaluated, as the players may still do otherwise. The root is always evaluated.
fn classify(tree: &mut Tree, path: &[NodeId], game: &GameHistory, moves: &[PackedMove]) {
    let Some((leaf, before)) = path.split_last() else {
        return;
    };
    if before.is_empty() {
        return tree.ask(*leaf, moves);
    }
    if moves.is_empty() {
        let mated = game.position().is_check();
        tree.node_mut(*leaf).kind = if mated {
            NodeKind::Mated
        } else {
            NodeKind::Drawn
        };
    } else if game.draw_by_rule().is_some() {
        tree.node_mut(*leaf).kind = NodeKind::Drawn;
    } else if let Some(cycle) = cycle(tree, *leaf, before, game) {
        tree.repeat(*leaf, cycle);
    } else {
        tree.ask(*leaf, moves);
    }
}

/// Plies back to the position's earlier occurrence in the search, if there is one.
fn cycle(tree: &Tree, leaf: NodeId, before: &[NodeId], game: &GameHistory) -> Option<usize> {
    if game.repetitions() == 0 {
        return None;
    }
    let key = tree.entry(leaf).repetition_key();
    before
        .iter()
        .rev()
        .position(|id| tree.entry(*id).repetition_key() == key)
        .map(|back| back + 1)
}
