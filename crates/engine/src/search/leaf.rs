//! What a leaf is: mate, draw, or a position to evaluate.

use rookery_common::chess::mate::find_mate;
use rookery_common::chess::{GameHistory, PackedMove};
use rookery_common::params::SearchParams;
use shakmaty::{Move, Position};

use crate::tree::{NodeId, NodeKind, Tree};

/// Lists the legal moves of the position on the board; with the solver on, the first that mates.
pub(crate) fn list_moves(
    game: &GameHistory,
    moves: &mut Vec<PackedMove>,
    params: &SearchParams,
) -> Option<Move> {
    moves.clear();
    let legal = game.position().legal_moves();
    moves.extend(legal.iter().map(|m| PackedMove::pack(*m)));
    if params.solver {
        find_mate(game.position(), &legal)
    } else {
        None
    }
}

/// Sets the kind of the leaf at the end of `path`, whose position is on the board with these
/// legal moves.
///
/// Besides the rules' draws, a position that stood on the board before counts as drawn if the
/// earlier occurrence is in the search, at the root or after it: whoever could bring it about
/// once can do so again. (Lc0 does the same.) One that repeats only the game before the root is
/// evaluated, as the players may still do otherwise. The root is always evaluated.
pub(crate) fn classify(tree: &mut Tree, path: &[NodeId], game: &GameHistory, moves: &[PackedMove]) {
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
    let key = tree.place(leaf).repetition_key();
    before
        .iter()
        .rev()
        .position(|id| tree.place(*id).repetition_key() == key)
        .map(|back| back + 1)
}
