//! Keeping the tree while a game goes on.

use rookery_common::chess::GameHistory;
use shakmaty::Position as _;

use super::Searcher;
use crate::tree::Edge;

impl Searcher {
    /// Makes the position on the board the root, with what is known of it.
    pub(super) fn come_to(&mut self, game: &GameHistory) {
        if continues(&self.game, game) {
            for plies in self.game.plies()..game.plies() {
                self.play(game, game.plies() - plies - 1);
            }
        } else {
            self.search.clear();
        }
        self.game = game.clone();
        // Play may go on after a draw that was not claimed.
        let tree = self.search.tree();
        if !tree.is_empty() && tree.root().kind.terminal().is_some() {
            self.search.clear();
        }
    }

    /// Follows the move that led to the position `back` plies before the end of `game`.
    fn play(&mut self, game: &GameHistory, back: usize) {
        let reached = game.look_back(back).map(|(position, _)| position);
        let tree = self.search.tree();
        let leads_there = |edge: &Edge| {
            let child = edge.child();
            child.is_some_and(|child| Some(tree.entry(child).position()) == reached)
        };
        let place = tree.edges_of_root().iter().position(leads_there);
        self.search.descend(place, &mut self.spare);
    }
}

/// Whether `new` is `old` with no, one or more moves played.
fn continues(old: &GameHistory, new: &GameHistory) -> bool {
    let Some(more) = new.plies().checked_sub(old.plies()) else {
        return false;
    };
    old.start().halfmoves() == new.start().halfmoves()
        && (0..=old.plies()).all(|back| old.look_back(back) == new.look_back(back + more))
}
